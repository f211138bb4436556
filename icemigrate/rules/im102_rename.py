"""A column or a table is renamed, and readers that use the old name fail.

## Why

Iceberg keeps the values, because they belong to the field id. But queries, views, dashboards and jobs refer
to columns by name, and fail as soon as the migration is applied.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
tables:
  - {name: db.orders, renames: {note: remark}}
```

## Good

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
tables:
  - name: db.orders
    columns: [{name: remark, type: string, description: Takes the place of note}]
```

## Instead

If readers cannot change at the same time, add the new column, have writers fill both, move the readers, then
drop the old one. Or write `keep_view: 30d` beside `renames`: a view keeps the old names readable, and
`maintain` drops it after its time. If all readers are known and change with the migration, add
`# icemigrate: ignore IM102 because …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.keep_view import KeepView
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.rename_table import RenameTable
from icemigrate.iceberg.names import format_path
from icemigrate.rules.im109_name_taken_over import renames_with_name_taken_over
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions

_NESTED_HINT = "update the readers at the same time, or add a new column and keep the old one for a while"
_COLUMN_HINT = "update the readers at the same time, or keep the old names readable with `keep_view`"


def find_renames(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Every rename, except one whose old name another column takes over: IM109 reports that."""
    taken_over = {change.field_id for change, _ in renames_with_name_taken_over(changed)}
    for rename in changed.renames:
        if rename.field_id not in taken_over:
            message = f"readers of `{format_path(rename.path)}` of `{changed.name}` fail after the rename"
            yield changed.finding(rename.subject, message, _hint(changed, rename))
    for table in changed.changes_of_kind(RenameTable):
        message = f"readers of `{changed.plan.formerly}` fail after it is renamed to `{changed.name}`"
        yield changed.finding(
            table.subject,
            message,
            "update the readers at the same time, or create a view with the old name after the rename",
        )


def _hint(changed: ChangedTable, rename: RenameColumn) -> str:
    """What readers of a renamed field can do."""
    if len(rename.path) > 1:
        return _NESTED_HINT
    kept = next(changed.changes_of_kind(KeepView), None)
    return _COLUMN_HINT if kept is None else f"readers can use view `{kept.view_name}` until they are updated"


RULE = Rule("IM102", "rename", RuleLevel.WARNING, __doc__, find_renames, inspects=frozenset({"fields"}))
