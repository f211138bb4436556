"""The undo of a migration on a table that is there before and after it: altered, renamed or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.changes import KINDS
from icemigrate.changes.base import Change, MetadataCommit, Phase, Problem, Subject
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.widen_type import WidenType
from icemigrate.data.on_branches import hint_of
from icemigrate.diff import Difference, Found, difference, unproved
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import Conflict, done_notes, rebind_by_path
from icemigrate.model import legality
from icemigrate.model.evidence import Evidence
from icemigrate.model.marks import is_branch_of
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.model.types import Primitive
from icemigrate.model.undo_record import LastCopy, TableUndo
from icemigrate.plan import RECONCILED, PlannedChange, Step
from icemigrate.steps import as_steps, planned_change
from icemigrate.undo.branches import left_on_branches
from icemigrate.undo.in_part import InPart, Left, least_left, optional_with_rows_left
from icemigrate.undo.inverse import Sides, inverse
from icemigrate.undo.keeping import keep
from icemigrate.undo.own import own, own_notes
from icemigrate.undo.refilling import plan_refill, shares, unasked
from icemigrate.undo.refusing import come_back_optional, refusals, relies_on_files
from icemigrate.undo.rows import Rows, rewind
from icemigrate.undo.values import Key, Options, Refusal, Refused, both_sides, by_reason
from icemigrate.undo.voids import needed_by_voids

_DATE = Primitive("date")
_BEHIND = (
    "what it is partitioned or sorted by comes back in a second commit, behind the type, since Iceberg's "
    "library does not take both at once: rows that are written between the two are laid out as they are now"
)
_EXPECTED = ("no-promotion",)
"""What the kinds of change refuse on the way there, and an undo has judged by the files: a narrower type."""


class Altered(Frozen):
    """What undoing does to one table.

    :param name: the table in the catalog when it begins.
    :param after: the table that comes out.
    :param sides: the difference of what is declared, without what stays.
    :param stays: what stays of what the migration did, each in a few words.
    :param last_copies: values that only an earlier snapshot has, see :class:`~icemigrate.plan.TablePlan`.
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
    last_copies: tuple[LastCopy, ...] = ()


def undo_altered(
    undo: TableUndo,
    there: Table,
    new_name: TableName,
    project: str,
    version: str,
    catalog: str,
    evidence: Evidence | None,
    options: Options,
) -> Altered:
    """Plan it.

    :param there: the table as it is now.
    :param new_name: the name in the catalog that it shall have.
    :param project: whose migration it is.
    :param version: of the migration, for the commit's text.
    """

    def plan(left: tuple[Left, ...] = (), rows_left: Problem | None = None) -> Altered:
        in_part = InPart(left, rows_left)
        return _planned(undo, there, new_name, project, version, catalog, evidence, options, in_part)

    made = plan()
    if not options.partial or not made.problems:
        return made
    rows = next((p for p in made.problems if p.subject == ("rows",)), None)
    sides = both_sides(own(_settled(undo, there)))

    def problems_with(keys: frozenset[Key]) -> tuple[Problem, ...]:
        return plan(tuple(Left(key, "", "") for key in keys), rows).problems

    left = least_left(*sides, problems_with)
    return plan(left, rows)


