"""The table is partitioned by the very values of a column that likely has very many.

## Why

A partition for each timestamp, id or amount is a file for each row: writers run out of memory, and reading
the table's metadata takes longer than reading the table.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: region, type: string}, {name: at, type: timestamptz}]
    partition_by: [at]
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: region, type: string}, {name: at, type: timestamptz}]
    partition_by: [day(at), region]
```

## Instead

Times by `day(…)` or `month(…)`, ids by `bucket(16, …)`, texts and numbers by `truncate(…)`, or not at all:
`sort_by` serves look-ups of single values better. Where the column has few values in truth, say so: `#
icemigrate: ignore IM302 because …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.names import Path, format_path
from icemigrate.model.partitioning import IDENTITY
from icemigrate.model.types import Decimal, Field, Fixed, Primitive

_MANY = frozenset(
    {
        "float",
        "double",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "uuid",
        "binary",
    }
)
_NAMES = re.compile(
    r"(?i)(?:.*_)?(?:uuid|guid|email|url|hash|token|checksum)|id|(?:.*_)?"
    r"(?:user|customer|account|order|event|trade|session|request|transaction|message|device|visitor|trace|span)_?id"
)


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New partitions by identity of a type, an identifier or a name that has many values."""
    if touched.after is None:
        return
    schema = touched.after.schema
    for at, field in touched.new_partitions:
        if field.transform != IDENTITY or len(field.source_ids) != 1:
            continue
        path, source = schema.path_of(field.source_ids[0]), schema.by_id(field.source_ids[0])
        if path is None or source is None:
            continue
        is_alone = schema.identifier_ids == {source.id}
        if is_alone or _has_many(source):
            text = format_path(path)
            yield touched.finding(
                ("partition_by", str(at)),
                f"`{touched.name}` gets a partition for every value of `{text}`, and there may be very many",
                _instead(path, source),
            )


def _has_many(field: Field) -> bool:
    type_ = field.type
    if isinstance(type_, (Decimal, Fixed)):
        return True
    if not isinstance(type_, Primitive):
        return False
    has_name = _NAMES.fullmatch(field.name) is not None
    has_name = _NAMES.fullmatch(field.name) is not None
    return type_.name in _MANY or (has_name and type_.name in ("int", "long", "string"))


def _instead(path: Path, field: Field) -> str:
    text = format_path(path)
    name = field.type.name if isinstance(field.type, Primitive) else ""
    if name.startswith("timestamp"):
        return f"take `day({text})`"
    if name in ("float", "double"):
        return "leave it away; `sort_by` lets readers skip files"
    return f"take `bucket(16, {text})`, or leave it away and sort by it"


RULE = Rule("IM302", "high-cardinality-partition", Level.WARNING, __doc__, find)
