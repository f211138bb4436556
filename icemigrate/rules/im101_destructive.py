"""A migration destroys data, and its file consents to it.

## Why

A dropped column, table, branch or tag is no longer visible to readers. The check fails (`missing-allow`)
unless the file's `allow` consents to the drop. This rule reports each drop that the file consents to, with
its location, so that a reviewer sees it. Set it to `error` in a project that must never destroy data. If
IM104 reports the same drop, only the more severe finding is shown.

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

Stop the writers first, and drop unused columns and tables in a later migration. `icemigrate rollback`
restores a dropped column with its values until its data files are rewritten, and a dropped table while it is
in the trash.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import HazardKind
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions


def find_destructive_changes(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """Every destructive change that the file consents to."""
    for planned in changed.changes:
        for hazard in planned.hazards:
            if hazard.kind is HazardKind.DESTRUCTIVE and hazard not in changed.unconsented:
                yield changed.finding(planned.change.subject, f"`{hazard.scope}`: {hazard.reason}")


RULE = Rule("IM101", "destructive", RuleLevel.NOTE, __doc__, find_destructive_changes)
