"""SQL uses a column whose type a migration under review changes.

## Why

A wider type alone breaks no query, but casts, unions, hashes and columns that are filled from it may rely on
the narrower type. The rule reports only migrations under review: it needs a `check` with a base, as in a pull
request.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: int}]
---
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
```

```sql
SELECT CAST(id AS int) FROM db.orders
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: int}, {name: note, type: string}]
---
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
```

```sql
SELECT note FROM db.orders
```

## Instead

Review each use: casts to the old type, columns of other tables that are filled from it, programs that fetch
it.
"""

from __future__ import annotations

from icemigrate.rules.rule import Rule, RuleLevel

RULE = Rule("IM113", "retyped-in-sql", RuleLevel.NOTE, __doc__)
