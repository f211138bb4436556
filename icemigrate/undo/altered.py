"""The undo of a migration on a table that is there before and after it: altered, renamed or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.changes import KINDS
from icemigrate.changes.base import Change, MetadataCommit, Problem, Subject
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.rename_table import RenameTable
from icemigrate.diff import Difference, Found, difference, unproved
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import Conflict, done_notes, rebind_by_path
from icemigrate.model import legality
from icemigrate.model.evidence import Evidence
from icemigrate.model.marks import branch_name
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo
from icemigrate.plan import RECONCILED, PlannedChange, Step
from icemigrate.steps import as_steps, planned_change
from icemigrate.undo.branches import left_on_branches
from icemigrate.undo.inverse import Sides, inverse
from icemigrate.undo.keeping import keep
from icemigrate.undo.own import own, own_notes
from icemigrate.undo.refilling import plan_refill, shares
from icemigrate.undo.refusing import come_back_optional, refusals, relies_on_files
from icemigrate.undo.rows import rewind
from icemigrate.undo.values import Key, Options, Refused, both_sides, by_reason
from icemigrate.undo.voids import needed_by_voids

_EXPECTED = ("no-promotion",)
"""What the kinds of change refuse on the way there, and an undo has judged by the files: a narrower type."""


class Altered(Frozen):
    """What undoing does to one table.

    :param name: the table in the catalog when it begins.
    :param after: the table that comes out.
    :param sides: the difference of what is declared, without what stays.
    :param stays: what stays of what the migration did, each in a few words.
    """

    name: TableName
    after: Table
    sides: Sides
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    warnings: tuple[Problem, ...] = ()
    stays: tuple[str, ...] = ()


def undo_altered(
    undo: TableUndo,
    there: Table,
    new_name: TableName,
    version: str,
    catalog: str,
    evidence: Evidence | None,
    options: Options,
) -> Altered:
    """Plan it.

    :param there: the table as it is now.
    :param new_name: the name in the catalog that it shall have.
    :param version: of the migration, for the commit's text.
    """
    recorded = _settled(undo, there)
    undo = own(recorded)
    before, after = both_sides(undo)
    refused = tuple(refusals(undo, there, evidence))
    optional = tuple(come_back_optional(undo, there, evidence))
    kept: set[Key] = {r.key for r in refused} | {("optional", str(i)) for i in optional}
    kept |= _identifier_kept(before, after, kept)
    needed = needed_by_voids(before, after, there)
    sides = Sides(keep(before, after, [*kept, *(("added", str(i)) for i in needed)]), after)
    found: list[Found] = []
    notes = [
        *own_notes(recorded),
        *needed.values(),
        *_names_back(before, optional),
    ]
    current = there
    if there.name != new_name:
        rename = RenameTable(there.name, new_name)
        found.append(Found(rename, there))
        current = rename.apply(there)
    steps = list(as_steps(found, catalog))
    merged = inverse(sides, current)
    taken = tuple(
        _problem_of(breach, undo.declared) for breach in legality.duplicate_names(merged.target, current)
    )
    # Where two fields would have one name, no path means one field any more: nothing can be planned.
    outcome = difference(current, current if taken else merged.target, KINDS)
    inner = list(outcome.found)
    rows = rewind(undo, there, evidence, options)
    if rows.change is not None:
        inner.append(Found(rows.change, outcome.after))
    if rows.change is not None or (inner and evidence is not None and relies_on_files(undo, kept)):
        snapshot = None if current.snapshot is None else current.snapshot.id
        inner.insert(0, Found(ExpectSnapshot(current.name, snapshot), current))
    final = outcome.after if rows.change is None else rows.change.apply(outcome.after)
    if (left := branch_name(version)) in final.refs:
        # A run that died while it wrote rows has left it.
        branch = DropReference(final.name, left, final.refs[left])
        inner.append(Found(branch, final))
        final = branch.apply(final)
    # Rows that go back to an earlier snapshot have their values there.
    refill = plan_refill(final, version, catalog, evidence if rows.change is None else None, options)
    inner += refill.before
    if rows.change is None:
        notes += shares(before, after, evidence)
    notes += [*rows.notes, *refill.notes, *left_on_branches(there, final), *done_notes(merged.done)]
    if inner:
        steps.append(_one_commit(version, inner))
    steps += refill.steps
    problems, conflicts = [*rows.problems, *refill.problems, *taken], merged.conflicts
    stays = [format_path(index(there.schema)[i].path) for i in needed]
    stays += [f"{format_path(index(before.schema)[i].path)} being optional" for i in optional]
    if options.metadata_only and undo.rows_changed:
        stays.append("the rows that it wrote")
    if options.partial:
        notes += [f"stays: {r.stays}; {r.message}" for r in by_reason(refused)]
        notes += [f"stays: {c.fact} is {c.actual}, neither {c.wanted} nor {c.base}" for c in conflicts]
        stays += [r.stays for r in refused]
        stays += [f"{c.fact.removeprefix(f'{there.name}:')} being {c.actual}" for c in conflicts]
        conflicts = ()
    else:
        problems += [_problem(r, undo.declared) for r in by_reason(refused)]
    warnings: list[Problem] = []
    problems += _objections(undo, inner, outcome, current, warnings)
    declared = _declared(recorded, kept)
    return Altered(
        there.name,
        final,
        declared,
        tuple(steps),
        tuple(notes),
        tuple(problems),
        conflicts,
        tuple(warnings),
        tuple(stays),
    )


def _settled(undo: TableUndo, there: Table) -> TableUndo:
    """The record of a migration that was cut short does not know the ids of what it had added."""
    if undo.after is None or all(f.id > 0 for _, f in undo.after.schema.walk()):
        return undo
    known = undo.actual_before.last_column_id if undo.actual_before is not None else 0
    return replace(undo, after=rebind_by_path(undo.after, there, above=known))


def _identifier_kept(before: Table, after: Table, kept: Iterable[Key]) -> set[Key]:
    """The identifier stays where a field of it, or a struct that one stands in, stays away or may be null."""
    lost = {int(key[1]) for key in kept if key[0] in ("column", "optional", "required")}
    wanted, entries = before.schema.identifier_ids, index(before.schema)
    needed: set[int | None] = set()
    for field_id in wanted:
        at: int | None = field_id
        while at is not None:
            needed.add(at)
            at = entries[at].parent
    return {("identifier",)} if wanted != after.schema.identifier_ids and lost & needed else set()


def _declared(undo: TableUndo, kept: Iterable[Key]) -> Sides:
    before, after = both_sides(undo)
    return Sides(keep(before, after, tuple(kept)), after)


def _one_commit(version: str, found: list[Found]) -> Step:
    changes = tuple(_until_redone(planned_change(f), version) for f in found)
    title = version if version == RECONCILED else f"undo {version}"
    return Step(changes, (MetadataCommit(f"{title}: {_summary(changes)}"),))


def _until_redone(planned: PlannedChange, version: str) -> PlannedChange:
    """A change, its loss told as what it is: a column that goes with its migration comes back with it."""
    if not isinstance(planned.change, DropColumn):
        return planned
    name = format_path(planned.change.path)
    reason = f"the values of `{name}` can be read again only after `apply --redo {version}`"
    return replace(planned, hazards=tuple(replace(h, reason=reason) for h in planned.hazards))


def _summary(changes: tuple[PlannedChange, ...]) -> str:
    told = (c for c in changes if not isinstance(c.change, ExpectSnapshot))
    return "; ".join(f"{c.change.symbol} {c.text}" for c in told)


def _problem_of(breach: legality.Breach, table: TableName) -> Problem:
    return Problem(breach.rule, table, breach.subject, breach.message, breach.hint)


def _problem(refusal: Refused, table: TableName) -> Problem:
    return Problem(
        refusal.rule,
        table,
        refusal.subject,
        refusal.message,
        "`--partial` undoes the rest and leaves this as it is",
    )


def _names_back(before: Table, optional: tuple[int, ...]) -> Iterator[str]:
    names = ", ".join(format_path(index(before.schema)[field_id].path) for field_id in optional)
    if len(optional) == 1:
        yield f"{names} was required and comes back as optional: rows were written without it since"
    elif optional:
        yield f"{names} were required and come back as optional: rows were written without them since"


def _objections(
    undo: TableUndo, found: list[Found], outcome: Difference, before: Table, warnings: list[Problem]
) -> Iterator[Problem]:
    """What the changes themselves and the resulting table have against it.

    What the table was guilty of before the migration is not held against its coming back.
    """
    table, then = undo.declared, undo.actual_before or undo.before
    known = set[tuple[str, Subject]]()
    if outcome.found and then is not None:
        known = {(b.rule, b.subject) for b in legality.problems(then, None)}
    problems = [p for f in found for p in _problems(f.change, f.before)]
    for breach in legality.problems(outcome.after, before) if outcome.found else ():
        if (breach.rule, breach.subject) in known:
            continue
        (warnings if breach.is_warning else problems).append(_problem_of(breach, table))
    yield from dict.fromkeys(problems)
    left = () if problems else unproved(outcome, KINDS)
    if left:
        yield Problem(
            "unproved",
            table,
            (),
            f"the undo of `{table}` does not lead to what was declared before; open: {', '.join(left)}",
            "`icemigrate revert` writes a migration instead; and report this as a bug",
        )


def _problems(change: Change, before: Table) -> Iterator[Problem]:
    return (p for p in change.problems(before) if p.rule not in _EXPECTED)