def _planned(
    undo: TableUndo,
    there: Table,
    new_name: TableName,
    project: str,
    version: str,
    catalog: str,
    evidence: Evidence | None,
    options: Options,
    in_part: InPart,
) -> Altered:
    recorded = _settled(undo, there)
    undo = own(recorded)
    before, after = both_sides(undo)
    if in_part.rows is not None:
        in_part = in_part.with_rows(before, after)
        options = replace(options, metadata_only=True)
    staying = _Staying.of(undo, there, evidence, in_part)
    current, renaming = _renamed(there, new_name, catalog)
    merged = inverse(Sides(keep(before, after, [*staying.kept, *staying.voids]), after), current)
    taken = tuple(
        _problem_of(breach, undo.declared, current, catalog)
        for breach in legality.duplicate_names(merged.target, current)
    )
    # Where two fields would have one name, no path means one field any more: nothing can be planned.
    outcome = difference(current, current if taken else merged.target, KINDS)
    rows = rewind(undo, there, evidence, options)
    relies = evidence is not None and relies_on_files(undo, staying.kept)
    found, final = _found(outcome, rows, current, (project, version), relies)
    # Rows that go back to an earlier snapshot have their values there.
    kept = evidence if rows.change is None else None
    refill = plan_refill(final, (project, version), catalog, kept, options, undo.declared)
    found += refill.before
    problems = [*rows.problems, *refill.problems, *taken]
    if not options.partial:
        problems += [_problem(r, undo.declared) for r in by_reason(staying.refused)]
    warnings: list[Problem] = [*refill.warnings]
    problems += _objections(undo, found, outcome, current, catalog, warnings)
    notes = [*own_notes(recorded, there), *staying.notes(before)]
    notes += shares(before, after, evidence) if rows.change is None else ()
    notes += [*rows.notes, *refill.notes, *left_on_branches(there, final, undo.actual_before)]
    commits = tuple(_commits(found))
    notes += [*done_notes(merged.done), *(_BEHIND for _ in commits[1:])]
    stays = [*staying.words(there), *refill.stays]
    if options.metadata_only and undo.rows_changed and in_part.rows is None:
        stays.append("the rows that it wrote")
    if options.partial:
        notes += in_part.notes()
        stays += in_part.stays()
        notes += _left_notes(staying.refused, merged.conflicts)
        stays += _left(staying.refused, merged.conflicts, there)
    return Altered(
        name=there.name,
        after=final,
        sides=_declared(recorded, staying.left),
        steps=(*renaming, *(one_commit(version, part) for part in commits), *refill.steps),
        notes=tuple(notes),
        problems=tuple(problems),
        conflicts=() if options.partial else merged.conflicts,
        warnings=tuple(warnings),
        stays=tuple(stays),
        last_copies=(*refill.last_copies, *unasked(undo, kept)),
    )


class _Staying(Frozen):
    """What of a migration stays whatever is asked for.

    :param refused: what cannot be undone.
    :param optional: ids of fields that come back as optional ones.
    :param needed: why fields stay that older partition specs stand on, by their ids.
    :param kept: the facts that stay in the table as the migration left them.
    :param left: those of them that are declared on.  What comes back as optional is declared as it was:
        `drift` tells of it until it is required again.
    """

    refused: tuple[Refusal, ...]
    optional: tuple[int, ...]
    needed: Mapping[int, str]
    kept: frozenset[Key]
    left: frozenset[Key]

    @classmethod
    def of(cls, undo: TableUndo, there: Table, evidence: Evidence | None, in_part: InPart) -> _Staying:
        before, after = both_sides(undo)
        more = {one.key for one in in_part.left}
        refused = tuple(r for r in refusals(undo, there, evidence) if r.key not in more)
        optional = tuple(come_back_optional(undo, there, evidence))
        if in_part.rows is not None:
            optional = tuple(int(key[1]) for key in optional_with_rows_left(before, after))
        left: set[Key] = {r.key for r in refused} | more
        kept = left | {("optional", str(i)) for i in optional}
        return cls(
            refused,
            optional,
            needed_by_voids(before, after, there),
            frozenset(kept | _identifier_kept(before, after, kept)),
            frozenset(left | _identifier_kept(before, after, left)),
        )

    @property
    def voids(self) -> Iterator[Key]:
        """The facts that stay in the table, and are declared no more."""
        return (("added", str(i)) for i in self.needed)

    def notes(self, before: Table) -> Iterator[str]:
        """What is to be said of it."""
        yield from self.needed.values()
        yield from _names_back(before, self.optional)

    def words(self, there: Table) -> Iterator[str]:
        """Each in a few words, but for what is refused."""
        yield from (format_path(index(there.schema)[i].path) for i in self.needed)


def _renamed(there: Table, name: TableName, catalog: str) -> tuple[Table, Sequence[Step]]:
    """The table under the name that it shall have, and what gives it that name."""
    if there.name == name:
        return there, ()
    rename = RenameTable(there.name, name)
    return rename.apply(there), tuple(as_steps([Found(rename, there)], catalog))


