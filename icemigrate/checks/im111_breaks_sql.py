"""SQL uses a column or a table that a migration takes away.

## Why

The queries, models and jobs in the repository are the readers that one can know. Where the project file names
them (`impact`), they are searched for what the migrations under review rename and drop, through aliases,
subqueries, views and models, and each use is told with its place.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: note, type: string}]
---
tables:
  - {name: db.orders, renames: {note: remark}}
```

```sql
SELECT o.note FROM db.orders AS o
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: note, type: string}]
---
tables:
  - {name: db.orders, renames: {note: remark}}
```

```sql
SELECT o.remark FROM db.orders AS o
```

## Instead

Change the SQL in the same pull request. Where it is deployed at another time, add a column beside the old one
and drop that when nothing uses it any more. What is meant all the same is said in the SQL:
`-- icemigrate: ignore IM111 because this job is retired with the column`.
"""

from __future__ import annotations

from icemigrate.checks.base import Level, Rule

RULE = Rule("IM111", "breaks-sql", Level.ERROR, __doc__)
