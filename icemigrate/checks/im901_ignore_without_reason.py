"""A comment ignores a rule without a reason, and so it does not.

## Why

In a year nobody knows whether the reason still holds, or whether there was one. What is ignored stays told
until a reason stands behind `because`.

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

Write `# icemigrate: ignore IM404 because …`, on the line itself or on the one above.
"""

from __future__ import annotations

from icemigrate.checks.base import Level, Rule

RULE = Rule("IM901", "ignore-without-reason", Level.WARNING, __doc__)
