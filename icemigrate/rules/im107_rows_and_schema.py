"""One migration changes a table's columns together with its rows or its row retention.

## Why

A rollback undoes the change of the columns and of the retention, but does not restore rows that `maintain`
has deleted since. In two migrations, each can be rolled back alone: a wrong column does not delay a deletion
that the law requires, and vice versa. The same is true of a `backfill` that overwrites values: its rows can
be restored only until newer rows are written, and after that the columns cannot be rolled back either.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
---
tables:
  - name: db.orders
    columns: [{name: note, type: string}]
    retention: {rows: {column: at, max_age: 365d}}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
---
tables:
  - name: db.orders
    retention: {rows: {column: at, max_age: 365d}}
```

## Instead

Write two migrations, the columns first.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import ChangePhase
from icemigrate.iceberg.retention import ROW_AGE
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions

_COLUMNS = frozenset(
    {ChangePhase.DROP, ChangePhase.RENAME, ChangePhase.ALTER, ChangePhase.RESTORE, ChangePhase.ADD}
)


def find_rows_and_schema_changes(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Overwritten rows or a changed row retention beside a change of the columns of an existing table."""
    if changed.before is None or not any(p.change.phase in _COLUMNS for p in changed.changes):
        return
    for planned in changed.plan.rows:
        if planned.overwrites:
            yield changed.finding(
                planned.work.subject,
                f"the migration overwrites values of `{changed.name}` and also changes its columns",
                "write two migrations, so that the columns can be rolled back after newer rows are written",
            )
    if ROW_AGE in changed.new_properties:
        yield changed.finding(
            ("retention", "rows"),
            f"the migration changes the row retention of `{changed.name}` and also its columns",
            "write two migrations, so that each can be rolled back alone",
        )


RULE = Rule(
    "IM107",
    "rows-and-schema",
    RuleLevel.NOTE,
    __doc__,
    find_rows_and_schema_changes,
    inspects=frozenset({"fields"}),
)
