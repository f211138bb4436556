"""A name does not match the project's naming pattern.

## Why

Some engines require quotes for names in mixed case, and others change their case. With several styles, users
must look up each name. The pattern is snake case by default. It must match the whole name.

Matching takes linear time: a pattern has at most 250 characters and no look-around or backreference, and a
name of more than 255 characters matches none.

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

Follow the pattern. For a name that comes from elsewhere and must stay, add `# icemigrate: ignore IM401
because …`.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.iceberg.names import format_path
from icemigrate.rules.linear_pattern import TEXT_LIMIT, LinearPattern, compile_pattern
from icemigrate.rules.rule import (
    ChangedTable,
    Rule,
    RuleFinding,
    RuleLevel,
    RuleOptions,
    RuleOptionSpec,
    column_subject,
)

SNAKE_CASE = "[a-z][a-z0-9]*(_[a-z0-9]+)*"
_PARTS = frozenset({"element", "key", "value"})


def find_unusual_names(changed: ChangedTable, options: RuleOptions) -> Iterator[RuleFinding]:
    """New names of tables and fields that do not match the pattern."""
    if changed.after is None:
        return
    pattern = compile_pattern(str(options["pattern"]))
    table, name = changed.name, changed.name.name
    if changed.plan.formerly != changed.name and not pattern.fits(name):
        yield changed.finding(("name",), _naming_message(f"table `{table}`", name, pattern))
    for path, field in changed.newly_named:
        if field.name not in _PARTS and not pattern.fits(field.name):
            what = f"`{format_path(path)}` of `{table}`"
            yield changed.finding(column_subject(path), _naming_message(what, field.name, pattern))
    for rename in changed.renames:
        if not pattern.fits(rename.to):
            what = f"`{format_path((*rename.path[:-1], rename.to))}` of `{table}`"
            yield changed.finding((*rename.subject, "to"), _naming_message(what, rename.to, pattern))


def _naming_message(what: str, name: str, pattern: LinearPattern) -> str:
    if len(name) > TEXT_LIMIT:
        return f"the name of {what} has more than {TEXT_LIMIT} characters, so it matches no pattern"
    style = "is not in snake_case" if pattern.pattern == SNAKE_CASE else f"does not match `{pattern.pattern}`"
    return f"the name of {what} {style}"


RULE = Rule(
    "IM401",
    "naming",
    RuleLevel.NOTE,
    __doc__,
    find_unusual_names,
    (
        RuleOptionSpec(
            "pattern", SNAKE_CASE, "a regular expression for the whole name; the default is snake case"
        ),
    ),
    inspects=frozenset({"fields"}),
)
