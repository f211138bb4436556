"""Rows are rewritten, and values of columns that were dropped before return only by a refill.

## Why

A dropped column can be restored with its values while the data files contain them. A rewrite writes new files
with the current schema, which does not have the column. The values remain only in older snapshots, until
those expire. From then on the values return only by a refill (`rollback --refill`, or `restore_columns` with
`refill: true`), which takes long and needs the tag of the migration (`record: history` sets none). Without a
refill the column returns empty. A `backfill` or a `retype` does the same to the rows that it writes.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
allow: [destructive]
tables:
  - {name: db.orders, drop_columns: [note]}
---
tables:
  - name: db.orders
    partition_by: ["bucket(16, id) as part"]
    rewrite: {partitions: old}
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
    partition_by: ["bucket(16, id) as part"]
    rewrite: {partitions: old}
---
allow: [destructive]
tables:
  - {name: db.orders, drop_columns: [note]}
```

## Instead

Rewrite first and drop afterwards, or postpone the rewrite until the values are no longer needed. If the
values should be lost, say so in an ignore comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.data_steps.data_step_kind import DataStepStage, TableDataStep, earlier_dropped_paths
from icemigrate.data_steps.rewrite import Rewrite
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_rewrites_of_dropped_columns(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """The first data step that rewrites rows of a table from which columns were dropped, by column."""
    reported = set[str]()
    for work in (planned.work for planned in changed.plan.rows):
        lost = [name for name in _lost_columns(work, changed) if name not in reported]
        reported.update(lost)
        if lost:
            names = ", ".join(f"`{name}`" for name in lost)
            yield changed.finding(
                work.subject,
                f"after `{work.kind}` of `{changed.name}`, the values of {names} return only by a refill: "
                "the new files do not contain them",
                f"put `{work.kind}` into a migration before the drop, or accept that `--refill` is needed",
            )


def _lost_columns(work: TableDataStep, changed: ChangedTable) -> Iterable[str]:
    """Dropped columns whose values the data step removes from the data files."""
    if isinstance(work, Rewrite):
        return work.ends
    return earlier_dropped_paths(changed.before, changed.after) if work.stage is DataStepStage.WRITE else ()


RULE = Rule(
    "IM304",
    "rewrite-ends-return",
    RuleLevel.WARNING,
    __doc__,
    find_rewrites_of_dropped_columns,
    inspects=frozenset(),
)
