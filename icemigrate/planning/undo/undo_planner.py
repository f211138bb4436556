"""Plans the undo of migrations, newest first, each on the state after the one before it; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from icemigrate.changes.change import PlanProblem
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import (
    TRASH_NAMESPACE,
    Table,
    aside_name,
    creator_of,
    made_by,
    owner_of,
    trash_name,
    unique_trash_name,
)
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.merge import NO_TABLE, OTHER_TABLE, RECREATED_TABLE, Conflict, with_catalog_ids
from icemigrate.planning.plan import Direction, MigrationPlan, PlannedMigrations, TablePlan
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange
from icemigrate.planning.table_plan import other_owner_problem
from icemigrate.planning.undo.altered_table import plan_altered_undo
from icemigrate.planning.undo.inverse import UndoStates, declared_after_undo, is_renamed_by_migration
from icemigrate.planning.undo.undo_inputs import (
    DEFAULT_UNDO_OPTIONS,
    NamespaceContents,
    UndoEnvironment,
    UndoOptions,
    both_declared_states,
    current_declared_name,
    emptied_namespaces,
    find_undo_table,
    recorded_uuid,
    view_in_the_way,
)
from icemigrate.planning.undo.undo_steps import restored_table
from icemigrate.planning.undo.waiting_tables import WaitingTables, in_undo_order
from icemigrate.spark_sql.identifiers import path_sql, table_sql


class MigrationUndo(Frozen):
    """A version to undo.

    :param checksum: as it was applied.
    :param options: the options of its undo; by default those of the whole plan.
    :param evidence: the answers to :func:`icemigrate.planning.undo.undo_questions`, by declared table.
    """

    version: str
    description: str
    checksum: str
    record: UndoRecord
    evidence: Mapping[TableName, Evidence]
    options: UndoOptions | None = None


def plan_undo(
    undos: Iterable[MigrationUndo],
    state: DeclaredState,
    actual: Mapping[TableName, Table | None],
    place: UndoEnvironment,
    options: UndoOptions = DEFAULT_UNDO_OPTIONS,
    contents: NamespaceContents | None = None,
) -> PlannedMigrations:
    """Plan the undo of versions, in the order given.

    :param state: the declared state of the applied migrations.
    :param actual: the catalog's tables by their name there.
    :param contents: of the namespaces that the versions created; without it all of them stay.
    """
    undo_state = _UndoState(state, dict(actual), place, options, contents)
    return PlannedMigrations(tuple(undo_state.undo(u, u.options or options) for u in undos), undo_state.state)


@dataclass(slots=True)
class _UndoState:
    """Base and actual while the versions are taken back."""

    state: DeclaredState
    actual: dict[TableName, Table | None]
    place: UndoEnvironment
    options: UndoOptions
    contents: NamespaceContents | None
    taken_back: set[str] = field(default_factory=set)
    waiting: WaitingTables = field(default_factory=WaitingTables)

    def undo(self, undo: MigrationUndo, options: UndoOptions) -> MigrationPlan:
        self.options = options
        names = partial(aside_name, project=self.place.project, version=undo.version)
        plans, problems, warnings = list[TablePlan](), list[PlanProblem](), list[PlanProblem]()
        for table in in_undo_order(undo.record.tables, self.actual, names):
            done = self._baselined(table) if undo.record.baseline else self._table(table, undo)
            plans.append(self.waiting.with_first_names(done.plan))
            problems += done.problems
            warnings += done.warnings
            kept = self.waiting.keep_declared(self.state, done.plan, names)
            self.state = kept.after(done.plan.declared, done.plan.formerly, done.declared)
            self._advance(done)
        self.taken_back.add(made_by(self.place.project, undo.version))
        emptied = self._emptied(undo.record)
        return MigrationPlan(
            version=undo.version,
            description=undo.description,
            checksum=undo.checksum,
            tables=tuple(plans),
            drop_namespaces=emptied,
            namespaces=self.state.namespaces,
            problems=tuple(problems),
            warnings=tuple(warnings),
            direction=Direction.ROLLBACK,
            baseline=undo.record.baseline,
        )

    def _emptied(self, record: UndoRecord) -> tuple[tuple[str, ...], ...]:
        """The namespaces that the undo drops; with those already dropped, they leave the declared state."""
        if self.contents is None:
            return ()
        emptied = tuple(emptied_namespaces(record.namespaces, self.contents, self.actual))
        there = self.contents.there.difference(emptied)
        self.contents = replace(self.contents, there=there)
        gone = set(record.namespaces) - there
        kept = (n for n in self.state.namespaces if self.place.physical_namespace(n) not in gone)
        self.state = replace(self.state, namespaces=frozenset(kept))
        return emptied

    def _advance(self, done: _TableUndoResult) -> None:
        if not done.plan.steps:
            return  # another object has that name and keeps it
        self.actual[done.plan.name] = None
        if done.after is not None:
            self.actual[done.after.name] = done.after

    def _table(self, table: TableUndo, undo: MigrationUndo) -> _TableUndoResult:
        there = find_undo_table(table, self.actual)
        if there is not None and owner_of(there) not in (None, self.place.project):
            return self._owned_by_another(table, there)
        if table.after is None and table.declared_after is None:
            return self._dropped(table, there)
        if table.before is None:
            return self._made(table, undo.version, there)
        return self._altered(table, undo, there)

    def _owned_by_another(self, table: TableUndo, there: Table) -> _TableUndoResult:
        """A table that was handed over to another project stays as it is."""
        declared = current_declared_name(table, self.state) or table.declared
        current = self.state.tables.get(declared)
        plan = TablePlan(there.name, declared, current, declared if current is not None else None)
        if self.options.is_recovery:  # a failed migration has not changed it, or the table would be ours
            return _TableUndoResult(
                replace(plan, notes=("stays as it is: another project owns it",)), there, current
            )
        problem = other_owner_problem(declared, there, self.place.project)
        problem = replace(problem, hint=f"{problem.hint}; `--partial` undoes the rest")
        if self.options.partial:
            return _TableUndoResult(
                _with_remaining(plan, f"the changes of {declared}", problem), there, current
            )
        return _TableUndoResult(plan, there, current, (problem,))

    def _baselined(self, table: TableUndo) -> _TableUndoResult:
        """The undo of a baseline: its record is removed, and the table stays as it is."""
        now = current_declared_name(table, self.state) or table.declared_after
        current = None if now is None else self.state.tables.get(now)
        declared = table.declared_before or table.declared
        before = table.before
        if before is not None and table.after is not None and current is not None:
            before = replace(declared_after_undo(UndoStates(before, table.after), current), name=declared)
        there = find_undo_table(table, self.actual)
        name = self.place.physical(declared) if there is None else there.name
        formerly = now if current is not None else None
        note = "stays as it is: the migration was recorded without changing it"
        return _TableUndoResult(TablePlan(name, declared, before, formerly, notes=(note,)), there, before)

    def _made(self, table: TableUndo, version: str, there: Table | None) -> _TableUndoResult:
        """The undo of a first mention: a created table moves to the trash, an adopted one stays."""
        declared = current_declared_name(table, self.state) or table.declared
        if there is not None and there.name.namespace == (TRASH_NAMESPACE,):
            there = None  # an interrupted undo got this far
        name = self.place.physical(declared) if there is None else there.name
        formerly = declared if declared in self.state.tables else None
        plan = TablePlan(name, declared, None, formerly)
        if there is None:
            note = "already dropped"
            if self._holder(table, declared) != NO_TABLE:
                note = "stays: another client created it again, and no migration declares it then"
            return _TableUndoResult(replace(plan, notes=(note,)), None, None)
        if not self._is_ours(table, version):
            return _TableUndoResult(
                replace(plan, notes=("stays: it was there before the migration adopted it",)), there, None
            )
        trash = trash_name(there.name, self.place.project, version)
        if self.options.is_recovery and there.uuid is not None:
            trash = unique_trash_name(trash, there.uuid)
        change = DropTable(there.name, trash)
        if self.actual.get(trash) is not None:
            problem = PlanProblem(
                "trash-taken",
                declared,
                (),
                f"the trash holds another table as `{trash}`",
                "empty the trash, or rename that table; `--partial` undoes the rest",
            )
            if self.options.partial:
                current = self.state.tables.get(declared)
                return _TableUndoResult(
                    _with_remaining(replace(plan, wanted=current), str(declared), problem), there, current
                )
            return _TableUndoResult(plan, there, None, (problem,))
        steps = tuple(as_steps([DetectedChange(change, there)], self.place.catalog_name))
        return _TableUndoResult(replace(plan, steps=steps), change.apply(there), None)

    def _holder(self, table: TableUndo, declared: TableName) -> str:
        """What has the name of a table that is gone; the history may record it (`repair --adopt`)."""
        recorded, uuid = self.state.tables.get(declared), recorded_uuid(table)
        if recorded is not None and None not in (recorded.uuid, uuid) and recorded.uuid != uuid:
            return RECREATED_TABLE
        return NO_TABLE if self.actual.get(self.place.physical(declared)) is None else OTHER_TABLE

    def _is_ours(self, table: TableUndo, version: str) -> bool:
        before = table.actual_before
        return before is None or creator_of(before) == made_by(self.place.project, version)

    def _dropped(self, table: TableUndo, there: Table | None) -> _TableUndoResult:
        """A dropped table: it is renamed back out of the trash."""
        declared, before = table.declared_before, table.before
        assert declared is not None, "what was dropped was declared"
        assert before is not None, "what was dropped was declared"
        name = table.actual_before.name if table.actual_before is not None else self.place.physical(declared)
        plan = TablePlan(there.name if there is not None else name, declared, before, None)
        if there is None and table.actual_before is None:
            return _TableUndoResult(
                replace(plan, notes=("was already gone before the migration",)), None, before
            )
        if there is None:
            where = f" as `{table.trash}`" if table.trash is not None else ""
            problem = PlanProblem(
                "trash-emptied",
                declared,
                ("drop",),
                f"`{declared}` cannot be restored: the trash no longer has it{where}",
                "restore its files from a backup and register them, or undo the rest with `--partial`",
            )
            return self._stays_dropped(plan, None, before, problem)
        if there.name == name:
            return _TableUndoResult(replace(plan, notes=("there already",)), there, before)
        if self._is_taken(name):
            return self._stays_dropped(plan, there, before, self._taken(declared, name))
        found, after = restored_table(RenameTable(there.name, name), there, table.actual_before)
        steps = tuple(as_steps(found, self.place.catalog_name))
        return _TableUndoResult(replace(plan, steps=steps), after, with_catalog_ids(before, after))

    def _stays_dropped(
        self, plan: TablePlan, there: Table | None, before: Table, problem: PlanProblem
    ) -> _TableUndoResult:
        if not self.options.partial:
            return _TableUndoResult(plan, there, before, (problem,))
        what = f"{plan.declared} being dropped"
        return _TableUndoResult(_with_remaining(replace(plan, wanted=None), what, problem), there, None)

    def _altered(self, table: TableUndo, undo: MigrationUndo, there: Table | None) -> _TableUndoResult:
        _, after = both_declared_states(table)
        old, new = table.declared_before, table.declared_after
        assert old is not None, "it was declared before the migration"
        assert new is not None, "it is declared after the migration"
        now = current_declared_name(table, self.state) or new
        renamed = old != new
        declared = old if renamed else now
        expected = self.place.physical(now)
        plan = TablePlan(expected, declared, None, now)
        if there is None:
            current = self.state.tables.get(now)
            actual = self._holder(table, now)
            conflict = Conflict(f"{expected}:name", f"table {expected}", "as before", actual)
            if self.options.partial:
                why = f"the catalog has no table `{expected}`"
                if actual != NO_TABLE:
                    why = f"the migration changed an earlier table `{expected}`"
                gone = PlanProblem("gone", declared, (), why)
                plan = replace(plan, declared=now, wanted=current)
                return _TableUndoResult(_with_remaining(plan, f"table {now}", gone), None, current)
            return _TableUndoResult(replace(plan, conflicts=(conflict,)), None, current)
        is_own_rename = renamed and is_renamed_by_migration(table)
        names = partial(aside_name, project=self.place.project, version=undo.version)
        if is_own_rename and there.name in map(names, map(self.place.physical, (old, new))):
            expected = there.name  # moved out of the way, by an interrupted run or this undo
        target, notes, conflicts = self._name(declared, there, expected, is_own_rename)
        if renamed and not is_renamed_by_migration(table):
            notes = [*notes, f"stays: the name {there.name}; it was called so before the migration"]
        is_new = target != there.name
        moved = self.waiting.move_aside(self.actual, target, undo.record, names) if is_new else ()
        steps = tuple(as_steps(moved, self.place.catalog_name))
        if is_new and self._is_taken(target):
            taken = self._taken(declared, target)
            if not self.options.partial:
                return _TableUndoResult(plan, there, self.state.tables.get(now), (taken,))
            plan = _with_remaining(replace(plan, declared=now), f"the name {there.name}", taken)
            declared, target = now, there.name
        done = plan_altered_undo(
            table,
            there,
            target,
            self.place.project,
            undo.version,
            self.place.catalog_name,
            undo.evidence.get(table.declared),
            replace(self.options, taken_back=frozenset(self.taken_back)),
        )
        current = self.state.tables.get(now, after)
        wanted = replace(
            with_catalog_ids(declared_after_undo(done.sides, current), done.after), name=declared
        )
        plan = replace(
            plan,
            name=there.name,
            wanted=wanted,
            steps=(*steps, *done.steps),
            notes=(*notes, *plan.notes, *done.notes),
            stays=(*plan.stays, *done.stays),
            last_copies=done.last_copies,
            conflicts=(*conflicts, *done.conflicts),
        )
        return _TableUndoResult(plan, done.after, wanted, done.problems, done.warnings)

    def _is_taken(self, name: TableName) -> bool:
        return self.actual.get(name) is not None or name in self.place.views

    def _taken(self, declared: TableName, name: TableName) -> PlanProblem:
        """The problem of another table or a view under the name that a table needs again, with a hint."""
        if name in self.place.views:
            return view_in_the_way(declared, name)
        other = self.actual[name]
        assert other is not None, "the name is taken"
        ours = next((n for n, t in self.state.tables.items() if t.uuid == other.uuid is not None), None)
        creator = creator_of(other)
        if ours is not None:
            who = f"table `{ours}`, which is declared"
        elif creator is not None:
            who = f"a table that migration {creator} created"
        else:
            who = "a table that no migration created"
        uuid = "" if other.uuid is None else f" (uuid {other.uuid})"
        old, new = table_sql(self.place.catalog_name, name), path_sql((*name.namespace, f"{name.name}_other"))
        way = f"rename that table, for example with `ALTER TABLE {old} RENAME TO {new}`, and roll back again"
        if ours is not None:
            way = "roll back the migration that created it first"
        return PlanProblem(
            "table-exists",
            declared,
            ("name",),
            f"`{declared}` cannot be renamed back: `{name}` is now {who}{uuid}",
            f"{way}; `--partial` undoes the rest",
        )

    def _name(
        self, declared: TableName, there: Table, expected: TableName, renamed: bool
    ) -> tuple[TableName, list[str], tuple[Conflict, ...]]:
        """The name that the table gets; a name that another client gave it stays."""
        wanted = self.place.physical(declared) if renamed else expected
        if there.name == expected:
            return wanted, [], ()
        if there.name == wanted:
            return wanted, [f"already renamed back: {wanted}"], ()
        if not renamed or self.options.partial:
            return (
                there.name,
                [f"found as {there.name}: another client renamed it, and the name stays"],
                (),
            )
        conflict = Conflict(f"{expected}:name", f"table {expected}", f"table {wanted}", f"table {there.name}")
        return there.name, [], (conflict,)


class _TableUndoResult(Frozen):
    """The undo of one table.

    :param after: the resulting table in the catalog.
    :param declared: its declaration after the undo; ``None`` where it is not declared any more.
    """

    plan: TablePlan
    after: Table | None
    declared: Table | None
    problems: tuple[PlanProblem, ...] = ()
    warnings: tuple[PlanProblem, ...] = ()


def _with_remaining(plan: TablePlan, what: str, problem: PlanProblem) -> TablePlan:
    """The plan, with the effects of the migration that it leaves and their reasons."""
    note = f"stays: {what}; {problem.message}"
    return replace(plan, notes=(*plan.notes, note), stays=(*plan.stays, what))
