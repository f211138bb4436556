"""``rules`` and ``explain``: what the rules are, and what the project makes of them."""

from __future__ import annotations

from icemigrate.checks import RULES, rule_of
from icemigrate.checks.base import Level, OptionValue, Rule, options_of
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.model.retention import format_duration
from icemigrate.project.values import NO_SETTING, Project
from icemigrate.rule_results import RuleOption, RulesResult, RuleStatus


def rules(project: Project) -> RulesResult:
    """All rules with the levels and options that they have in a project."""
    return RulesResult(project.name, tuple(_status(rule, project) for rule in RULES))


def explain(word: str) -> str:
    """The page of a rule: a heading, then what its file says of it.

    :param word: its id or its name.
    :raises UsageError: there is no such rule.
    """
    rule = rule_of(word)
    if rule is None:
        near = did_you_mean(word, (one.name for one in RULES))
        raise UsageError(f"there is no rule `{word}`", near or "`icemigrate rules` lists them")
    return page(rule)


def page(rule: Rule) -> str:
    """A rule's page."""
    by_itself = f"By itself its level is `{rule.level.value}`."
    options = "".join(f"\n- `{option.key}`: {option.says}" for option in rule.options)
    goes_by = f" It goes by:\n{options}\n" if options else "\n"
    title, _, rest = rule.page.partition("\n\n")
    return f"# {rule.id} {rule.name}\n\n{title}\n\n{by_itself}{goes_by}\n{rest}\n"


def _status(rule: Rule, project: Project) -> RuleStatus:
    setting = project.rules.get(rule.id, NO_SETTING)
    level, values = Level(setting.level or rule.level), options_of(rule, setting.options)
    options = tuple(RuleOption(o.key, _shown(o.key, values.get(o.key)), o.says) for o in rule.options)
    return RuleStatus(rule.id, rule.name, level.value, rule.level.value, rule.title, options)


def _shown(key: str, value: OptionValue | None) -> OptionValue | None:
    return format_duration(value) if key == "at_least" and isinstance(value, int) else value
