"""SQL may use a column or a table that a migration takes away.

## Why

Not all SQL says whose a column is: a name without a table may belong to a table that no migration declares; a
star takes in what the table has; a list of values goes by position; a model that gives a column on
under a name of its own shields those who read it, if it is mended itself. What is likely, and cannot be
known, weighs less than what breaks for certain (IM111).

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
SELECT note FROM db.orders JOIN other.customers ON customer = id
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
SELECT c.note FROM db.orders AS o JOIN other.customers AS c ON c.customer = o.id
```

## Instead

Say whose the column is, name the columns instead of a star, and write tables with their namespace (or give
the paths a `namespace` in the project file).
"""

from __future__ import annotations

from icemigrate.checks.base import Level, Rule

RULE = Rule("IM112", "may-break-sql", Level.WARNING, __doc__)
