"""One migration changes the columns of a table and its rows, or how long they are kept.

## Why

A rollback takes back the change of the columns and the policy, but not what `maintain` deleted under it
meanwhile. Apart, each can be taken back alone: a wrong column does not hold up the deletion that the law
asks for, and the other way round. The same with a `backfill` that overwrites values: its rows go back only
while no newer ones are there, and the columns would wait with them.

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

from icemigrate.changes.base import Phase
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.retention import ROW_AGE

_COLUMNS = frozenset({Phase.DROP, Phase.RENAME, Phase.ALTER, Phase.RESTORE, Phase.ADD})


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Rows that are overwritten or get another age to go, beside a change of the columns of a table there."""
    if touched.before is None or not any(p.change.phase in _COLUMNS for p in touched.changes):
        return
    for planned in touched.plan.rows:
        if planned.overwrites:
            yield touched.finding(
                planned.work.subject,
                f"values of `{touched.name}` are overwritten in the migration that changes its columns",
                "write two migrations, so that the columns can be taken back when newer rows are there",
            )
    if ROW_AGE in touched.new_properties:
        yield touched.finding(
            ("retention", "rows"),
            f"rows of `{touched.name}` get another age to go in the migration that changes its columns",
            "write two migrations, so that each can be taken back alone",
        )


RULE = Rule("IM107", "rows-and-schema", Level.NOTE, __doc__, find)
