"""Files are rewritten, and the values of columns that were dropped before are gone with the old ones.

## Why

A dropped column comes back with its values for as long as the data files hold them. Rewriting writes new
files under the schema of now, in which the column is not: from then on `rollback` and `restore_columns` bring
it back empty. Its values are left in the snapshots before, for as long as those are kept.

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

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.data.rewrite import Rewrite


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """A rewriting of a table that columns were dropped from."""
    for planned in touched.plan.rows:
        if isinstance(planned.work, Rewrite) and planned.work.ends:
            names = ", ".join(f"`{name}`" for name in planned.work.ends)
            yield touched.finding(
                planned.work.subject,
                f"the rewriting of `{touched.name}` ends the way back of {names}: the new files do not have "
                "the values",
                "rewrite first and drop in a later migration, or see that nobody wants them back",
            )


RULE = Rule("IM304", "rewrite-ends-return", Level.WARNING, __doc__, find)