def _found(
    outcome: Difference, rows: Rows, current: Table, owner: tuple[str, str], relies_on_files: bool
) -> tuple[list[Found], Table]:
    """The changes that are committed together, and the table that comes of them."""
    found, final = list(outcome.found), outcome.after
    if rows.change is not None:
        found.append(Found(rows.change, final))
        final = rows.change.apply(final)
    if rows.change is not None or (found and relies_on_files):
        found.insert(0, Found(ExpectSnapshot(current.name, current.snapshot_id), current))
    for left in [name for name in final.refs if is_branch_of(name, *owner)]:
        # A run that died while it wrote rows has left it.
        branch = DropReference(final.name, left, final.refs[left])
        found.append(Found(branch, final))
        final = branch.apply(final)
    return found, final


def _left_notes(refused: Sequence[Refusal], conflicts: Iterable[Conflict]) -> Iterator[str]:
    """What is said of what stays because only a part is undone."""
    yield from (f"stays: {r.stays}; {r.message}" for r in by_reason(refused))
    yield from (f"stays: {c.fact} is {c.actual}, neither {c.wanted} nor {c.base}" for c in conflicts)


def _left(refused: Iterable[Refusal], conflicts: Iterable[Conflict], there: Table) -> Iterator[str]:
    """The same in a few words each."""
    yield from (r.stays for r in refused)
    yield from (f"{c.fact.removeprefix(f'{there.name}:')} being {c.actual}" for c in conflicts)


def _settled(undo: TableUndo, there: Table) -> TableUndo:
    """The record of a migration that was cut short does not know the ids of what it had added."""
    if undo.after is None or all(f.id > 0 for _, f in undo.after.schema.walk()):
        return undo
    if undo.created is not None:
        return undo  # what was committed is known, by id
    known = undo.actual_before.last_column_id if undo.actual_before is not None else 0
    return replace(undo, after=rebind_by_path(undo.after, there, above=known))


def _identifier_kept(before: Table, after: Table, kept: Iterable[Key]) -> set[Key]:
    """The identifier stays where a field of it, or a struct that one stands in, stays away or may be null."""
    lost = {int(key[1]) for key in kept if key[0] in ("column", "optional", "required")}
    wanted, entries = before.schema.identifier_ids, index(before.schema)
    needed: set[int | None] = set()
    for field_id in wanted & entries.keys():
        at: int | None = field_id
        while at is not None:
            needed.add(at)
            at = entries[at].parent
    return {("identifier",)} if wanted != after.schema.identifier_ids and lost & needed else set()


def _declared(undo: TableUndo, kept: Iterable[Key]) -> Sides:
    before, after = both_sides(undo)
    return Sides(keep(before, after, tuple(kept)), after)


def _commits(found: list[Found]) -> Iterator[list[Found]]:
    """All of it in one commit, but where a date comes back together with its partitions or its order.

    Iceberg's library knows them still, as made for the other type, and takes these when it is asked for them
    (:func:`~icemigrate.model.partitioning.is_taken_along`); once the type is there, it has read them anew.
    """
    is_date = any(isinstance(f.change, WidenType) and _DATE in (f.change.old, f.change.new) for f in found)
    behind = [f for f in found if is_date and f.change.phase in (Phase.PARTITION, Phase.ORDER)]
    first = [f for f in found if f not in behind]
    return (commit for commit in (first, behind) if commit)


def one_commit(version: str, found: list[Found]) -> Step:
    """Changes of one table that are committed together.

    :param version: of the migration that is undone.
    """
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


def _problem_of(breach: legality.Breach, table: TableName, before: Table, catalog: str) -> Problem:
    return Problem(breach.rule, table, breach.subject, breach.message, hint_of(breach, before, catalog))


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
    way = "`apply --reconcile` makes {} required again when every row has a value"
    if len(optional) == 1:
        yield (
            f"{names} was required and comes back as optional: rows were written without it since; "
            f"{way.format('it')}"
        )
    elif optional:
        yield (
            f"{names} were required and come back as optional: rows were written without them since; "
            f"{way.format('them')}"
        )


def _objections(
    undo: TableUndo,
    found: list[Found],
    outcome: Difference,
    before: Table,
    catalog: str,
    warnings: list[Problem],
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
        (warnings if breach.is_warning else problems).append(_problem_of(breach, table, before, catalog))
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
