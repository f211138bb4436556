"""``rules:`` of the project file: levels and options of rules, and what can be wrong with them."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.declare.nodes import Mapping, Node, Scalar
from icemigrate.declare.phrases import shorten
from icemigrate.declare.values import entries, text
from icemigrate.diagnostics import Diagnostic, did_you_mean
from icemigrate.model.retention import parse_duration
from icemigrate.project.values import RuleSetting


def rule_mistakes(content: Mapping) -> Iterator[Diagnostic]:
    """What no schema says about ``rules``."""
    if content.get("rules") is None:
        return
    # Every command reads the project file; most projects have no such key, and need no rules to be loaded.
    from icemigrate.checks import RULES, rule_of

    seen: dict[str, str] = {}
    for key, value in entries(content.get("rules")):
        rule = rule_of(key.text)
        if rule is None:
            hint = did_you_mean(key.text, (one.name for one in RULES)) or "`icemigrate rules` lists them"
            yield Diagnostic("unknown-rule", f"there is no rule `{key.text}`", key.place, hint)
            continue
        first = seen.setdefault(rule.id, key.text)
        if first != key.text:
            message = f"`{key.text}` is the rule `{first}`, which stands here already"
            yield Diagnostic("duplicate-rule", message, key.place, "keep one of the two")
        taken = {option.key for option in rule.options}
        for name, option in _options(value):
            if name.text not in taken:
                has = ", ".join(f"`{one}`" for one in ("level", *sorted(taken)))
                message = f"rule {rule.id} does not go by `{name.text}`"
                yield Diagnostic("unknown-option", message, name.place, f"it has {has}")
            elif name.text == "pattern" and (why := _wrong_pattern(text(option))):
                message = f"{shorten(text(option))} is no regular expression that can be used: {why}"
                yield Diagnostic("bad-pattern", message, option.place)


def rule_settings(content: Mapping) -> dict[str, RuleSetting]:
    """What a file without mistakes says to rules, by their ids."""
    if content.get("rules") is None:
        return {}
    from icemigrate.checks import rule_of

    found = {}
    for key, value in entries(content.get("rules")):
        rule = rule_of(key.text)
        assert rule is not None, "mistakes are told before"
        level = (
            value if isinstance(value, Scalar) else value.get("level") if isinstance(value, Mapping) else None
        )
        options = {name.text: _value(name.text, option) for name, option in _options(value)}
        found[rule.id] = RuleSetting(None if level is None else text(level), options)
    return found


def _options(value: Node) -> Iterator[tuple[Scalar, Node]]:
    if isinstance(value, Mapping):
        yield from ((key, option) for key, option in value.entries if key.text != "level")


def _value(key: str, option: Node) -> str | int:
    if key == "at_least":
        return parse_duration(text(option))
    return int(text(option)) if key == "at_most" else text(option)


def _wrong_pattern(pattern: str) -> str | None:
    from icemigrate.checks.linear_pattern import UnsupportedPattern, compiled

    try:
        compiled(pattern)
    except UnsupportedPattern as error:
        return str(error)
    return None
