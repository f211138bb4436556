"""Rows are kept for a shorter time than the project's minimum.

## Why

How long rows must be kept is often not the table's matter but the law's or the company's. The project file
states it once; `maintain` deletes for good what a table says beyond it. Without a stated minimum the rule
finds nothing.

```yaml
rules:
  IM201: {at_least: 365d}
```

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    retention: {rows: {column: at, max_age: 30d}}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}, {name: at, type: timestamptz}]
    retention: {rows: {column: at, max_age: 400d}}
```

## Instead

Keep the rows for as long as is stated. Where the table is an exception, say why:
`# icemigrate: ignore IM201 because …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Option, Options, Rule, Touched
from icemigrate.model.retention import ROW_AGE, format_duration


def find(touched: Touched, options: Options) -> Iterator[Finding]:
    """A new row retention below the minimum."""
    least, age = options.get("at_least"), touched.new_properties.get(ROW_AGE, "")
    if isinstance(least, int) and age.isdecimal() and int(age) < least:
        yield touched.finding(
            ("retention", "rows", "max_age"),
            f"rows of `{touched.name}` are kept for {format_duration(int(age))}; the project wants "
            f"{format_duration(least)} at least",
        )


RULE = Rule(
    "IM201",
    "rows-kept-too-short",
    Level.ERROR,
    __doc__,
    find,
    (Option("at_least", None, "how long rows are to be kept at least, such as `365d`"),),
)
