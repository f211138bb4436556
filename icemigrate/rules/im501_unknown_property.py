"""A table property looks like one of Iceberg's, but Iceberg does not have it.

## Why

Iceberg accepts any key and ignores those that it does not know: `write.target-filesize-bytes` is stored,
shown by every tool, and has no effect. The rule checks keys that begin like Iceberg's (`write.`, `read.`,
`commit.`, `history.`, …) and keys that are very similar to one of Iceberg's. It accepts all others.

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

Use the documented key (https://iceberg.apache.org/docs/latest/configuration/). If another engine reads the
key, add `# icemigrate: ignore IM501 because …`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from icemigrate.iceberg.kept_views import is_kept_view_key
from icemigrate.iceberg.table_properties import reserved_property_hint
from icemigrate.rules.known_properties import FAMILIES, PREFIXES, PROPERTIES
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions

_SIMILARITY_CUTOFF = 0.75
_STRICT_SIMILARITY_CUTOFF = 0.9


def find_unknown_properties(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New properties that Iceberg does not have, but that look like its own."""
    for key in changed.new_properties:
        if is_kept_view_key(key):
            continue
        if key in PROPERTIES or key.startswith(PREFIXES) or reserved_property_hint(key) is not None:
            continue
        is_family = key.startswith(FAMILIES)
        near = _most_similar_property(key, _SIMILARITY_CUTOFF if is_family else _STRICT_SIMILARITY_CUTOFF)
        if is_family or near:
            message = f"Iceberg has no property `{key}`: it has no effect on `{changed.name}`"
            yield changed.finding(("properties", key), message, near and f"did you mean `{near}`?")


def _most_similar_property(key: str, cutoff: float) -> str | None:
    plain = key.lower().replace("_", "-")
    found = difflib.get_close_matches(plain, PROPERTIES, n=1, cutoff=cutoff)
    return found[0] if found else None


RULE = Rule(
    "IM501",
    "unknown-property",
    RuleLevel.WARNING,
    __doc__,
    find_unknown_properties,
    inspects=frozenset({"properties"}),
)
