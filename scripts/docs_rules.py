"""The page of rules, from the rules' docstrings and from the messages in their source."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FunctionType

from icemigrate import changes
from icemigrate.commands.explain import rule_page
from icemigrate.iceberg import validation
from icemigrate.planning import create_or_adopt, table_input, table_plan
from icemigrate.rules import RULES
from icemigrate.rules.rule import Rule

_ADVICE = """# Rules

Each finding of `check` ends with its code in square brackets.

- A code such as `IM104` is a rule with a level that you can change. Each rule has a page with the reason, a
  bad and a good example, and what to do. `icemigrate explain IM104` shows the page, and `icemigrate rules`
  lists the rules with the levels of a project.
- All other codes are on the page of [identifiers](identifiers.md). `icemigrate explain` shows them too.

| rule | name | default level | finds |
| --- | --- | --- | --- |
"""
_LEVELS = """
## Levels

Set the level of a rule in the project file, by id or name: `off`, `note`, `warning` or `error`. Only errors
make `check` fail. Some rules also have an option:

```yaml
rules:
  IM104: error
  missing-description: note
  IM201: {at_least: 365d}
  naming: {level: warning, pattern: "[a-z][a-z0-9_]*"}
```

| rule | option | meaning |
| --- | --- | --- |
"""
_IGNORES = """
## Ignore a finding

Write a comment with a reason, at the end of the line or on the line above it:

```yaml
tables:
  - name: market_data.trades
    # icemigrate: ignore IM104 because nothing has read it since May
    drop_columns: [qualifiers]
    renames: {volume: quantity}  # icemigrate: ignore rename because the reports change today
```

Separate several rules with commas. A comment without a reason ignores nothing. A comment that matches no
finding is reported. Comments are not part of the checksum, so you can add one to an applied file.
"""
_INTRO = """
## Requirements for tables

`check` and `plan` refuse a migration whose resulting table breaks one of these requirements. No consent
allows it. The code of a requirement never changes its meaning. A violation that the table had before the
migration is not reported.
"""
_OTHERS = """
## Changes that are refused

These codes are about a change itself, not about the resulting table. `…` in a message is a value.

| code | message |
| --- | --- |
"""


@dataclass(frozen=True, slots=True)
class _Found:
    """A violation or a problem as the source has it.

    :param weight: `` (a warning)`` where it is not, or not always, an error.
    """

    rule: str
    message: str
    weight: str


def rules_page() -> str:
    """The page."""
    parts = [_ADVICE, *map(_row, RULES), _LEVELS, *_option_rows(), _IGNORES, _INTRO]
    for rule in validation.VALIDATION_RULES:
        assert isinstance(rule, FunctionType)
        breaches = list(_of_rule(rule))
        assert breaches, f"{rule.__name__} has no identifier"
        title, _, rest = inspect.cleandoc(rule.__doc__ or "").partition("\n\n")
        parts.append(f"\n### {_plain(title).rstrip('.')}\n\n")
        parts += [f"- `{f.rule}`{f.weight}: {f.message}\n" for f in breaches]
        if rest:
            parts.append(f"\n{_plain(rest)}\n")
    parts.append(_OTHERS)
    others: dict[str, _Found] = {}
    for found in chain(_of_changes(), _promotions()):
        others.setdefault(found.rule, found)
    parts += [f"| `{rule}` | {others[rule].message} |\n" for rule in sorted(others)]
    return "".join(parts)


def rule_pages() -> dict[str, str]:
    """A page for each rule of ``check``, by the name of its file."""
    return {f"{rule.id}.md": _linked(rule_page(rule)) for rule in RULES}


def _row(rule: Rule) -> str:
    return f"| [{rule.id}](rules/{rule.id}.md) | `{rule.name}` | {rule.level.value} | {rule.title} |\n"


def _option_rows() -> Iterator[str]:
    for rule in RULES:
        for option in rule.options:
            yield f"| [{rule.id}](rules/{rule.id}.md) | `{option.key}` | {option.help_text} |\n"


def _of_changes() -> Iterator[_Found]:
    for path in sorted(Path(changes.__path__[0]).glob("*.py")):
        yield from _calls(ast.parse(path.read_text(encoding="utf-8")), "PlanProblem")
    for module in (create_or_adopt, table_plan, table_input):
        yield from _calls(ast.parse(inspect.getsource(module)), "PlanProblem")


def _promotions() -> Iterator[_Found]:
    """The kind of wider types says its problems through a helper of its own."""
    from icemigrate.changes import widen_type

    yield from _calls(ast.parse(inspect.getsource(widen_type)), "_problem")


def _of_rule(rule: FunctionType) -> Iterator[_Found]:
    """The breaches that a rule reports, those of the helpers that it calls included."""
    tree = ast.parse(inspect.getsource(inspect.getmodule(rule) or validation))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    seen, todo = set[str](), [rule.__name__]
    found: dict[str, _Found] = {}
    while todo:
        name = todo.pop(0)
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for one in _calls(functions[name], "Violation"):
            found.setdefault(one.rule, one)
        todo += [
            called for n in ast.walk(functions[name]) if isinstance(n, ast.Call) and (called := _called(n))
        ]
    yield from found.values()


def _calls(tree: ast.AST, name: str) -> Iterator[_Found]:
    """Every call of ``name`` with an identifier, in the functions of a tree."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        assigned = {
            target.id: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and node.args and _called(node) == name:
                rule = node.args[0]
                if isinstance(rule, ast.Constant) and isinstance(rule.value, str):
                    yield _Found(rule.value, _message(node, assigned), _weight(node))


def _called(node: ast.Call) -> str | None:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)


def _message(node: ast.Call, assigned: Mapping[str, ast.expr]) -> str:
    """The first text of the call: subjects are tuples or names of such."""
    arguments = (assigned.get(a.id, a) if isinstance(a, ast.Name) else a for a in node.args[1:])
    texts = [text for text in map(_text, arguments) if text]
    assert texts, ast.unparse(node)
    return texts[0]


def _weight(node: ast.Call) -> str:
    said = [ast.unparse(k.value) for k in node.keywords if k.arg == "is_warning"]
    return {"": "", "False": "", "True": " (a warning)"}.get("".join(said), " (an error or a warning)")


def _text(node: ast.expr) -> str:
    """A message as the source has it, with ``…`` for inserted values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
        return "".join(parts)
    return ""


def _plain(text: str) -> str:
    return _linked(re.sub(r":\w+:`(?:~[\w.]+\.)?([^`]+)`", r"`\1`", text.replace("``", "`")))


def _linked(text: str) -> str:
    return re.sub(r"([\w.-]+/[\w.-]+)#(\d+)", r"[\1#\2](https://github.com/\1/issues/\2)", text)
