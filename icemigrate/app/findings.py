"""What a plan has against itself, as diagnostics with a place in the files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from icemigrate.changes.base import Problem
from icemigrate.declare.migration import MigrationFile, TableEntry
from icemigrate.diagnostics import Diagnostic, Place, Severity
from icemigrate.model.names import TableName
from icemigrate.plan import MigrationPlan

_PLAIN_ITEM = re.compile(r"[\w.]+( [\w.`-]+)*\Z")


_RULE = re.compile(r"IM[0-9]+")


def is_of_rule(found: Diagnostic) -> bool:
    """Whether a rule found it, which is about what a file does, and not the reading or planning of it."""
    return _RULE.fullmatch(found.code) is not None


def findings(
    file: MigrationFile, entries: Mapping[TableName, TableEntry], plan: MigrationPlan
) -> Iterator[Diagnostic]:
    """Problems, warnings and missing consents of one migration.

    :param entries: which entry of the file each table's plan comes from.
    """

    def told(problem: Problem, severity: Severity) -> Diagnostic:
        entry = entries.get(problem.table)
        place = file.place if entry is None else entry.place_of(problem.subject)
        return Diagnostic(problem.rule, problem.message, place, problem.hint, severity)

    for problem in plan.problems:
        yield told(problem, Severity.ERROR)
    for problem in plan.warnings:
        yield told(problem, Severity.WARNING)
    yield from _missing_consents(file, plan)


def _missing_consents(file: MigrationFile, plan: MigrationPlan) -> Iterator[Diagnostic]:
    if not plan.unconsented:
        return
    changes = {
        h: f"`{t.declared}`: `{c.change.symbol} {c.text}`"
        for t in plan.tables
        for c in t.changes()
        for h in c.hazards
    }
    changes |= {h: f"`{t.declared}`: `{w.text}`" for t in plan.tables for w in t.rows for h in w.hazards}
    whole = _allow_line(file, (h.kind.value for h in plan.unconsented))
    place = file.allow_place or Place(file.path)
    for hazard in plan.unconsented:
        scoped = _allow_line(file, [f"{hazard.kind.value} {hazard.scope}"])
        yield Diagnostic(
            "missing-allow",
            f"{changes[hazard]} is {hazard.kind.value}: {hazard.reason}",
            place,
            f"if it is meant, write `{whole}` in {file.path}, or for this alone `{scoped}`",
        )


def _allow_line(file: MigrationFile, more: Iterable[str]) -> str:
    """The file's ``allow`` with more consents in it, as it is to be written."""
    written = (a.kind if a.scope is None else f"{a.kind} {a.scope}" for a in file.allow)
    items = dict.fromkeys([*written, *more])
    return f"allow: [{', '.join(map(_yaml_item, items))}]"


def _yaml_item(text: str) -> str:
    """A text as an item of a list in brackets, in quotes where YAML needs them."""
    return text if _PLAIN_ITEM.match(text) else "'" + text.replace("'", "''") + "'"
