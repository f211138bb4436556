"""A column or a table goes, and what reads it fails.

## Why

That values are lost is one thing (IM101); that every query, view and job that names the column fails at
once is another, and the one that is noticed at night.

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
    columns: [{name: note, description: Not filled any more}]
```

## Instead

Mark the column in its description, see who still reads it, move them, then drop it. Once that is done, say
so: `# icemigrate: ignore IM104 because nothing has read it since May`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_table import DropTable
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.names import format_path

_HINT = "see that nothing reads it any more, then say so: `# icemigrate: ignore IM104 because …`"


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Every column and every table that goes, but a column that is made anew under its name."""
    for change in touched.of(DropColumn):
        if touched.after is None or touched.after.schema.find(change.path) is None:
            message = f"what reads `{format_path(change.path)}` of `{touched.name}` fails once it is dropped"
            yield touched.finding(change.subject, message, _HINT)
    for table in touched.of(DropTable):
        yield touched.finding(table.subject, f"what reads `{touched.name}` fails once it is dropped", _HINT)


RULE = Rule("IM104", "drop", Level.WARNING, __doc__, find)
