"""The rules of ``check`` for people."""

from __future__ import annotations

from icemigrate.render import words
from icemigrate.render.style import Style
from icemigrate.rule_results import RulesResult, RuleStatus


def rules_text(result: RulesResult, style: Style) -> str:
    """A line for each rule, and below it what it goes by."""
    width = max(len(rule.name) for rule in result.rules)
    lines = []
    for rule in result.rules:
        level = _paint(rule, style)
        lines.append(f"{style.bold(rule.id)}  {rule.name:{width}}  {level}  {rule.finds}")
        gap = " " * (len(rule.id) + width + 13)
        lines += (
            style.dim(f"{gap}{option.key}: {'not said' if option.value is None else option.value}")
            for option in rule.options
        )
    changed = [rule for rule in result.rules if rule.level != rule.default]
    said = f", {len(changed)} of another level than by default" if changed else ""
    lines += ["", f"{result.project}: {words.count(len(result.rules), 'rule')}{said}."]
    return "\n".join(lines) + "\n"


def _paint(rule: RuleStatus, style: Style) -> str:
    paints = {"error": style.bad, "warning": style.changed, "note": style.moved, "off": style.dim}
    return paints[rule.level](f"{rule.level:7}")
