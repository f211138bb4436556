"""A column of an existing table becomes required, and writers that leave it out fail.

## Why

A required column must have a value in every row that is written. Jobs that run with the old list of columns
fail from the moment the migration is applied, whether or not the column has a default: most engines fill it
in only where the statement names the other columns.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
allow: [incompatible]
tables:
  - name: db.orders
    columns: [{name: region, type: string, required: true}]
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
    columns: [{name: region, type: string}]
```

## Instead

Add it optional, let every writer fill it, fill the old rows, and make it required in a later migration.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.make_required import MakeRequired
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.names import format_path

_HINT = "add it optional first, and make it required when every writer fills it"


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New required columns of a table that is there, and columns that become required."""
    for added in touched.of(AddColumn):
        field = touched.after.schema.find(added.path) if touched.after else None
        if field is not None and field.required:
            path = format_path(added.path)
            message = f"writers that do not fill the new column `{path}` of `{touched.name}` fail"
            yield touched.finding(added.subject, message, _HINT)
    for made in touched.of(MakeRequired):
        path = format_path(made.path)
        message = f"writers that leave `{path}` of `{touched.name}` empty fail once it is required"
        yield touched.finding(made.subject, message, "see that every writer fills it")


RULE = Rule("IM105", "required", Level.WARNING, __doc__, find)
