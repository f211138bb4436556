"""A comment for icemigrate cannot be parsed, or names no rule.

## Why

A comment that cannot be parsed ignores nothing, although its author expects it to.

## Bad

```yaml
tables:
  - name: db.orders
    columns:
      # icemigrate: ignore IM999 because readings of a scale, not money
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

Write `# icemigrate: ignore IM404 because …`. Separate several rules with commas; a rule's name can be used
instead of its id. `icemigrate rules` lists the rules. Errors that no consent permits cannot be ignored.
"""

from __future__ import annotations

from icemigrate.rules.rule import Rule, RuleLevel

RULE = Rule("IM903", "ignore-not-understood", RuleLevel.WARNING, __doc__)
