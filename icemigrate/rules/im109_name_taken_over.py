"""A column is renamed and another column takes its name: readers silently get other values.

## Why

After a rename alone, a reader of the old name fails, and the failure is noticed. If another column takes that
name in the same migration, nothing fails: reports show other numbers, and writers that fill columns by name
fill the wrong one.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: net, type: long}, {name: gross, type: long}]
---
tables:
  - {name: db.orders, renames: {net: gross, gross: net}}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: net, type: long}, {name: gross, type: long}]
---
tables:
  - {name: db.orders, renames: {net: net_amount, gross: gross_amount}}
```

## Instead

Give both columns new names, so that readers that were not updated fail instead of returning wrong values.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.rename_column import RenameColumn
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.types import Field
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def renames_with_name_taken_over(changed: ChangedTable) -> Iterator[tuple[RenameColumn, Field]]:
    """The renames of columns whose old name another column has afterwards, with that column."""
    if changed.after is None:
        return
    for rename in changed.changes_of_kind(RenameColumn):
        other = changed.after.schema.find(rename.path)
        if other is not None and other.id != rename.field_id:
            yield rename, other


def find_names_taken_over(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Every name that means another column after the migration."""
    for rename, _ in renames_with_name_taken_over(changed):
        yield changed.finding(
            rename.subject,
            f"`{format_path(rename.path)}` of `{changed.name}` is a different column after the migration: "
            "its readers silently get other values",
            "give both columns new names, so that readers that were not updated fail",
        )


RULE = Rule(
    "IM109",
    "name-taken-over",
    RuleLevel.WARNING,
    __doc__,
    find_names_taken_over,
    inspects=frozenset({"fields"}),
)
