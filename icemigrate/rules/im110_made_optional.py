"""A required column becomes optional, and readers may see nulls for the first time.

## Why

Readers that rely on a value (a join, a primitive type in code, a sum) fail or return wrong results at the
first null. The change can be rolled back only until a null is written.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
tables:
  - name: db.orders
    columns: [{name: id, required: false}]
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
    columns: [{name: other_id, type: long}]
```

## Instead

Keep the column required if writers can always provide a value. Otherwise update the readers first.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.make_optional import MakeOptional
from icemigrate.iceberg.names import format_path
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_columns_made_optional(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Every field that becomes optional."""
    for change in changed.changes_of_kind(MakeOptional):
        path = format_path(change.path)
        message = f"readers of `{path}` of `{changed.name}` may see nulls, which it never had"
        yield changed.finding(change.subject, message)


RULE = Rule(
    "IM110",
    "made-optional",
    RuleLevel.NOTE,
    __doc__,
    find_columns_made_optional,
    inspects=frozenset({"fields"}),
)
