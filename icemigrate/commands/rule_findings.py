"""Findings of the rules in a project's migrations, with positions, levels and ignores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from icemigrate.changes.change import TablePart
from icemigrate.diagnostics import Diagnostic, FilePosition, Severity, did_you_mean
from icemigrate.files.read.ignore_comments import IgnoreComment
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import MigrationPlan
from icemigrate.planning.replay import ReplayedFile
from icemigrate.project.project_values import NO_SETTING, RuleSetting
from icemigrate.rules import (
    RULES,
    find_rule,
    im101_destructive,
    im104_drop,
    im901_ignore_without_reason,
    im902_ignores_nothing,
    im903_ignore_not_understood,
)
from icemigrate.rules.rule import ChangedTable, Rule, RuleLevel, RuleOptions, options_of
from icemigrate.wal.entries import EntryKind

DESTRUCTIVE, DROP = im101_destructive.RULE, im104_drop.RULE
_OF_A_DROP = {DESTRUCTIVE.id: DROP.id, DROP.id: DESTRUCTIVE.id}
IGNORE_WITHOUT_REASON = im901_ignore_without_reason.RULE
UNUSED_IGNORE = im902_ignores_nothing.RULE
UNREADABLE_IGNORE = im903_ignore_not_understood.RULE


class EnabledRule(Frozen):
    """A rule that is on, with its options in the project."""

    rule: Rule
    severity: Severity
    options: RuleOptions


def enabled_rules(settings: Mapping[str, RuleSetting]) -> tuple[EnabledRule, ...]:
    """The rules that are on.

    :param settings: by the rule's id.
    """
    found = []
    for rule in RULES:
        setting = settings.get(rule.id, NO_SETTING)
        severity = RuleLevel(setting.level or rule.level).severity
        if severity is not None:
            found.append(EnabledRule(rule, severity, options_of(rule, setting.options)))
    return tuple(found)


def rule_findings(
    active: Sequence[EnabledRule],
    files: Mapping[str, MigrationFile],
    by_version: Mapping[str, Sequence[Diagnostic]],
    earlier: Sequence[Diagnostic],
) -> tuple[Diagnostic, ...]:
    """The findings of the rules in the steps of all files.

    :param files: by version.
    :param by_version: the result of :func:`of_rules` for each plan.
    :param earlier: earlier findings: in a file with an error, unused ignores are not reported.
    """
    wrong = {d.place.file for d in earlier if d.place is not None and d.severity is Severity.ERROR}
    found: list[Diagnostic] = []
    for version, of_plan in by_version.items():
        file = files[version]
        reported_of_file = apply_ignores(of_plan, file.ignores, active, is_looked_at=file.path not in wrong)
        found += _once(list(reported_of_file))
    return tuple(found)


def of_rules(
    active: Sequence[EnabledRule],
    source: ReplayedFile,
    plan: MigrationPlan,
    kind_of: Callable[[TableName], EntryKind | None],
) -> Iterator[Diagnostic]:
    """The findings of the rules in one plan, without regard to ignores.

    :param kind_of: the kind of telemetry that a declared table gets.
    """
    needed = dict[frozenset[TablePart], list[EnabledRule]]()
    broken, unconsented = {problem.table for problem in plan.problems}, frozenset(plan.unconsented)
    for table in plan.tables:
        entry = source.entries[table.declared]
        # Names and types of an adopted table cannot be changed, and errors are reported once.
        if table.declared in broken or (entry.adopt and table.formerly is None):
            continue
        before, kind = source.before.get(table.declared), kind_of(table.declared)
        touched = ChangedTable(table, before, unconsented, kind)
        parts = touched.parts
        if parts not in needed:
            needed[parts] = [one for one in active if one.rule.is_needed(parts)]
        for one in needed[parts]:
            for found in one.rule.find(touched, one.options):
                is_reported = not found.fallback_subject or found.subject[:1] in entry.places
                place = entry.place_of(found.subject if is_reported else found.fallback_subject)
                yield Diagnostic(one.rule.id, found.message, place, found.hint, one.severity)


def _once(found: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Keep one of the two rules that report the same drop: the more severe one."""
    order = list(Severity)
    weights = {(d.code, d.place): order.index(d.severity) for d in found if d.code in _OF_A_DROP}
    for diagnostic in found:
        other = weights.get((_OF_A_DROP.get(diagnostic.code, ""), diagnostic.place))
        mine = order.index(diagnostic.severity)
        if other is None or (mine, diagnostic.code == DESTRUCTIVE.id) < (other, diagnostic.code == DROP.id):
            yield diagnostic


def apply_ignores(
    found: Sequence[Diagnostic],
    ignores: Sequence[IgnoreComment],
    active: Sequence[EnabledRule],
    *,
    is_looked_at: bool,
) -> Iterator[Diagnostic]:
    """The remaining findings of one file, and findings about its ignores.

    :param is_looked_at: whether all findings of the file are known, so that an unused ignore can be reported.
    """
    if not ignores:
        yield from found
        return
    levels = {one.rule.id: one.severity for one in active}

    def diagnostic(rule: Rule, message: str, place: FilePosition, hint: str) -> Iterator[Diagnostic]:
        if rule.id in levels:
            yield Diagnostic(rule.id, message, place, hint, levels[rule.id])

    here = {(d.code, d.place.line) for d in found if d.place is not None}
    ignored: set[tuple[str, int]] = set()
    for ignore in ignores:
        if not ignore.rules:
            message = "cannot read this comment for icemigrate"
            hint = f"write `{ignore.mark} icemigrate: ignore IM104 because …`"
            yield from diagnostic(UNREADABLE_IGNORE, message, ignore.place, hint)
            continue
        for word, rule in ((word, find_rule(word)) for word in ignore.rules):
            if rule is None:
                yield from diagnostic(
                    UNREADABLE_IGNORE, f"there is no rule `{word}`", ignore.place, _known(word)
                )
            elif not ignore.reason:
                hint = f"write `{_written(ignore)} because …`"
                message = f"{rule.id} is not ignored: the comment has no reason"
                yield from diagnostic(IGNORE_WITHOUT_REASON, message, ignore.place, hint)
            elif (rule.id, ignore.line) in here:
                ignored.add((rule.id, ignore.line))
            elif is_looked_at and rule.id in levels:
                message = f"{rule.id} has no finding here to ignore"
                hint = "remove the comment, or move it to the line of the finding or the line above"
                yield from diagnostic(UNUSED_IGNORE, message, ignore.place, hint)
    yield from (d for d in found if d.place is None or (d.code, d.place.line) not in ignored)


def _written(ignore: IgnoreComment) -> str:
    return f"{ignore.mark} icemigrate: ignore {', '.join(ignore.rules)}"


def _known(word: str) -> str:
    return did_you_mean(word, (rule.name for rule in RULES)) or "`icemigrate rules` lists them"
