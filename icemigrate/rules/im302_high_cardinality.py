"""The table is partitioned by the plain values of a column that likely has very many.

## Why

One partition for each timestamp, id or amount means one file for each row: writers run out of memory, and
reading the table's metadata takes longer than reading its rows.

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

Partition times by `day(…)` or `month(…)`, ids by `bucket(16, …)`, strings and numbers by `truncate(…)`, or
not at all: `sort_by` is better for lookups of single values. If the column has few values, add `# icemigrate:
ignore IM302 because …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partitioning import IDENTITY
from icemigrate.iceberg.types import Decimal, Field, Fixed, Primitive
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions

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


def find_high_cardinality_partitions(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New identity partitions by a column whose type, name or role as identifier suggests many values."""
    if changed.after is None:
        return
    schema = changed.after.schema
    for at, field in changed.new_partitions:
        if field.transform != IDENTITY or len(field.source_ids) != 1:
            continue
        path, source = schema.path_of(field.source_ids[0]), schema.by_id(field.source_ids[0])
        if path is None or source is None:
            continue
        is_alone = schema.identifier_ids == {source.id}
        if is_alone or _has_many(source):
            text = format_path(path)
            yield changed.finding(
                ("partition_by", str(at)),
                f"`{changed.name}` gets a partition for every value of `{text}`, which may have very many",
                _partition_suggestion(path, source),
            )


def _has_many(field: Field) -> bool:
    type_ = field.type
    if isinstance(type_, (Decimal, Fixed)):
        return True
    if not isinstance(type_, Primitive):
        return False
    has_name = _NAMES.fullmatch(field.name) is not None
    return type_.name in _MANY or (has_name and type_.name in ("int", "long", "string"))


def _partition_suggestion(path: FieldPath, field: Field) -> str:
    text = format_path(path)
    name = field.type.name if isinstance(field.type, Primitive) else ""
    if name.startswith("timestamp"):
        return f"use `day({text})`"
    if name in ("float", "double"):
        return "remove it; `sort_by` lets readers skip files"
    return f"use `bucket(16, {text})`, or remove it and use `sort_by`"


RULE = Rule(
    "IM302",
    "high-cardinality-partition",
    RuleLevel.WARNING,
    __doc__,
    find_high_cardinality_partitions,
    inspects=frozenset({"spec"}),
)
