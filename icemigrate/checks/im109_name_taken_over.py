"""A column is renamed, and another one takes its name: readers go on, with other values.

## Why

After a rename alone, what reads the old name fails, and somebody sees it. Where another column has that
name in the same migration, nothing fails: reports show other numbers, and writers that fill columns by name
fill the wrong one.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: net, type: long}, {name: gross, type: long}]
---
tables:
  - {name: db.orders, renames: {net: gross, gross: net}}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: net, type: long}, {name: gross, type: long}]
---
tables:
  - {name: db.orders, renames: {net: net_amount, gross: gross_amount}}
```

## Instead

Give both new names, so that what was not moved fails instead of being wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.rename_column import RenameColumn
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.names import format_path
from icemigrate.model.types import Field


def taken_over(touched: Touched) -> Iterator[tuple[RenameColumn, Field]]:
    """The renames of columns whose old name another column has afterwards, with that column."""
    if touched.after is None:
        return
    for rename in touched.of(RenameColumn):
        other = touched.after.schema.find(rename.path)
        if other is not None and other.id != rename.field_id:
            yield rename, other


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Every name that means another column after the migration."""
    for rename, _ in taken_over(touched):
        yield touched.finding(
            rename.subject,
            f"`{format_path(rename.path)}` of `{touched.name}` is another column after the migration: "
            "what reads it by name goes on with other values",
            "give the columns names that neither had, so that what was not moved fails",
        )


RULE = Rule("IM109", "name-taken-over", Level.WARNING, __doc__, find)
