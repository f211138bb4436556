"""A comment for icemigrate cannot be read, or names no rule.

## Why

A comment that is not understood ignores nothing, and whoever wrote it thinks that it does.

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

Write `# icemigrate: ignore IM404 because …`; several rules stand with commas between them, and a rule's
name may stand for its id. `icemigrate rules` lists them. What is refused with or without consent
cannot be ignored.
"""

from __future__ import annotations

from icemigrate.checks.base import Level, Rule

RULE = Rule("IM903", "ignore-not-understood", Level.WARNING, __doc__)
