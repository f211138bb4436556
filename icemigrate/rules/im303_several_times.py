"""The table is partitioned by several time transforms of one column.

## Why

Days are parts of months, so `month(at)` in addition to `day(at)` does not reduce the rows that are read and
only makes paths longer. Iceberg refuses both in one change, but accepts them in two.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: region, type: string}, {name: at, type: timestamptz}]
    partition_by: [month(at)]
---
tables:
  - name: db.orders
    partition_by: [month(at), day(at)]
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: region, type: string}, {name: at, type: timestamptz}]
    partition_by: [month(at)]
---
tables:
  - name: db.orders
    partition_by: [day(at)]
```

## Instead

Keep only the finer one. Filters on the column use it for months and years too.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import TIME_TRANSFORMS
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_several_time_partitions(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """A new time transform of a column that the table is also partitioned by another time transform of."""
    if changed.after is None:
        return
    for at, field in changed.new_partitions:
        others = [
            f.transform.name
            for f in changed.after.spec.live
            if f.source_ids == field.source_ids and f.transform.name in TIME_TRANSFORMS and f is not field
        ]
        if others and field.transform.name in TIME_TRANSFORMS:
            path = changed.after.schema.path_of(field.source_ids[0]) or ()
            yield changed.finding(
                ("partition_by", str(at)),
                f"`{changed.name}` is partitioned by {field.transform.name} and by {' and '.join(others)} of "
                f"`{format_path(path)}`",
                "keep only the finest: filters on the column use it for the coarser ones too",
            )


RULE = Rule(
    "IM303",
    "several-times",
    RuleLevel.WARNING,
    __doc__,
    find_several_time_partitions,
    inspects=frozenset({"spec"}),
)
