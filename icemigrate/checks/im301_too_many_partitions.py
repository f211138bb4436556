"""The table will likely have more partitions than its readers and writers can bear.

## Why

Each partition has a file of its own at every write. With many of them files are small, plans are slow, and
the metadata table `partitions` runs out of memory (public thread: apache/iceberg#7892). The rule multiplies
what it can know: 24 hours a day, 365 days a year, the number of buckets. Values of a column and truncations
count as one.

```yaml
rules:
  IM301: {at_most: 200000}
```

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: region, type: string}, {name: at, type: timestamptz}]
    partition_by: [hour(at), "bucket(64, id)"]
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: region, type: string}, {name: at, type: timestamptz}]
    partition_by: [day(at), "bucket(16, id)"]
```

## Instead

Take the coarser time, or fewer buckets; `sort_by` lets readers skip files inside a partition. A partition
should hold some hundred megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from icemigrate.checks.base import Finding, Level, Option, Options, Rule, Touched
from icemigrate.model.partitioning import PartitionField

_A_YEAR = {"year": 1, "month": 12, "day": 365, "hour": 24 * 365}


def find(touched: Touched, options: Options) -> Iterator[Finding]:
    """A new layout with too many partitions a year."""
    most = options["at_most"]
    if not touched.new_partitions or touched.after is None or not isinstance(most, int):
        return
    number = _in_a_year(touched.after.spec.live)
    if number > most:
        yield touched.finding(
            ("partition_by",),
            f"`{touched.name}` will have some {number:,} partitions a year or more; {most:,} are many",
            "take a coarser time or fewer buckets, and sort by the rest",
        )


def _in_a_year(fields: tuple[PartitionField, ...]) -> int:
    """Of several times of one column only the finest counts."""
    times: dict[tuple[int, ...], int] = {}
    for field in fields:
        if field.transform.name in _A_YEAR:
            count = _A_YEAR[field.transform.name]
            times[field.source_ids] = max(count, times.get(field.source_ids, 1))
    buckets = (f.transform.width or 1 for f in fields if f.transform.name == "bucket")
    return prod(times.values()) * prod(buckets)


RULE = Rule(
    "IM301",
    "too-many-partitions",
    Level.WARNING,
    __doc__,
    find,
    (Option("at_most", 100_000, "how many partitions a year may be, `100000` by itself"),),
)
