"""``rules`` and ``explain``: the rules and their settings in the project, and the meaning of identifiers.

Identifiers are the words in square brackets in messages, and the kinds of errors in JSON.
"""

from __future__ import annotations

import inspect
import re
from textwrap import fill

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.explanations import EXPLANATIONS
from icemigrate.iceberg.retention import format_duration
from icemigrate.project.project_values import NO_SETTING, Project
from icemigrate.results.command_results import RuleOption, RulesResult, RuleStatus
from icemigrate.rules import RULES, find_rule
from icemigrate.rules.rule import OptionValue, Rule, RuleLevel, options_of


def rules(project: Project) -> RulesResult:
    """All rules with the levels and options that they have in a project."""
    return RulesResult(project.name, tuple(_status(rule, project) for rule in RULES))


def explain(word: str) -> str:
    """The explanation of an identifier: a heading, then its text.

    :param word: a rule's id or name; an identifier in square brackets; the kind of an error in JSON.
    :raises UsageError: there is no such identifier.
    """
    pages = [rule_page(rule)] if (rule := find_rule(word)) is not None else []
    if (text := EXPLANATIONS.get(word)) is not None:
        pages.append(f"# {word}\n\n{fill(text, _WIDTH, break_on_hyphens=False)}\n")
    if (fault := error_kinds().get(word)) is not None:
        code = fault.exit_code
        pages.append(f"# {word}\n\n{_first_paragraph(fault)}\n\nThe command exits with code {code.value}.\n")
    if not pages:
        near = did_you_mean(word, (*(one.name for one in RULES), *EXPLANATIONS, *error_kinds()))
        raise UsageError(
            f"there is no explanation for `{word}`",
            near
            or ("pass an identifier that is shown in square brackets; `icemigrate rules` lists the rules"),
        )
    return "\n".join(pages)


_WIDTH = 100


def error_kinds() -> dict[str, type[IcemigrateError]]:
    """Every kind of error, by the name that JSON has for it."""
    import icemigrate.execution  # noqa: F401 (some kinds are there)

    found: dict[str, type[IcemigrateError]] = {}
    open_ = [IcemigrateError]
    while open_:
        kind = open_.pop()
        found[kind.__name__] = kind
        open_ += kind.__subclasses__()
    return found


def _first_paragraph(fault: type[IcemigrateError]) -> str:
    first = inspect.cleandoc(fault.__doc__ or "").split("\n\n")[0]
    return " ".join(re.sub(r":\w+:`[^`]*`|``", _plain, first).split())


def _plain(found: re.Match[str]) -> str:
    role = found[0]
    return "`" if role == "``" else f"`{role.split('`')[1].lstrip('~').rpartition('.')[2]}`"


def rule_page(rule: Rule) -> str:
    """A rule's page."""
    level = f"Default level: `{rule.level.value}`."
    options = "".join(f"\n- `{option.key}`: {option.help_text}" for option in rule.options)
    options = f" Options:\n{options}\n" if options else "\n"
    title, _, rest = rule.page.partition("\n\n")
    return f"# {rule.id} {rule.name}\n\n{title}\n\n{level}{options}\n{rest}\n"


def _status(rule: Rule, project: Project) -> RuleStatus:
    setting = project.rules.get(rule.id, NO_SETTING)
    level, values = RuleLevel(setting.level or rule.level), options_of(rule, setting.options)
    options = tuple(RuleOption(o.key, _shown(o.key, values.get(o.key)), o.help_text) for o in rule.options)
    return RuleStatus(rule.id, rule.name, level.value, rule.level.value, rule.title, options)


def _shown(key: str, value: OptionValue | None) -> OptionValue | None:
    return format_duration(value) if key == "at_least" and isinstance(value, int) else value
