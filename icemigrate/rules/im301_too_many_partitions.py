"""The table will likely have too many partitions.

## Why

Every write creates a file in each partition that it touches. With many partitions, files are small, plans are
slow, and the metadata table `partitions` runs out of memory (public thread: apache/iceberg#7892). The rule
multiplies what it can know: 24 hours a day, 365 days a year, the number of buckets. Column values and
truncations count as one.

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

Use a coarser time transform or fewer buckets; `sort_by` lets readers skip files inside a partition. A
partition should contain some hundred megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from icemigrate.iceberg.partitioning import PartitionField
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, RuleOptionSpec

_A_YEAR = {"year": 1, "month": 12, "day": 365, "hour": 24 * 365}


def find_too_many_partitions(changed: ChangedTable, options: RuleOptions) -> Iterator[RuleFinding]:
    """A new layout with too many partitions a year."""
    most = options["at_most"]
    if not changed.new_partitions or changed.after is None or not isinstance(most, int):
        return
    number = _in_a_year(changed.after.spec.live)
    if number > most:
        yield changed.finding(
            ("partition_by",),
            f"`{changed.name}` will have about {number:,} partitions a year or more; the limit is {most:,}",
            "use a coarser time transform or fewer buckets, and sort by the other columns",
        )


def _in_a_year(fields: tuple[PartitionField, ...]) -> int:
    """Partitions a year; of several time transforms of one column only the finest counts."""
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
    RuleLevel.WARNING,
    __doc__,
    find_too_many_partitions,
    (RuleOptionSpec("at_most", 100_000, "the limit of partitions a year; the default is `100000`"),),
    inspects=frozenset({"spec"}),
)
