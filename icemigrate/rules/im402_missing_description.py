"""A new table or column has no description.

## Why

The author of a column knows what it means on the day it is added. The description travels with the table to
every catalog and engine. The rule is off by default.

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

Describe what a reader cannot see: the unit, the time zone, the source of an id, the meaning of null.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import DESCRIPTION_PROPERTY
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, column_subject


def find_missing_descriptions(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New tables and new top-level columns without a description."""
    if changed.after is None:
        return
    if changed.before is None and not changed.after.properties.get(DESCRIPTION_PROPERTY):
        yield changed.finding(("name",), f"table `{changed.name}` has no description")
    for path, field in changed.newly_named:
        if len(path) == 1 and not field.doc:
            yield changed.finding(
                column_subject(path), f"`{format_path(path)}` of `{changed.name}` has no description"
            )


RULE = Rule(
    "IM402",
    "missing-description",
    RuleLevel.OFF,
    __doc__,
    find_missing_descriptions,
    inspects=frozenset({"fields"}),
)
