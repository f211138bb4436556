"""Rows are kept for a shorter time than before.

## Why

It is one number in a file, and at the next `maintain` every row between the new age and the old one is
deleted. A rollback brings the number back, and no row.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    retention: {rows: {column: at, max_age: 730d}}
---
tables:
  - name: db.orders
    retention: {rows: {column: at, max_age: 365d}}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    retention: {rows: {column: at, max_age: 730d}}
---
tables:
  - name: db.orders
    retention: {rows: {column: at, max_age: 1095d}}
```

## Instead

See who reads the older rows. Where they are to go, say so: `# icemigrate: ignore IM203 because …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.retention import ROW_AGE, format_duration


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """A row retention that becomes shorter."""
    new = touched.new_properties.get(ROW_AGE, "")
    old = touched.before.properties.get(ROW_AGE, "") if touched.before else ""
    if new.isdecimal() and old.isdecimal() and int(new) < int(old):
        yield touched.finding(
            ("retention", "rows", "max_age"),
            f"rows of `{touched.name}` older than {format_duration(int(new))} are deleted by the next "
            f"`maintain`; they were kept for {format_duration(int(old))}",
            "no rollback brings them back",
        )


RULE = Rule("IM203", "rows-go-earlier", Level.WARNING, __doc__, find)
