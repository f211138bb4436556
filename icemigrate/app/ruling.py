"""What the rules have against a project's migrations, with places, levels and ignores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.app.folding import Folding
from icemigrate.checks import (
    RULES,
    im101_destructive,
    im104_drop,
    im901_ignore_without_reason,
    im902_ignores_nothing,
    im903_ignore_not_understood,
    rule_of,
)
from icemigrate.checks.base import Level, Options, Rule, Touched, options_of
from icemigrate.declare.ignores import Ignore
from icemigrate.diagnostics import Diagnostic, Place, Severity, did_you_mean
from icemigrate.frozen import Frozen
from icemigrate.plan import MigrationPlan
from icemigrate.project.values import NO_SETTING, RuleSetting

DESTRUCTIVE, DROP = im101_destructive.RULE, im104_drop.RULE
_OF_A_DROP = {DESTRUCTIVE.id: DROP.id, DROP.id: DESTRUCTIVE.id}
WITHOUT_REASON = im901_ignore_without_reason.RULE
OF_NOTHING = im902_ignores_nothing.RULE
NOT_UNDERSTOOD = im903_ignore_not_understood.RULE


class Active(Frozen):
    """A rule that is on, with what the project says to it."""

    rule: Rule
    severity: Severity
    options: Options


def active_rules(settings: Mapping[str, RuleSetting]) -> tuple[Active, ...]:
    """The rules that are on.

    :param settings: by the rule's id.
    """
    found = []
    for rule in RULES:
        setting = settings.get(rule.id, NO_SETTING)
        severity = Level(setting.level or rule.level).severity
        if severity is not None:
            found.append(Active(rule, severity, options_of(rule, setting.options)))
    return tuple(found)


def rule_findings(
    settings: Mapping[str, RuleSetting],
    folding: Folding,
    plans: Iterable[MigrationPlan],
    told: Sequence[Diagnostic],
) -> tuple[Diagnostic, ...]:
    """What the rules find in the steps of all files.

    :param told: what was found already: in a file that has an error, nobody can tell what an ignore ignores.
    """
    active = active_rules(settings)
    wrong = {d.place.file for d in told if d.place is not None and d.severity is Severity.ERROR}
    found: list[Diagnostic] = []
    for plan in plans:
        file = folding.file_of(plan)
        of_rules = list(_of_rules(active, folding, plan))
        told_of_file = after_ignores(of_rules, file.ignores, active, is_looked_at=file.path not in wrong)
        found += _once(list(told_of_file))
    return tuple(found)


def _of_rules(active: Sequence[Active], folding: Folding, plan: MigrationPlan) -> Iterator[Diagnostic]:
    entries, before = folding.entries_of(plan), folding.before(plan)
    broken, unconsented = {problem.table for problem in plan.problems}, frozenset(plan.unconsented)
    for table in plan.tables:
        entry = entries[table.declared]
        # Nobody can change the names and types of a table that is taken in, and a mistake is told once.
        if table.declared in broken or (entry.adopt and table.formerly is None):
            continue
        touched = Touched(table, before.get(table.declared), unconsented)
        for one in active:
            for found in one.rule.find(touched, one.options):
                is_said = not found.otherwise or found.subject[:1] in entry.places
                place = entry.place_of(found.subject if is_said else found.otherwise)
                yield Diagnostic(one.rule.id, found.message, place, found.hint, one.severity)


def _once(found: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Without one of the two rules that have something to say of the same drop: the weightier one stays."""
    order = list(Severity)
    weights = {(d.code, d.place): order.index(d.severity) for d in found if d.code in _OF_A_DROP}
    for diagnostic in found:
        other = weights.get((_OF_A_DROP.get(diagnostic.code, ""), diagnostic.place))
        mine = order.index(diagnostic.severity)
        if other is None or (mine, diagnostic.code == DESTRUCTIVE.id) < (other, diagnostic.code == DROP.id):
            yield diagnostic


def after_ignores(
    found: Sequence[Diagnostic], ignores: Sequence[Ignore], active: Sequence[Active], *, is_looked_at: bool
) -> Iterator[Diagnostic]:
    """What is left of the findings of one file, and what is to be said of its ignores.

    :param is_looked_at: whether all was found that the file has, so that an ignore may be one of nothing.
    """
    if not ignores:
        yield from found
        return
    levels = {one.rule.id: one.severity for one in active}

    def told(rule: Rule, message: str, place: Place, hint: str) -> Iterator[Diagnostic]:
        if rule.id in levels:
            yield Diagnostic(rule.id, message, place, hint, levels[rule.id])

    here = {(d.code, d.place.line) for d in found if d.place is not None}
    ignored: set[tuple[str, int]] = set()
    for ignore in ignores:
        if not ignore.rules:
            message = "a comment for icemigrate that cannot be read"
            hint = f"write `{ignore.mark} icemigrate: ignore IM104 because …`"
            yield from told(NOT_UNDERSTOOD, message, ignore.place, hint)
            continue
        for word, rule in ((word, rule_of(word)) for word in ignore.rules):
            if rule is None:
                yield from told(NOT_UNDERSTOOD, f"there is no rule `{word}`", ignore.place, _known(word))
            elif not ignore.reason:
                hint = f"write `{_written(ignore)} because …`"
                message = f"{rule.id} is not ignored, since no reason is given"
                yield from told(WITHOUT_REASON, message, ignore.place, hint)
            elif (rule.id, ignore.line) in here:
                ignored.add((rule.id, ignore.line))
            elif is_looked_at and rule.id in levels:
                message = f"{rule.id} finds nothing here to ignore"
                hint = "take the comment out, or move it to the line of the finding or the one above"
                yield from told(OF_NOTHING, message, ignore.place, hint)
    yield from (d for d in found if d.place is None or (d.code, d.place.line) not in ignored)


def _written(ignore: Ignore) -> str:
    return f"{ignore.mark} icemigrate: ignore {', '.join(ignore.rules)}"


def _known(word: str) -> str:
    return did_you_mean(word, (rule.name for rule in RULES)) or "`icemigrate rules` lists them"
