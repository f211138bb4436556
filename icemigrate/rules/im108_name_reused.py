"""A new column has the name of a dropped column, and the old values stay hidden.

## Why

Iceberg identifies columns by field id. A new column with the old name has a new id, so it is null in every
row that was written before, although the old value is still in the file. A reader of an old snapshot sees a
different column under the same name.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
allow: [destructive]
tables:
  - {name: db.orders, drop_columns: [note]}
---
tables:
  - name: db.orders
    columns: [{name: note, type: string}]
```

## Good

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
allow: [destructive]
tables:
  - {name: db.orders, drop_columns: [note]}
---
tables:
  - name: db.orders
    restore_columns: [note]
```

## Instead

`restore_columns` restores the column under its own field id, with its values. If you mean a different column,
give it a different name.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.names import format_path
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, column_subject


def find_reused_names(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New fields at the path of a dropped one."""
    if changed.before is None or changed.after is None or not changed.after.dropped:
        return
    dropped = {d.path for d in changed.after.dropped}
    for path, _ in changed.newly_named:
        if path in dropped:
            text = format_path(path)
            yield changed.finding(
                column_subject(path),
                f"the new column `{text}` of `{changed.name}` does not have the values of the dropped one",
                f"`restore_columns: [{text}]` restores the old one; a different column needs a new name",
            )


RULE = Rule(
    "IM108", "name-reused", RuleLevel.WARNING, __doc__, find_reused_names, inspects=frozenset({"fields"})
)
