"""A table property is none that Iceberg knows, but looks like one.

## Why

Iceberg takes any key and ignores what it does not know: `write.target-filesize-bytes` is kept, shown by
every tool, and does nothing. Looked at are keys that begin as Iceberg's do (`write.`, `read.`, `commit.`,
`history.`, …) and keys very near to one of its own; all others are yours.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
    properties: {write.target-filesize-bytes: 268435456}
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: id, type: long}]
    properties: {write.target-file-size-bytes: 268435456, owner.team: shop}
```

## Instead

Write the key as it is documented (https://iceberg.apache.org/docs/latest/configuration/). One that another
engine reads: `# icemigrate: ignore IM501 because …`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched
from icemigrate.checks.known_properties import FAMILIES, PREFIXES, PROPERTIES
from icemigrate.model.reserved import instead

_NEAR = 0.75
_VERY_NEAR = 0.9


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New properties that Iceberg does not have and that were likely meant to be its own."""
    for key in touched.new_properties:
        if key in PROPERTIES or key.startswith(PREFIXES) or instead(key) is not None:
            continue
        is_family = key.startswith(FAMILIES)
        near = _nearest(key, _NEAR if is_family else _VERY_NEAR)
        if is_family or near:
            message = f"Iceberg has no property `{key}`: it is kept in `{touched.name}`, and does nothing"
            yield touched.finding(("properties", key), message, near and f"did you mean `{near}`?")


def _nearest(key: str, cutoff: float) -> str | None:
    plain = key.lower().replace("_", "-")
    found = difflib.get_close_matches(plain, PROPERTIES, n=1, cutoff=cutoff)
    return found[0] if found else None


RULE = Rule("IM501", "unknown-property", Level.WARNING, __doc__, find)
