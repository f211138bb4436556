"""Rows are written anew, and the values of columns that were dropped before are gone with the old files.

## Why

A dropped column comes back with its values for as long as the data files hold them. Rewriting writes new
files under the schema of now, in which the column is not: from then on `rollback` and `restore_columns` bring
it back empty. Its values are left in the snapshots before, for as long as those are kept. A `backfill` or a
`retype` does the same to the rows that it writes.

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

Rewrite first and drop afterwards, or wait with the rewriting until nobody wants the column back. Where it is
meant to end the return, say so in an ignore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.data.base import RowWork, Stage, gone_before
from icemigrate.data.rewrite import Rewrite


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Rows written anew of a table that columns were dropped from; of several steps the first is named."""
    told = set[str]()
    for work in (planned.work for planned in touched.plan.rows):
        ended = [name for name in _ended(work, touched) if name not in told]
        told.update(ended)
        if ended:
            names = ", ".join(f"`{name}`" for name in ended)
            yield touched.finding(
                work.subject,
                f"`{work.kind}` of `{touched.name}` ends the way back of {names}: "
                "the files that it writes do not have the values",
                "do it first and drop in a later migration, or see that nobody wants them back",
            )


def _ended(work: RowWork, touched: Touched) -> Iterable[str]:
    """What cannot be brought back by its files any more."""
    if isinstance(work, Rewrite):
        return work.ends
    return gone_before(touched.before, touched.after) if work.stage is Stage.WRITE else ()


RULE = Rule("IM304", "rewrite-ends-return", Level.WARNING, __doc__, find)
