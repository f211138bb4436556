"""SQL uses a column that a migration under review gives another type.

## Why

A wider type breaks no query by itself, but casts, unions, hashes and what is written from it may rely on the
narrower one. It is told of what is under review alone: `check` with a base, as in a pull request.

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

Look at each use: casts to the old type, columns of other tables that are filled from it, programs that fetch
it.
"""

from __future__ import annotations

from icemigrate.checks.base import Level, Rule

RULE = Rule("IM113", "retyped-in-sql", Level.NOTE, __doc__)
