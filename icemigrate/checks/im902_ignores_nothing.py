"""A comment ignores a rule that finds nothing there.

## Why

It stands on the wrong line, or what it was about is gone. Left alone, it would hide the next finding, which
nobody has judged.

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

Take the comment out, or move it to the line of the finding or the one above.
"""

from __future__ import annotations

from icemigrate.checks.base import Level, Rule

RULE = Rule("IM902", "ignores-nothing", Level.WARNING, __doc__)
