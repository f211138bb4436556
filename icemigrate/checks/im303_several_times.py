"""The table is partitioned by several times of one column.

## Why

Days lie within months, so `month(at)` beside `day(at)` gives no fewer rows to read and only longer paths.
Iceberg refuses both in one change; over two migrations it lets them pass.

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

Keep the finer one alone. Filters on the column use it for months and years as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.names import format_path
from icemigrate.model.partitioning import TIME_TRANSFORMS


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """A new time of a column that the table is partitioned by another time of."""
    if touched.after is None:
        return
    for at, field in touched.new_partitions:
        others = [
            f.transform.name
            for f in touched.after.spec.live
            if f.source_ids == field.source_ids and f.transform.name in TIME_TRANSFORMS and f is not field
        ]
        if others and field.transform.name in TIME_TRANSFORMS:
            path = touched.after.schema.path_of(field.source_ids[0]) or ()
            yield touched.finding(
                ("partition_by", str(at)),
                f"`{touched.name}` is partitioned by {field.transform.name} and by {' and '.join(others)} of "
                f"`{format_path(path)}`",
                "keep the finest alone: filters on the column use it for the coarser ones too",
            )


RULE = Rule("IM303", "several-times", Level.WARNING, __doc__, find)
