"""A new column that seems to contain money is a float or a double.

## Why

Neither type can represent 0.10: sums of prices are off by a cent sooner or later, and engines round them
differently.

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

Use `decimal(18, 4)`, or a `long` in the smallest unit. A float cannot be promoted to a decimal later. If the
column is not money, add `# icemigrate: ignore IM404 because …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Primitive
from icemigrate.rules.rule import ChangedTable, Rule, RuleFinding, RuleLevel, RuleOptions, column_subject

_FLOATS = (Primitive("float"), Primitive("double"))
_MONEY = re.compile(
    r"price|amount|cost|fee|fees|balance|salary|wage|revenue|payment|paid|refund|discount|tax|vat|fare|tip|tips|toll"
    r"|tolls|surcharge|invoice|subtotal|budget|profit|turnover|commission|money|usd|eur|gbp|chf|jpy"
)
_NO_MONEY = re.compile(r"ratio|rate|percent|pct|share|index|score|factor|count|weight|probability|change")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def find_floats_for_money(changed: ChangedTable, _options: RuleOptions) -> Iterator[RuleFinding]:
    """New floating-point fields whose name contains a word for money."""
    for path, field in changed.added:
        if field.type not in _FLOATS:
            continue
        words = [word.lower() for word in _WORD.findall(field.name)]
        if any(map(_MONEY.fullmatch, words)) and not any(map(_NO_MONEY.fullmatch, words)):
            yield changed.finding(
                column_subject(path, "type"),
                f"`{format_path(path)}` of `{changed.name}` seems to contain money, and a "
                f"{format_type(field.type)} is not exact",
                "use `decimal(18, 4)`; the column cannot be promoted to it later",
            )


RULE = Rule(
    "IM404",
    "float-for-money",
    RuleLevel.WARNING,
    __doc__,
    find_floats_for_money,
    inspects=frozenset({"fields"}),
)
