"""Snapshots are kept for less time than a rollback may need.

## Why

Rollbacks and time travel need older snapshots and their files. After `expire_snapshots` removes them, dropped
values cannot be restored. The minimum is five days by default, which is also how long Iceberg keeps snapshots
by default (`history.expire.max-snapshot-age-ms`).

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

Keep snapshots for as long as it may take to notice a wrong migration: at least a long weekend.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.retention import SNAPSHOT_AGE, format_duration, parse_duration
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, RuleOptionSpec


def find_short_snapshot_retention(changed: ChangedTable, options: RuleOptions) -> Iterator[RuleFinding]:
    """A new age of snapshots below the minimum, written as a retention or as a property."""
    least, age = options.get("at_least"), changed.new_properties.get(SNAPSHOT_AGE, "")
    if isinstance(least, int) and age.isdecimal() and int(age) < least:
        yield RuleFinding(
            changed.name,
            ("retention", "snapshots", "max_age"),
            f"snapshots of `{changed.name}` are kept for {format_duration(int(age))}; a rollback may need "
            f"those of the last {format_duration(least)}",
            "keep them for longer: a rollback cannot use expired snapshots",
            fallback_subject=("properties", SNAPSHOT_AGE),
        )


RULE = Rule(
    "IM202",
    "snapshots-kept-too-short",
    RuleLevel.WARNING,
    __doc__,
    find_short_snapshot_retention,
    (
        RuleOptionSpec(
            "at_least", parse_duration("5d"), "how long a rollback may be needed; the default is `5d`"
        ),
    ),
    inspects=frozenset({"properties"}),
)
