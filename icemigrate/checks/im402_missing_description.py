"""A new table or column has no description.

## Why

What a column means is known to whoever adds it, on the day it is added. The description travels with the
table to every catalog and engine. Off unless the project turns it on.

```yaml
rules:
  IM402: warning
```

## Bad

```yaml
tables:
  - name: db.orders
    description: One row per order
    columns: [{name: id, type: long}]
```

## Good

```yaml
tables:
  - name: db.orders
    description: One row per order
    columns: [{name: id, type: long, description: As the shop numbers them}]
```

## Instead

Say what a reader cannot see: the unit, the clock, whose id it is, what null means.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched, column
from icemigrate.model.names import format_path
from icemigrate.model.table import DESCRIPTION_PROPERTY


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New tables and new columns; what is inside a column is left to its description."""
    if touched.after is None:
        return
    if touched.before is None and not touched.after.properties.get(DESCRIPTION_PROPERTY):
        yield touched.finding(("name",), f"table `{touched.name}` has no description")
    for path, field in touched.newly_named:
        if len(path) == 1 and not field.doc:
            yield touched.finding(
                column(path), f"`{format_path(path)}` of `{touched.name}` has no description"
            )


RULE = Rule("IM402", "missing-description", Level.OFF, __doc__, find)
