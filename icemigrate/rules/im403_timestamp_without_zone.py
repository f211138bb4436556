"""A new timestamp column has no time zone, and its description names none.

## Why

Iceberg's `timestamp` is a local time: the same value is a different instant in each time zone, and two
instants when the clocks go back. `timestamptz` is an instant. Spark's name for `timestamptz` is `timestamp`,
so the type is often chosen by mistake.

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

Use `timestamptz` for an instant. Otherwise, or if the source gives no zone, name the clock in the
description: the rule accepts one with `UTC`, `zone` or `local` in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.types import Primitive
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, column_subject

_WITHOUT = {"timestamp": "timestamptz", "timestamp_ns": "timestamptz_ns"}
_CLOCK = re.compile(r"(?i)\b(utc|gmt|local|time ?zone|zone|wall|[A-Z][a-z]+/[A-Z][a-z_]+)\b")


def find_timestamps_without_zone(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New timestamp fields without a zone whose description names no clock."""
    for path, field in changed.added:
        if not isinstance(field.type, Primitive) or field.type.name not in _WITHOUT:
            continue
        if field.doc and _CLOCK.search(field.doc):
            continue
        yield changed.finding(
            column_subject(path, "type"),
            f"`{format_path(path)}` of `{changed.name}` is a timestamp without a time zone",
            f"use `{_WITHOUT[field.type.name]}` for an instant, or name the time zone in the description",
        )


RULE = Rule(
    "IM403",
    "timestamp-without-zone",
    RuleLevel.NOTE,
    __doc__,
    find_timestamps_without_zone,
    inspects=frozenset({"fields"}),
)
