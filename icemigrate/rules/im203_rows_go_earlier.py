"""Rows are kept for less time than before.

## Why

The change is one number in a file, but the next `maintain` deletes every row between the new age and the old
one. A rollback restores the number, not the rows.

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

Find the readers of the older rows. If the rows should be deleted, add `# icemigrate: ignore IM203 because …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.retention import ROW_AGE, format_duration
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_shortened_row_retention(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """A row retention that becomes shorter."""
    new = changed.new_properties.get(ROW_AGE, "")
    old = changed.before.properties.get(ROW_AGE, "") if changed.before else ""
    if new.isdecimal() and old.isdecimal() and int(new) < int(old):
        yield changed.finding(
            ("retention", "rows", "max_age"),
            f"the next `maintain` deletes rows of `{changed.name}` older than {format_duration(int(new))}; "
            f"until now they were kept for {format_duration(int(old))}",
            "a rollback does not restore them",
        )


RULE = Rule(
    "IM203",
    "rows-go-earlier",
    RuleLevel.WARNING,
    __doc__,
    find_shortened_row_retention,
    inspects=frozenset({"properties"}),
)
