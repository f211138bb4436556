"""Snapshots are kept for a shorter time than a rollback may need.

## Why

What brings dropped values back, and what reads a table as it was, are older snapshots and their files. Once
`expire_snapshots` has removed them, there is no way back. The window is five days unless the project says
another, as Iceberg keeps snapshots by itself (`history.expire.max-snapshot-age-ms`).

```yaml
rules:
  IM202: {at_least: 14d}
```

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    retention: {snapshots: {max_age: 12h}}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    retention: {snapshots: {max_age: 7d}}
```

## Instead

Keep snapshots for as long as it may take to notice that a migration was wrong: a long weekend at least.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Option, Options, Rule, Touched
from icemigrate.model.retention import SNAPSHOT_AGE, format_duration, parse_duration


def find(touched: Touched, options: Options) -> Iterator[Finding]:
    """A new age of snapshots below the window, be it written as a retention or as a property."""
    least, age = options.get("at_least"), touched.new_properties.get(SNAPSHOT_AGE, "")
    if isinstance(least, int) and age.isdecimal() and int(age) < least:
        yield Finding(
            touched.name,
            ("retention", "snapshots", "max_age"),
            f"snapshots of `{touched.name}` are kept for {format_duration(int(age))}; a rollback may need "
            f"those of {format_duration(least)}",
            "keep them for longer: what expired brings nothing back",
            otherwise=("properties", SNAPSHOT_AGE),
        )


RULE = Rule(
    "IM202",
    "snapshots-kept-too-short",
    Level.WARNING,
    __doc__,
    find,
    (Option("at_least", parse_duration("5d"), "how long a rollback may be needed, `5d` by itself"),),
)
