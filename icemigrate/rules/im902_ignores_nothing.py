"""An ignore comment names a rule that finds nothing there.

## Why

The comment is on the wrong line, or its finding is gone. If it stays, it hides the next finding, which has
not been reviewed.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      # icemigrate: ignore IM404 because readings of a scale, not money
      - {name: weight, type: double}
```

## Good

```yaml
tables:
  - name: db.orders
    columns:
      # icemigrate: ignore IM404 because readings of a scale, not money
      - {name: gross_amount, type: double}
```

## Instead

Remove the comment, or move it to the line of the finding or to the line above.
"""

from __future__ import annotations

from icemigrate.rules.rule import Rule, RuleLevel

RULE = Rule("IM902", "ignores-nothing", RuleLevel.WARNING, __doc__)
