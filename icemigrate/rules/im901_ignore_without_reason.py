"""An ignore comment has no reason, so it ignores nothing.

## Why

Without a reason, a later reader cannot know whether the exception is still justified. The finding is reported
until a reason follows `because`.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      # icemigrate: ignore IM404
      - {name: gross_amount, type: double}
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

Write `# icemigrate: ignore IM404 because …` on the same line or on the line above.
"""

from __future__ import annotations

from icemigrate.rules.rule import Rule, RuleLevel

RULE = Rule("IM901", "ignore-without-reason", RuleLevel.WARNING, __doc__)
