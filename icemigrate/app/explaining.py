"""``rules`` and ``explain``: what the rules are, what the project makes of them, and what other words mean.

Those are the identifiers in square brackets, and the names that errors have in JSON.
"""

from __future__ import annotations

import inspect
import re
from textwrap import fill

from icemigrate.checks import RULES, rule_of
from icemigrate.checks.base import Level, OptionValue, Rule, options_of
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import IcemigrateError, UsageError
from icemigrate.model.retention import format_duration
from icemigrate.project.values import NO_SETTING, Project
from icemigrate.rule_results import RuleOption, RulesResult, RuleStatus
from icemigrate.told import TOLD


def rules(project: Project) -> RulesResult:
    """All rules with the levels and options that they have in a project."""
    return RulesResult(project.name, tuple(_status(rule, project) for rule in RULES))


def explain(word: str) -> str:
    """What an identifier means: a heading, then what there is to say of it.

    :param word: a rule's id or name; an identifier in square brackets; the kind of an error, as JSON has it.
    :raises UsageError: there is no such identifier.
    """
    pages = [page(rule)] if (rule := rule_of(word)) is not None else []
    if (text := TOLD.get(word)) is not None:
        pages.append(f"# {word}\n\n{fill(text, _WIDTH, break_on_hyphens=False)}\n")
    if (fault := faults().get(word)) is not None:
        code = fault.exit_code
        pages.append(f"# {word}\n\n{_first_paragraph(fault)}\n\nThe command ends with {code.value}.\n")
    if not pages:
        near = did_you_mean(word, (*(one.name for one in RULES), *TOLD, *faults()))
        raise UsageError(
            f"there is nothing to explain by the name of `{word}`",
            near or "what stands in square brackets can be explained; `icemigrate rules` lists the rules",
        )
    return "\n".join(pages)


_WIDTH = 100


def faults() -> dict[str, type[IcemigrateError]]:
    """Every kind of error, by the name that JSON has for it."""
    import icemigrate.executor  # noqa: F401 (some kinds are there)

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
