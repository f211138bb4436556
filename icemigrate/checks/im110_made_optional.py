"""A required column becomes optional, and nulls reach readers that never met one.

## Why

Readers that rely on the column (a join, a primitive type in code, a sum) fail or go wrong at the first
null. And the way back is open only while none was written.

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

Keep it required where writers can know a value; otherwise move the readers first.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.make_optional import MakeOptional
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.names import format_path


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Every field that may be null from now on."""
    for change in touched.of(MakeOptional):
        message = (
            f"readers of `{format_path(change.path)}` of `{touched.name}` may meet nulls, which it never had"
        )
        yield touched.finding(change.subject, message)


RULE = Rule("IM110", "made-optional", Level.NOTE, __doc__, find)
