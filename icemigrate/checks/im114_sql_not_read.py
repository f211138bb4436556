"""SQL that says the name of a table at stake cannot be read, so that nobody knows what it uses.

## Why

What cannot be parsed is not searched. It stops nothing, but it is told with its place, since it may hold a
use.

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
SELECT note FORM db.orders
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
SELECT remark FROM db.orders
```

## Instead

Give the path its `dialect` in the project file; look at the statement by eye; or say that it was looked at:
`-- icemigrate: ignore IM114 because it reads no changed column`.
"""

from __future__ import annotations

from icemigrate.checks.base import Level, Rule

RULE = Rule("IM114", "sql-not-read", Level.WARNING, __doc__)
