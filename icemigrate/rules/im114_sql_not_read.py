"""SQL, Python, a notebook, YAML or another file that names a changed table cannot be read.

## Why

icemigrate cannot search SQL, Python or YAML that it cannot parse, cells of notebooks in other languages,
files in other languages (Scala, shell, LookML), or a file with too many uses. Nor can it search a file that
is not UTF-8, is larger than 4 MiB, leads out of the repository, or that the system refuses to read. It
reports the location, because the code may use what changes.

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

Set the `dialect` of the path in the project file. Or review the code yourself and add `-- icemigrate:
ignore IM114 because it reads no changed column`, with `#` in Python and YAML. Save a file that is not UTF-8
as UTF-8.
"""

from __future__ import annotations

from icemigrate.rules.rule import Rule, RuleLevel

RULE = Rule("IM114", "sql-not-read", RuleLevel.WARNING, __doc__)
