"""A column gets a wider type, and readers that fixed the old one may fail.

## Why

Old and new values read fine in every engine that follows the schema. Code that does not (a case class, a
Parquet reader with a schema of its own, a JDBC client that asks for an int) fails at the first value, or
cuts it.

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

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: int}]
---
tables:
  - name: db.orders
    columns: [{name: long_id, type: long}]
```

## Instead

Look for readers that name the type. The way back is open only while no file was written since, so move them
first.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.widen_type import WidenType
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.model.names import format_path
from icemigrate.model.type_text import format_type


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Every other type."""
    for change in touched.of(WidenType):
        yield touched.finding(
            change.subject,
            f"readers that take `{format_path(change.path)}` of `{touched.name}` for what it was may fail: "
            f"it becomes {format_type(change.new)}",
        )
    for work in touched.retypes:
        yield touched.finding(
            (*work.subject, "to"),
            f"readers that take `{work.column}` of `{touched.name}` for what it was may fail: "
            f"it becomes {work.to}",
        )


RULE = Rule("IM103", "retype", Level.NOTE, __doc__, find)
