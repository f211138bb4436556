"""A name does not look like the project's other names.

## Why

Names in mixed case have to be quoted in some engines and are folded in others; names of several styles have
to be looked up every time. The pattern is snake case unless the project says another; it must fit the whole
name.

A pattern is matched in linear time: it has at most 250 characters and no look-around or reference to a group,
and a name of more than 255 characters fits none.

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

from collections.abc import Iterator

from icemigrate.checks.base import Finding, Level, Option, Options, Rule, Touched, column
from icemigrate.checks.linear_pattern import TEXT_LIMIT, Pattern, compiled
from icemigrate.model.names import format_path

SNAKE_CASE = "[a-z][a-z0-9]*(_[a-z0-9]+)*"
_PARTS = frozenset({"element", "key", "value"})


def find(touched: Touched, options: Options) -> Iterator[Finding]:
    """New names of tables and fields that do not fit the pattern."""
    if touched.after is None:
        return
    pattern = compiled(str(options["pattern"]))
    table, name = touched.name, touched.name.name
    if touched.plan.formerly != touched.name and not pattern.fits(name):
        yield touched.finding(("name",), *_said(f"table `{table}`", name, pattern))
    for path, field in touched.newly_named:
        if field.name not in _PARTS and not pattern.fits(field.name):
            what = f"`{format_path(path)}` of `{table}`"
            yield touched.finding(column(path), *_said(what, field.name, pattern))
    for rename in touched.renames:
        if not pattern.fits(rename.to):
            what = f"`{format_path((*rename.path[:-1], rename.to))}` of `{table}`"
            yield touched.finding((*rename.subject, "to"), *_said(what, rename.to, pattern))


def _said(what: str, name: str, pattern: Pattern) -> tuple[str, None]:
    if len(name) > TEXT_LIMIT:
        return f"the name of {what} has more than {TEXT_LIMIT} characters, and fits no pattern", None
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
