"""A new column has the name of one that was dropped, and the old values stay hidden.

## Why

Iceberg knows columns by field ids. A new column of the old name has a new id, so every row that was written
before reads null, though its value is still in the file; and a reader of an old snapshot sees another
column under the same name.

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
---
tables:
  - name: db.orders
    columns: [{name: note, type: string}]
```

## Good

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
---
tables:
  - name: db.orders
    restore_columns: [note]
```

## Instead

`restore_columns` brings the column back under its own field id, with its values. Where another thing is
meant, give it another name.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched, column
from icemigrate.model.names import format_path


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New fields at the path of a dropped one."""
    if touched.before is None or touched.after is None or not touched.after.dropped:
        return
    dropped = {d.path for d in touched.after.dropped}
    for path, _ in touched.newly_named:
        if path in dropped:
            text = format_path(path)
            yield touched.finding(
                column(path),
                f"the new column `{text}` of `{touched.name}` has no values of the one that was dropped",
                f"`restore_columns: [{text}]` brings that one back; give another one another name",
            )


RULE = Rule("IM108", "name-reused", Level.WARNING, __doc__, find)
