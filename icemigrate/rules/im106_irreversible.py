"""A change is irreversible, and its file consents to it.

## Why

`icemigrate rollback` can undo every other change, some of them only under a condition. It cannot undo a
format upgrade: readers and writers that do not support the newer format version can no longer use the table.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
allow: [irreversible]
tables:
  - {name: db.orders, format_version: 3}
```

## Good

```yaml
tables:
  - name: db.orders
    format_version: 3
    columns: [{name: id, type: long}]
```

## Instead

Put it in a migration of its own, so that other changes can still be rolled back. Apply it once every engine
that uses the table has been tested with the newer version.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import Reversibility
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_irreversible_changes(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Every irreversible change that the file consents to."""
    for planned in changed.changes:
        if planned.reversal.answer is Reversibility.NO and changed.unconsented.isdisjoint(planned.hazards):
            message = f"`{changed.name}`: `{planned.text}` cannot be undone: {planned.reversal.reason}"
            yield changed.finding(planned.change.subject, message, "put it in a migration of its own")


RULE = Rule("IM106", "irreversible", RuleLevel.NOTE, __doc__, find_irreversible_changes)
