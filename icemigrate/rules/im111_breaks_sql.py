"""SQL uses a column or a table that a migration renames or drops.

## Why

The queries, models and jobs in the repository are the readers that a check can find. If the project file
lists their paths (`impact`), icemigrate searches them for uses of what the migrations under review rename or
drop, through aliases, subqueries, views and models, and reports each use with its location.

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

Change the SQL in the same pull request. If it is deployed at another time, add a new column beside the old
one, and drop the old one when nothing uses it. To accept a use, add a comment to the SQL: `-- icemigrate:
ignore IM111 because this job is retired with the column`.
"""

from __future__ import annotations

from icemigrate.rules.rule import Rule, RuleLevel

RULE = Rule("IM111", "breaks-sql", RuleLevel.ERROR, __doc__)
