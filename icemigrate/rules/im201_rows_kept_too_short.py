"""Rows are kept for less time than the project's minimum.

## Why

The minimum retention of rows often comes from the law or from company policy. The project file states it
once; `maintain` permanently deletes rows that are older than the table's `max_age`. Without a minimum, the
rule finds nothing.

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

Keep the rows for at least the minimum. If the table is an exception, say why: `# icemigrate: ignore IM201
because …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.retention import ROW_AGE, format_duration
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, RuleOptionSpec


def find_short_row_retention(changed: ChangedTable, options: RuleOptions) -> Iterator[RuleFinding]:
    """A new row retention below the minimum."""
    least, age = options.get("at_least"), changed.new_properties.get(ROW_AGE, "")
    if isinstance(least, int) and age.isdecimal() and int(age) < least:
        yield changed.finding(
            ("retention", "rows", "max_age"),
            f"rows of `{changed.name}` are kept for {format_duration(int(age))}; the project's minimum is "
            f"{format_duration(least)}",
        )


RULE = Rule(
    "IM201",
    "rows-kept-too-short",
    RuleLevel.ERROR,
    __doc__,
    find_short_row_retention,
    (RuleOptionSpec("at_least", None, "the minimum retention of rows, such as `365d`"),),
    inspects=frozenset({"properties"}),
)
