"""Iceberg cannot read the value of a table property.

## Why

Iceberg stores every value and reads it later: `512MB` for a number of bytes makes every write fail; `yes` for
a flag silently means `false`.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
    properties: {write.target-file-size-bytes: 512MB}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
    properties: {write.target-file-size-bytes: 536870912}
```

## Instead

Write plain numbers of bytes or milliseconds, `true` or `false`, or one of the words in the hint.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import bytes_of_size, did_you_mean
from icemigrate.iceberg.table import DISTRIBUTION_PROPERTY
from icemigrate.rules.known_properties import (
    PREFIXED,
    PREFIXES,
    PROPERTIES,
    PropertyKind,
    property_value_problem,
)
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_invalid_property_values(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New values of known properties that Iceberg cannot read."""
    for key, value in changed.new_properties.items():
        kind = _kind(key)
        if kind is not None and (reason := property_value_problem(kind, value)):
            near = did_you_mean(value, kind) if isinstance(kind, tuple) else _bytes_hint(key, value)
            yield changed.finding(
                ("properties", key),
                f"`{key}` of `{changed.name}` cannot be `{value}`: expected {reason}",
                near,
            )


def _bytes_hint(key: str, value: str) -> str | None:
    """The number of bytes that a size with a unit can be for."""
    size = bytes_of_size(value) if "size" in key or "bytes" in key else None
    return None if size is None else f"write the number of bytes: {size}"


def _kind(key: str) -> PropertyKind | None:
    if key == DISTRIBUTION_PROPERTY:
        return None  # Validated with the table.
    if key in PROPERTIES:
        return PROPERTIES[key]
    if not key.startswith(PREFIXES):
        return None
    return next(kind for prefix, kind in PREFIXED.items() if key.startswith(prefix))


RULE = Rule(
    "IM502",
    "property-value",
    RuleLevel.ERROR,
    __doc__,
    find_invalid_property_values,
    inspects=frozenset({"properties"}),
)
