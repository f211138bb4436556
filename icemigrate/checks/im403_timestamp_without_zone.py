"""A new column is a timestamp without a zone, and nothing says whose clock it shows.

## Why

`timestamp` in Iceberg is a clock on a wall: the same value is another moment in every zone, twice a moment
when the clocks go back. `timestamptz` is a moment. Spark calls the second one `timestamp`, so the word is
often chosen by mistake.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: created_at, type: timestamp}]
```

## Good

```yaml
tables:
  - name: db.orders
    columns:
      - {name: created_at, type: timestamptz}
      - {name: opens_at, type: timestamp, description: Local time of the shop}
```

## Instead

Write `timestamptz` where a moment is meant. Where it is not, or the source gives no zone, let the
description name the clock: with `UTC`, `zone` or `local` in it the rule is content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched, column
from icemigrate.model.names import format_path
from icemigrate.model.types import Primitive

_WITHOUT = {"timestamp": "timestamptz", "timestamp_ns": "timestamptz_ns"}
_CLOCK = re.compile(r"(?i)\b(utc|gmt|local|time ?zone|zone|wall|[A-Z][a-z]+/[A-Z][a-z_]+)\b")


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New fields of these types whose description names no clock."""
    for path, field in touched.added:
        if not isinstance(field.type, Primitive) or field.type.name not in _WITHOUT:
            continue
        if field.doc and _CLOCK.search(field.doc):
            continue
        yield touched.finding(
            column(path, "type"),
            f"`{format_path(path)}` of `{touched.name}` is a timestamp without a zone",
            f"`{_WITHOUT[field.type.name]}` is a moment; else let the description say whose clock it is",
        )


RULE = Rule("IM403", "timestamp-without-zone", Level.NOTE, __doc__, find)
