"""A column or a table gets another name, and what reads it by the old one fails.

## Why

Iceberg keeps the values, since they belong to the field id; but queries, views, dashboards and jobs name
columns, and fail from the moment the migration is applied.

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

Where readers cannot change at the same time: add the new column, let writers fill both, move the readers,
drop the old one. Or keep the old name in a view. Where all readers are known and change with the migration,
say so: `# icemigrate: ignore IM102 because …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.rename_table import RenameTable
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.checks.im109_name_taken_over import taken_over
from icemigrate.model.names import format_path

_HINT = "change the readers with it, or add a column and let the old one stay for a while"


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Every rename, but one whose old name means something else now: that is another rule."""
    elsewhere = {change.field_id for change, _ in taken_over(touched)}
    for rename in touched.renames:
        if rename.field_id not in elsewhere:
            old = format_path(rename.path)
            message = f"what reads `{old}` of `{touched.name}` by its name fails after the rename"
            yield touched.finding(rename.subject, message, _HINT)
    for table in touched.of(RenameTable):
        message = f"what reads `{touched.plan.formerly}` fails once it is called `{touched.name}`"
        yield touched.finding(
            table.subject, message, "change the readers with it, or keep a view under the old name"
        )


RULE = Rule("IM102", "rename", Level.WARNING, __doc__, find)
