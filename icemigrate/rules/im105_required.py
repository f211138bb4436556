"""A column of an existing table becomes required, and writers that omit it fail.

## Why

A required column needs a value in every row that is written. Jobs that use the old list of columns fail as
soon as the migration is applied. A default (format version 3) fills the column only in Spark statements that
name their columns: statements that write values by position, Spark streams and other clients fail.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
allow: [incompatible]
tables:
  - name: db.orders
    columns: [{name: region, type: string, required: true}]
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
    columns: [{name: region, type: string}]
```

## Instead

Add the column as optional, make every writer fill it, fill the old rows, and make it required in a later
migration.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.make_required import MakeRequired
from icemigrate.iceberg.names import format_path
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions

_HINT = "add it as optional, and make it required once every writer fills it"


def find_required_columns(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New required columns of an existing table, and columns that become required."""
    for added in changed.changes_of_kind(AddColumn):
        field = changed.after.schema.find(added.path) if changed.after else None
        if field is not None and field.required:
            path = format_path(added.path)
            column = f"the new column `{path}` of `{changed.name}`"
            message, hint = f"writers that do not fill {column} fail", _HINT
            if field.write_default is not None:
                message += ", except Spark statements that name their columns: they use its default"
                hint = f"make every other writer fill it, or {_HINT}"
            yield changed.finding(added.subject, message, hint)
    for made in changed.changes_of_kind(MakeRequired):
        if made.was_required:
            continue
        path = format_path(made.path)
        message = f"writers that leave `{path}` of `{changed.name}` null fail after it becomes required"
        yield changed.finding(made.subject, message, "make sure that every writer fills it")


RULE = Rule(
    "IM105", "required", RuleLevel.WARNING, __doc__, find_required_columns, inspects=frozenset({"fields"})
)
