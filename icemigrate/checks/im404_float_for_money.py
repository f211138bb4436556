"""A new column that seems to hold money is a float or a double.

## Why

Neither can hold 0.10: sums of prices are off by a cent sooner or later, and two engines round them in two
ways.

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: unit_price, type: double}]
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: unit_price, type: "decimal(18, 4)"}]
```

## Instead

`decimal(18, 4)`, or a `long` of the smallest unit. No promotion leads from a float to a decimal later.
Where the column is no money, say so: `# icemigrate: ignore IM404 because …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Options, Rule, Touched, column
from icemigrate.model.names import format_path
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Primitive

_FLOATS = (Primitive("float"), Primitive("double"))
_MONEY = re.compile(
    r"price|amount|cost|fee|fees|balance|salary|wage|revenue|payment|paid|refund|discount|tax|vat|fare|tip|tips|toll"
    r"|tolls|surcharge|invoice|subtotal|budget|profit|turnover|commission|money|usd|eur|gbp|chf|jpy"
)
_NO_MONEY = re.compile(r"ratio|rate|percent|pct|share|index|score|factor|count|weight|probability|change")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def find(touched: Touched, _options: Options) -> Iterator[Finding]:
    """New floating fields whose name has a word for money in it."""
    for path, field in touched.added:
        if field.type not in _FLOATS:
            continue
        words = [word.lower() for word in _WORD.findall(field.name)]
        if any(map(_MONEY.fullmatch, words)) and not any(map(_NO_MONEY.fullmatch, words)):
            yield touched.finding(
                column(path, "type"),
                f"`{format_path(path)}` of `{touched.name}` seems to hold money, and a "
                f"{format_type(field.type)} is not exact",
                "`decimal(18, 4)` is; no promotion leads there later",
            )


RULE = Rule("IM404", "float-for-money", Level.WARNING, __doc__, find)
