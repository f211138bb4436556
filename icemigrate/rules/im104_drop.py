"""A column or a table is dropped, and its readers fail.

## Why

IM101 reports that values are lost. This rule reports that every query, view and job that names the column
fails as soon as the migration is applied.

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
    columns: [{name: note, description: Not filled any more}]
```

## Instead

Mark the column as deprecated in its description, find its remaining readers, move them, then drop it. Once
that is done, add `# icemigrate: ignore IM104 because nothing has read it since May`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_table import DropTable
from icemigrate.iceberg.names import format_path
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions

_HINT = "make sure that nothing reads it, then add `# icemigrate: ignore IM104 because …`"


def find_drops(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Every dropped column and table, except a column that the migration adds again under its name."""
    for change in changed.changes_of_kind(DropColumn):
        if changed.after is None or changed.after.schema.find(change.path) is None:
            message = f"readers of `{format_path(change.path)}` of `{changed.name}` fail after it is dropped"
            yield changed.finding(change.subject, message, _HINT)
    for table in changed.changes_of_kind(DropTable):
        yield changed.finding(table.subject, f"readers of `{changed.name}` fail after it is dropped", _HINT)


RULE = Rule("IM104", "drop", RuleLevel.WARNING, __doc__, find_drops, inspects=frozenset({"fields"}))
