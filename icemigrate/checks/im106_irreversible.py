"""A step has no way back, with the consent of the file.

## Why

Every other step can be taken back by `icemigrate rollback`, some of them while a condition holds. A format
upgrade cannot: readers and writers that do not know the newer format version lose the table for good.

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

Keep it in a migration of its own, so that what stands beside it can still be taken back, and apply it where
every engine that touches the table has been tried with the newer version.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.base import Reversible
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Every change without a way back that the file consents to."""
    for planned in touched.changes:
        if planned.reversal.answer is Reversible.NO and touched.unconsented.isdisjoint(planned.hazards):
            message = f"`{touched.name}`: `{planned.text}` cannot be taken back: {planned.reversal.reason}"
            yield touched.finding(planned.change.subject, message, "keep it in a migration of its own")


RULE = Rule("IM106", "irreversible", Level.NOTE, __doc__, find)
