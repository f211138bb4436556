"""A column gets a wider type, and readers that rely on the old type may fail.

## Why

Engines that follow the table's schema read old and new values. Code that does not (a case class, a Parquet
reader with its own schema, a JDBC client that asks for an int) fails at the first new value, or truncates it.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: int}]
---
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: int}]
---
tables:
  - name: db.orders
    columns: [{name: long_id, type: long}]
```

## Instead

Find the readers that name the type and change them first: the migration can be rolled back only until a file
is written with the new type.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.widen_type import WidenType
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.type_text import format_type
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_type_changes(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Every change of a type, by widening or by `retype`."""
    for change in changed.changes_of_kind(WidenType):
        yield changed.finding(
            change.subject,
            f"readers that expect the old type of `{format_path(change.path)}` of `{changed.name}` may fail: "
            f"it becomes {format_type(change.new)}",
        )
    for work in changed.retypes:
        yield changed.finding(
            (*work.subject, "to"),
            f"readers that expect the old type of `{work.column}` of `{changed.name}` may fail: "
            f"it becomes {work.to}",
        )


RULE = Rule("IM103", "retype", RuleLevel.NOTE, __doc__, find_type_changes, inspects=frozenset({"fields"}))
