"""SQL, Python, a notebook, YAML or dbt may use a column or a table that a migration renames or drops.

## Why

The code does not always say which table a column belongs to. In SQL, an unqualified name may belong to a
table that no migration declares; a star selects all columns, and a list of values depends on their order.
In Python and notebooks, a column can come through a list, or a DataFrame that another module provides. In
dbt, a column can be the argument of a macro, the value of a variable, or a key in YAML, and a model can
keep the old name for its own readers. A possible use has a lower level than a certain one (IM111).

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

Qualify the column, name columns instead of using a star, and write tables with their namespace (or set the
`namespace` of the paths in the project file). In Python, name the column where the DataFrame uses it. To
accept a use, add a comment: `-- icemigrate: ignore IM112 because the view keeps the name`, with `#` in
Python and YAML.
"""

from __future__ import annotations

from icemigrate.rules.rule import Rule, RuleLevel

RULE = Rule("IM112", "may-break-sql", RuleLevel.WARNING, __doc__)
