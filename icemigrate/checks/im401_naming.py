"""A name does not look like the project's other names.

## Why

Names in mixed case have to be quoted in some engines and are folded in others; names of several styles have
to be looked up every time. The pattern is snake case unless the project says another; it must fit the whole
name.

```yaml
rules:
  IM401: {level: error, pattern: "[a-z][a-zA-Z0-9]*"}
```

## Bad

```yaml
tables:
  - name: db.orders
    columns: [{name: CustomerId, type: long}]
```

## Good

```yaml
tables:
  - name: db.orders
    columns: [{name: customer_id, type: long}]
```

## Instead

Write it like the others. A name that comes from elsewhere and must stay: `# icemigrate: ignore IM401
because …`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Option, Options, Rule, Touched, column
from icemigrate.model.names import format_path

SNAKE_CASE = "[a-z][a-z0-9]*(_[a-z0-9]+)*"
_PARTS = frozenset({"element", "key", "value"})


def find(touched: Touched, options: Options) -> Iterator[Finding]:
    """New names of tables and fields that do not fit the pattern."""
    if touched.after is None:
        return
    pattern = re.compile(str(options["pattern"]))
    if touched.plan.formerly != touched.name and not pattern.fullmatch(touched.name.name):
        yield touched.finding(("name",), *_said(f"table `{touched.name}`", pattern))
    for path, field in touched.newly_named:
        if field.name not in _PARTS and not pattern.fullmatch(field.name):
            yield touched.finding(column(path), *_said(f"`{format_path(path)}` of `{touched.name}`", pattern))
    for rename in touched.renames:
        if not pattern.fullmatch(rename.to):
            path = (*rename.path[:-1], rename.to)
            subject = (*rename.subject, "to")
            yield touched.finding(subject, *_said(f"`{format_path(path)}` of `{touched.name}`", pattern))


def _said(what: str, pattern: re.Pattern[str]) -> tuple[str, None]:
    style = "is not in snake_case" if pattern.pattern == SNAKE_CASE else f"does not fit `{pattern.pattern}`"
    return f"the name of {what} {style}", None


RULE = Rule(
    "IM401",
    "naming",
    Level.NOTE,
    __doc__,
    find,
    (Option("pattern", SNAKE_CASE, "a regular expression for the whole name, snake case by itself"),),
)
