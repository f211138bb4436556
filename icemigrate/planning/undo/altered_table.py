"""The undo of a migration on a table that exists before and after it: altered, renamed or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Change, PlanProblem, Subject
from icemigrate.changes.drop_reference import DropReference
from icemigrate.changes.expect_snapshot import ExpectSnapshot
from icemigrate.changes.rename_table import RenameTable
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg import validation
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.kept_views import kept_views
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.ref_names import is_branch_of
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import LastCopy, TableUndo
from icemigrate.planning.merge import Conflict, rebind_by_path, undone_notes
from icemigrate.planning.plan import Step
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import (
    DetectedChange,
    Difference,
    find_difference,
    remaining_differences,
)
from icemigrate.planning.undo.inverse import UndoStates, invert_migration, own_notes, with_net_change
from icemigrate.planning.undo.irreversible import (
    fields_restored_as_optional,
    find_irreversible_facts,
    has_file_conditions,
)
from icemigrate.planning.undo.partial_undo import (
    PartialUndo,
    RemainingFact,
    fields_optional_with_rows,
    minimal_remaining_facts,
)
from icemigrate.planning.undo.refill_plan import plan_refill, retained_value_notes, unchecked_last_copies
from icemigrate.planning.undo.retained_facts import retain_facts, void_field_sources
from icemigrate.planning.undo.undo_hints import identifier_problem, undo_problem
from icemigrate.planning.undo.undo_inputs import (
    FactKey,
    IrreversibleFact,
    IrreversibleGroup,
    UndoOptions,
    both_declared_states,
    group_by_reason,
)
from icemigrate.planning.undo.undo_steps import undo_steps
from icemigrate.planning.undo.undone_rows import RowsUndo, other_branch_notes, plan_rows_undo

_BEHIND = (
    "the partitioning or sort order is restored in a second commit, after the type, since Iceberg's library "
    "cannot change both in one: rows written between the two have the current layout"
)
_EXPECTED = ("no-promotion",)
"""Rules that the changes would break, and that an undo has already checked with the files: narrower types."""


class AlteredTableUndo(Frozen):
    """The undo of one table.

    :param name: the table's current name in the catalog.
    :param after: the resulting table.
    :param sides: the declared difference, without the facts that stay.
    :param stays: effects of the migration that stay, as phrases.
    :param last_copies: values that only an earlier snapshot has, see
        :class:`~icemigrate.planning.plan.TablePlan`.
    """

    name: TableName
    after: Table
    sides: UndoStates
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[PlanProblem, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    warnings: tuple[PlanProblem, ...] = ()
    stays: tuple[str, ...] = ()
    last_copies: tuple[LastCopy, ...] = ()


def plan_altered_undo(
    undo: TableUndo,
    there: Table,
    new_name: TableName,
    project: str,
    version: str,
    catalog: str,
    evidence: Evidence | None,
    options: UndoOptions,
) -> AlteredTableUndo:
    """Plan the undo of one table.

    :param there: the current table.
    :param new_name: its name in the catalog after the undo.
    :param project: the migration's project.
    :param version: of the migration, for the commit's text.
    """

    def plan(left: tuple[RemainingFact, ...] = (), rows_left: PlanProblem | None = None) -> AlteredTableUndo:
        in_part = PartialUndo(left, rows_left)
        return _planned(undo, there, new_name, project, version, catalog, evidence, options, in_part)

    made = plan()
    if not options.partial or not made.problems:
        return made
    rows = next((p for p in made.problems if p.subject == ("rows",)), None)
    sides = both_declared_states(with_net_change(_with_known_ids(undo, there)))

    def problems_with(keys: frozenset[FactKey]) -> tuple[PlanProblem, ...]:
        return plan(tuple(RemainingFact(key, "", "") for key in keys), rows).problems

    left = minimal_remaining_facts(*sides, problems_with)
    return plan(left, rows)


def _planned(
    undo: TableUndo,
    there: Table,
    new_name: TableName,
    project: str,
    version: str,
    catalog: str,
    evidence: Evidence | None,
    options: UndoOptions,
    in_part: PartialUndo,
) -> AlteredTableUndo:
    recorded = _with_known_ids(undo, there)
    undo = with_net_change(recorded)
    before, after = both_declared_states(undo)
    if in_part.rows is not None:
        in_part = in_part.with_rows(before, after)
        options = replace(options, metadata_only=True)
    staying = _RemainingFacts.of(undo, there, evidence, in_part)
    current, renaming = _renamed(there, new_name, catalog)
    merged = invert_migration(
        UndoStates(retain_facts(before, after, [*staying.kept, *staying.void_fields]), after), current
    )
    taken = tuple(
        undo_problem(violation, undo.declared, current, merged.target, catalog)
        for violation in validation.duplicate_names(merged.target, current)
    )
    # If two fields had one name, no path would identify a field: nothing can be planned.
    outcome = find_difference(current, current if taken else merged.target, CHANGE_KINDS)
    rows = plan_rows_undo(undo, there, evidence, options)
    relies = evidence is not None and has_file_conditions(undo, staying.kept)
    found, final = _committed_changes(outcome, rows, current, (project, version), relies)
    # Rows that return to an earlier snapshot have their values there.
    kept = evidence if rows.change is None else None
    refill = plan_refill(final, (project, version), catalog, kept, options, undo.declared)
    found += refill.before
    problems = [*rows.problems, *refill.problems, *taken]
    if not options.partial:
        problems += [_problem(r, undo.declared) for r in group_by_reason(staying.refused)]
    problems += _view_left_behind(undo.declared, there, new_name, merged.target)
    warnings: list[PlanProblem] = [*refill.warnings]
    problems += _objections(undo, found, outcome, current, catalog, warnings)
    notes = [*own_notes(recorded, there), *staying.notes(before)]
    notes += retained_value_notes(before, after, evidence) if rows.change is None else ()
    notes += [*rows.notes, *refill.notes, *other_branch_notes(there, final, undo.actual_before)]
    steps = undo_steps(version, found, catalog)
    notes += [*undone_notes(merged.done), *(_BEHIND for _ in steps.commits[1:])]
    stays = [*staying.words(there), *refill.stays]
    if options.metadata_only and undo.rows_changed and in_part.rows is None:
        stays.append("the rows that it wrote")
    if options.partial:
        notes += in_part.notes()
        stays += in_part.stays()
        notes += _remaining_notes(staying.refused, merged.conflicts)
        stays += _remaining_texts(staying.refused, merged.conflicts, there)
    return AlteredTableUndo(
        name=there.name,
        after=final,
        sides=_declared(recorded, staying.left),
        steps=(*renaming, *steps.before, *steps.commits, *refill.steps, *steps.after),
        notes=tuple(notes),
        problems=tuple(problems),
        conflicts=() if options.partial else merged.conflicts,
        warnings=tuple(warnings),
        stays=tuple(stays),
        last_copies=(*refill.last_copies, *unchecked_last_copies(undo, kept)),
    )


def _view_left_behind(
    declared: TableName, there: Table, new_name: TableName, target: Table
) -> Iterator[PlanProblem]:
    """The problem of a table with a kept view of another migration that moves back to its namespace."""
    view = next(kept_views(target.properties), None)
    if view is not None and there.name.namespace != new_name.namespace:
        yield PlanProblem(
            "keep-view-namespace",
            declared,
            ("renamed_from",),
            f"`{there.name}` cannot move to another namespace, because its view `{view.name}` would stay",
            "drop its views first, in a migration with `keep_view: null`",
        )


class _RemainingFacts(Frozen):
    """Facts of a migration that stay with any options.

    :param refused: facts that cannot be undone.
    :param optional: ids of fields that are restored as optional ones.
    :param needed: reasons for fields that stay because older partition specs need them, by id.
    :param kept: the facts that stay in the table as the migration left them.
    :param left: those of them that stay declared.  A field that is restored as optional is declared as it
        was: `drift` reports it until it is required again.
    """

    refused: tuple[IrreversibleFact, ...]
    optional: tuple[int, ...]
    needed: Mapping[int, str]
    kept: frozenset[FactKey]
    left: frozenset[FactKey]

    @classmethod
    def of(
        cls, undo: TableUndo, there: Table, evidence: Evidence | None, in_part: PartialUndo
    ) -> _RemainingFacts:
        before, after = both_declared_states(undo)
        more = {one.key for one in in_part.left}
        refused = tuple(r for r in find_irreversible_facts(undo, there, evidence) if r.key not in more)
        optional = tuple(fields_restored_as_optional(undo, there, evidence))
        if in_part.rows is not None:
            optional = tuple(int(key[1]) for key in fields_optional_with_rows(before, after))
        left: set[FactKey] = {r.key for r in refused} | more
        kept = left | {("optional", str(i)) for i in optional}
        return cls(
            refused,
            optional,
            void_field_sources(before, after, there),
            frozenset(kept | _remaining_identifier(before, after, kept)),
            frozenset(left | _remaining_identifier(before, after, left)),
        )

    @property
    def void_fields(self) -> Iterator[FactKey]:
        """The facts that stay in the table, and are declared no more."""
        return (("added", str(i)) for i in self.needed)

    def notes(self, before: Table) -> Iterator[str]:
        """Notes about the facts that stay."""
        yield from self.needed.values()
        yield from _names_back(before, self.optional)

    def words(self, there: Table) -> Iterator[str]:
        """The facts that stay, each as a phrase, without the refused ones."""
        yield from (format_path(schema_index(there.schema)[i].path) for i in self.needed)


def _renamed(there: Table, name: TableName, catalog: str) -> tuple[Table, Sequence[Step]]:
    """The table under its new name, and the change that renames it."""
    if there.name == name:
        return there, ()
    rename = RenameTable(there.name, name)
    return rename.apply(there), tuple(as_steps([DetectedChange(rename, there)], catalog))


def _committed_changes(
    outcome: Difference, rows: RowsUndo, current: Table, owner: tuple[str, str], relies_on_files: bool
) -> tuple[list[DetectedChange], Table]:
    """The changes that are committed together, and the table after them."""
    found, final = list(outcome.found), outcome.after
    if rows.change is not None:
        found.append(DetectedChange(rows.change, final))
        final = rows.change.apply(final)
    if rows.change is not None or (found and relies_on_files):
        found.insert(0, DetectedChange(ExpectSnapshot(current.name, current.snapshot_id), current))
    for left in [name for name in final.refs if is_branch_of(name, *owner)]:
        # An interrupted run left it while it wrote rows.
        branch = DropReference(final.name, left, final.refs[left])
        found.append(DetectedChange(branch, final))
        final = branch.apply(final)
    return found, final


def _remaining_notes(refused: Sequence[IrreversibleFact], conflicts: Iterable[Conflict]) -> Iterator[str]:
    """Notes about the facts that stay because of ``--partial``."""
    yield from (f"stays: {r.stays}; {r.message}" for r in group_by_reason(refused))
    yield from (f"stays: {c.fact} is {c.actual}, neither {c.wanted} nor {c.base}" for c in conflicts)


def _remaining_texts(
    refused: Iterable[IrreversibleFact], conflicts: Iterable[Conflict], there: Table
) -> Iterator[str]:
    """The same in a few words each."""
    yield from (r.stays for r in refused)
    yield from (f"{c.fact.removeprefix(f'{there.name}:')} being {c.actual}" for c in conflicts)


def _with_known_ids(undo: TableUndo, there: Table) -> TableUndo:
    """The record of an interrupted migration with the ids of the fields that it added."""
    if undo.after is None or all(f.id > 0 for _, f in undo.after.schema.walk()):
        return undo
    if undo.created is not None:
        return undo  # committed fields are known by id
    known = undo.actual_before.last_column_id if undo.actual_before is not None else 0
    return replace(undo, after=rebind_by_path(undo.after, there, above=known))


def _remaining_identifier(before: Table, after: Table, kept: Iterable[FactKey]) -> set[FactKey]:
    """Leave the identifier where one of its fields, or a parent struct, is not restored or may be null."""
    lost = {int(key[1]) for key in kept if key[0] in ("column", "optional", "required")}
    wanted, entries = before.schema.identifier_ids, schema_index(before.schema)
    needed: set[int | None] = set()
    for field_id in wanted & entries.keys():
        at: int | None = field_id
        while at is not None:
            needed.add(at)
            at = entries[at].parent
    return {("identifier",)} if wanted != after.schema.identifier_ids and lost & needed else set()


def _declared(undo: TableUndo, kept: Iterable[FactKey]) -> UndoStates:
    before, after = both_declared_states(undo)
    return UndoStates(retain_facts(before, after, tuple(kept)), after)


def _problem(refusal: IrreversibleGroup, table: TableName) -> PlanProblem:
    hint = "`--partial` undoes the rest and leaves this as it is"
    return PlanProblem(refusal.rule, table, refusal.subject, refusal.message, hint)


def _names_back(before: Table, optional: tuple[int, ...]) -> Iterator[str]:
    if optional:
        names = ", ".join(format_path(schema_index(before.schema)[field_id].path) for field_id in optional)
        was, comes, it = ("was", "comes", "it") if len(optional) == 1 else ("were", "come", "them")
        yield (
            f"{names} {was} required and {comes} back as optional: rows were written without {it} since; "
            f"`apply --reconcile` makes {it} required again when every row has a value"
        )


def _objections(
    undo: TableUndo,
    found: list[DetectedChange],
    outcome: Difference,
    before: Table,
    catalog: str,
    warnings: list[PlanProblem],
) -> Iterator[PlanProblem]:
    """Problems of the changes and of the resulting table.

    Violations that the table had before the migration do not prevent its undo.
    """
    table, then = undo.declared, undo.actual_before or undo.before
    known = set[tuple[str, Subject]]()
    if outcome.found and then is not None:
        known = {(b.rule, b.subject) for b in validation.find_violations(then, None)}
    problems = [p for f in found for p in _problems(f.change, f.before)]
    for violation in validation.find_violations(outcome.after, before) if outcome.found else ():
        if (violation.rule, violation.subject) in known:
            continue
        problem = undo_problem(violation, table, before, outcome.after, catalog)
        (warnings if violation.is_warning else problems).append(problem)
    yield from dict.fromkeys(problems)
    left = () if problems else remaining_differences(outcome, CHANGE_KINDS)
    if left and (identifier := identifier_problem(table, before, outcome.after)) is not None:
        yield identifier
    elif left:
        yield PlanProblem(
            "unproved",
            table,
            (),
            f"the undo of `{table}` does not produce the table as declared before; still different: "
            f"{', '.join(left)}",
            "`icemigrate revert` writes a migration instead; and report this as a bug",
        )


def _problems(change: Change, before: Table) -> Iterator[PlanProblem]:
    return (p for p in change.problems(before) if p.rule not in _EXPECTED)
