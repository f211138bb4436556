"""Something is destroyed, with the consent of the file.

## Why

A dropped column, table, branch or tag is gone for whoever reads. The file's `allow` consents to it, and
without it the check fails (`missing-allow`); this rule makes sure that a reviewer of the change sees each
of them, with its place. A project that never destroys anything sets it to `error`. Where IM104 tells of the
same drop, only the weightier of the two does.

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
  - {name: db.orders, drop_columns: [note], columns: [{name: note, type: string}]}
```

## Good

```yaml
tables:
  - name: db.orders
    columns:
      - {name: id, type: long, required: true}
      - {name: note, type: string}
---
tables:
  - name: db.orders
    columns: [{name: note, description: Not filled any more}]
```

## Instead

Let writers stop first, and drop what nobody reads in a later migration. `icemigrate rollback` brings a
dropped column back with its values while no data file was rewritten, and a dropped table while it is in the
trash.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.base import HazardKind
from icemigrate.checks.base import Finding, Level, Options, Rule, Touched


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """Every destructive change that the file consents to."""
    for planned in touched.changes:
        for hazard in planned.hazards:
            if hazard.kind is HazardKind.DESTRUCTIVE and hazard not in touched.unconsented:
                yield touched.finding(planned.change.subject, f"`{hazard.scope}`: {hazard.reason}")


RULE = Rule("IM101", "destructive", Level.NOTE, __doc__, find)
