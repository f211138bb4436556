"""The value of a table property is none that Iceberg can read.

## Why

Iceberg keeps every value and reads it later: `512MB` for a number of bytes makes every write fail, `yes`
for a flag is taken for `false` without a word.

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

Write plain numbers of bytes or milliseconds, `true` or `false`, and the words that the hint lists.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.checks.known_properties import PREFIXED, PREFIXES, PROPERTIES, Kind, wrong
from icemigrate.diagnostics import did_you_mean
from icemigrate.model.table import DISTRIBUTION_PROPERTY


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New values of known properties that Iceberg cannot read."""
    for key, value in touched.new_properties.items():
        kind = _kind(key)
        if kind is not None and (reason := wrong(kind, value)):
            near = did_you_mean(value, kind) if isinstance(kind, tuple) else None
            yield touched.finding(
                ("properties", key), f"`{key}` of `{touched.name}` cannot be `{value}`: it is {reason}", near
            )


def _kind(key: str) -> Kind | None:
    if key == DISTRIBUTION_PROPERTY:
        return None  # A rule of legality.
    if key in PROPERTIES:
        return PROPERTIES[key]
    if not key.startswith(PREFIXES):
        return None
    return next(kind for prefix, kind in PREFIXED.items() if key.startswith(prefix))


RULE = Rule("IM502", "property-value", Level.ERROR, __doc__, find)
