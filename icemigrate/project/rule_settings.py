"""``rules:`` of the project file: levels and options of rules, and their errors."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.diagnostics import Diagnostic, did_you_mean
from icemigrate.files.parse.file_phrases import shorten_text
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read.node_values import mapping_entries, scalar_text
from icemigrate.iceberg.retention import parse_duration
from icemigrate.project.project_values import RuleSetting


def rule_mistakes(content: YamlMapping) -> Iterator[Diagnostic]:
    """Errors of ``rules`` that the schema allows."""
    if content.get("rules") is None:
        return
    # Every command reads the project file; most projects have no such key, and need not load the rules.
    from icemigrate.rules import RULES, find_rule

    seen: dict[str, str] = {}
    for key, value in mapping_entries(content.get("rules")):
        rule = find_rule(key.text)
        if rule is None:
            hint = did_you_mean(key.text, (one.name for one in RULES)) or "`icemigrate rules` lists them"
            yield Diagnostic("unknown-rule", f"there is no rule `{key.text}`", key.place, hint)
            continue
        first = seen.setdefault(rule.id, key.text)
        if first != key.text:
            message = f"`{key.text}` is rule `{first}`, which is already set"
            yield Diagnostic("duplicate-rule", message, key.place, "remove one of the two")
        taken = {option.key for option in rule.options}
        for name, option in _options(value):
            if name.text not in taken:
                has = ", ".join(f"`{one}`" for one in ("level", *sorted(taken)))
                message = f"rule {rule.id} has no option `{name.text}`"
                yield Diagnostic("unknown-option", message, name.place, f"it has {has}")
            elif name.text == "pattern" and (why := _wrong_pattern(scalar_text(option))):
                message = f"{shorten_text(scalar_text(option))} is not a supported regular expression: {why}"
                yield Diagnostic("bad-pattern", message, option.place)


def rule_settings(content: YamlMapping) -> dict[str, RuleSetting]:
    """The settings of a valid file, by rule id."""
    if content.get("rules") is None:
        return {}
    from icemigrate.rules import find_rule

    found = {}
    for key, value in mapping_entries(content.get("rules")):
        rule = find_rule(key.text)
        assert rule is not None, "unknown rules are errors of the file"
        level = (
            value
            if isinstance(value, YamlScalar)
            else value.get("level")
            if isinstance(value, YamlMapping)
            else None
        )
        options = {name.text: _value(name.text, option) for name, option in _options(value)}
        found[rule.id] = RuleSetting(None if level is None else scalar_text(level), options)
    return found


def _options(value: YamlNode) -> Iterator[tuple[YamlScalar, YamlNode]]:
    if isinstance(value, YamlMapping):
        yield from ((key, option) for key, option in value.entries if key.text != "level")


def _value(key: str, option: YamlNode) -> str | int:
    if key == "at_least":
        return parse_duration(scalar_text(option))
    return int(scalar_text(option)) if key == "at_most" else scalar_text(option)


def _wrong_pattern(pattern: str) -> str | None:
    from icemigrate.rules.linear_pattern import UnsupportedPattern, compile_pattern

    try:
        compile_pattern(pattern)
    except UnsupportedPattern as error:
        return str(error)
    return None
