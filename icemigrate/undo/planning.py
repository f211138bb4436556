"""Migrations taken back, newest first, each planned on what the one before it leaves; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from icemigrate.changes.base import Problem
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.diff import Found
from icemigrate.frozen import Frozen, replace
from icemigrate.merge import Conflict
from icemigrate.model.evidence import Evidence
from icemigrate.model.makers import TRASH_NAMESPACE, made_by, maker_of, owner_of, trash_name
from icemigrate.model.names import TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo, UndoRecord
from icemigrate.plan import Direction, MigrationPlan, TablePlan
from icemigrate.plan_table import owned_by_another
from icemigrate.planner import Planned, settle
from icemigrate.sql.names import path_sql, table_sql
from icemigrate.steps import as_steps
from icemigrate.undo.altered import undo_altered
from icemigrate.undo.finding import declared_now, find
from icemigrate.undo.inverse import Sides, declared_again
from icemigrate.undo.namespaces import Contents, left_empty
from icemigrate.undo.own import is_moved
from icemigrate.undo.values import PLAIN, Options, both_sides


class Undo(Frozen):
    """A version that is to be taken back.

    :param checksum: as it was applied.
    :param options: what is wanted of its undo; that of the whole plan where left out.
    :param evidence: the answers to :func:`icemigrate.undo.questions`, by the table as people know it.
    """

    version: str
    description: str
    checksum: str
    record: UndoRecord
    evidence: Mapping[TableName, Evidence]
    options: Options | None = None


class Place(Frozen):
    """Where the tables live.

    :param physical: a declared table name → the name in the environment's catalog.
    """

    project: str
    catalog_name: str
    physical: Callable[[TableName], TableName] = lambda name: name

    def physical_namespace(self, declared: tuple[str, ...]) -> tuple[str, ...]:
        """A declared namespace as the catalog calls it."""
        return self.physical(TableName(declared, "any")).namespace


def plan_undo(
    undos: Iterable[Undo],
    state: State,
    actual: Mapping[TableName, Table | None],
    place: Place,
    options: Options = PLAIN,
    contents: Contents | None = None,
) -> Planned:
    """Plan the undo of versions, in the order given.

    :param state: as declared by what is applied.
    :param actual: the catalog's tables by their name there.
    :param contents: of the namespaces that the versions made; all of them stay where nobody looked.
    """
    world = _World(state, dict(actual), place, options, contents)
    return Planned(tuple(world.undo(u, u.options or options) for u in undos), world.state)


@dataclass(slots=True)
class _World:
    """Base and actual while the versions are taken back."""

    state: State
    actual: dict[TableName, Table | None]
    place: Place
    options: Options
    contents: Contents | None
    taken_back: set[str] = field(default_factory=set)

    def undo(self, undo: Undo, options: Options) -> MigrationPlan:
        self.options = options
        plans, problems, warnings = list[TablePlan](), list[Problem](), list[Problem]()
        # What was done last goes first: a name that one table gave free may be another's now.
        for table in reversed(undo.record.tables):
            done = self._baselined(table) if undo.record.baseline else self._table(table, undo)
            plans.append(done.plan)
            problems += done.problems
            warnings += done.warnings
            self.state = self.state.after(done.plan.declared, done.plan.formerly, done.declared)
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
        """The namespaces that go with what made them; like those gone already, they are declared no more."""
        if self.contents is None:
            return ()
        emptied = tuple(left_empty(record.namespaces, self.contents, self.actual))
        there = self.contents.there.difference(emptied)
        self.contents = replace(self.contents, there=there)
        gone = set(record.namespaces) - there
        kept = (n for n in self.state.namespaces if self.place.physical_namespace(n) not in gone)
        self.state = replace(self.state, namespaces=frozenset(kept))
        return emptied

    def _advance(self, done: _Done) -> None:
        if not done.plan.steps:
            return  # whatever has that name keeps it
        self.actual[done.plan.name] = None
        if done.after is not None:
            self.actual[done.after.name] = done.after

    def _table(self, table: TableUndo, undo: Undo) -> _Done:
        there = find(table, self.actual)
        if there is not None and owner_of(there) not in (None, self.place.project):
            return self._owned_by_another(table, there)
        if table.after is None and table.declared_after is None:
            return self._dropped(table, there)
        if table.before is None:
            return self._made(table, undo.version, there)
        return self._altered(table, undo, there)

    def _owned_by_another(self, table: TableUndo, there: Table) -> _Done:
        """A table that was handed over to another project stays as it is."""
        declared = declared_now(table, self.state) or table.declared
        current = self.state.tables.get(declared)
        plan = TablePlan(there.name, declared, current, declared if current is not None else None)
        if self.options.apart:  # a failed migration has done nothing to it, or the table would be ours
            return _Done(replace(plan, notes=("stays as it is: another project owns it",)), there, current)
        problem = owned_by_another(declared, there, self.place.project)
        problem = replace(problem, hint=f"{problem.hint}; `--partial` undoes the rest")
        if self.options.partial:
            return _Done(_left(plan, f"what was changed of {declared}", problem), there, current)
        return _Done(plan, there, current, (problem,))

    def _baselined(self, table: TableUndo) -> _Done:
        """What was recorded as done already: it is forgotten, and the table stays as it is."""
        now = declared_now(table, self.state) or table.declared_after
        current = None if now is None else self.state.tables.get(now)
        declared = table.declared_before or table.declared
        before = table.before
        if before is not None and table.after is not None and current is not None:
            before = replace(declared_again(Sides(before, table.after), current), name=declared)
        there = find(table, self.actual)
        name = self.place.physical(declared) if there is None else there.name
        formerly = now if current is not None else None
        note = "stays as it is: the migration was recorded without touching it"
        return _Done(TablePlan(name, declared, before, formerly, notes=(note,)), there, before)

    def _made(self, table: TableUndo, version: str, there: Table | None) -> _Done:
        """A first mention: a table that the migration made goes into the trash, an adopted one stays."""
        declared = declared_now(table, self.state) or table.declared
        if there is not None and there.name.namespace == (TRASH_NAMESPACE,):
            there = None  # an undo that was cut short got so far
        name = self.place.physical(declared) if there is None else there.name
        formerly = declared if declared in self.state.tables else None
        plan = TablePlan(name, declared, None, formerly)
        if there is None:
            return _Done(replace(plan, notes=("gone already",)), None, None)
        if not self._is_ours(table, version):
            return _Done(
                replace(plan, notes=("stays: it was there before the migration adopted it",)), there, None
            )
        trash = trash_name(there.name, self.place.project, version)
        if self.options.apart and there.uuid is not None:
            trash = TableName(trash.namespace, f"{trash.name}__{there.uuid[:8]}")
        change = DropTable(there.name, trash)
        found = [Found(change, there)]
        if self.actual.get(trash) is not None:
            problem = Problem(
                "trash-taken",
                declared,
                (),
                f"the trash holds another table as `{trash}`",
                "empty the trash, or rename that table; `--partial` undoes the rest",
            )
            if self.options.partial:
                current = self.state.tables.get(declared)
                return _Done(_left(replace(plan, wanted=current), str(declared), problem), there, current)
            return _Done(plan, there, None, (problem,))
        steps = tuple(as_steps(found, self.place.catalog_name))
        return _Done(replace(plan, steps=steps), change.apply(there), None)

    def _is_ours(self, table: TableUndo, version: str) -> bool:
        before = table.actual_before
        return before is None or maker_of(before) == made_by(self.place.project, version)

    def _dropped(self, table: TableUndo, there: Table | None) -> _Done:
        """A dropped table: it is renamed back out of the trash."""
        declared, before = table.declared_before, table.before
        assert declared is not None, "what was dropped was declared"
        assert before is not None, "what was dropped was declared"
        name = table.actual_before.name if table.actual_before is not None else self.place.physical(declared)
        plan = TablePlan(there.name if there is not None else name, declared, before, None)
        if there is None and table.actual_before is None:
            return _Done(replace(plan, notes=("was gone before the migration already",)), None, before)
        if there is None:
            where = f" as `{table.trash}`" if table.trash is not None else ""
            problem = Problem(
                "trash-emptied",
                declared,
                ("drop",),
                f"`{declared}` cannot come back: the trash does not hold it any more{where}",
                "bring its files back from a backup and register them, or undo the rest: `--partial`",
            )
            return self._stays_dropped(plan, None, before, problem)
        if there.name == name:
            return _Done(replace(plan, notes=("there already",)), there, before)
        if self.actual.get(name) is not None:
            return self._stays_dropped(plan, there, before, self._taken(declared, name))
        change = RenameTable(there.name, name)
        steps = tuple(as_steps([Found(change, there)], self.place.catalog_name))
        after = change.apply(there)
        return _Done(replace(plan, steps=steps), after, settle(before, after))

    def _stays_dropped(self, plan: TablePlan, there: Table | None, before: Table, problem: Problem) -> _Done:
        if not self.options.partial:
            return _Done(plan, there, before, (problem,))
        what = f"{plan.declared} being dropped"
        return _Done(_left(replace(plan, wanted=None), what, problem), there, None)

    def _altered(self, table: TableUndo, undo: Undo, there: Table | None) -> _Done:
        _, after = both_sides(table)
        old, new = table.declared_before, table.declared_after
        assert old is not None, "it was declared before the migration"
        assert new is not None, "it is declared after the migration"
        now = declared_now(table, self.state) or new
        renamed = old != new
        declared = old if renamed else now
        expected = self.place.physical(now)
        plan = TablePlan(expected, declared, None, now)
        if there is None:
            conflict = Conflict(
                f"{expected}:name", f"table {expected}", "as before", "no such table in the catalog"
            )
            current = self.state.tables.get(now)
            if self.options.partial:
                gone = Problem("gone", declared, (), f"the catalog has no table `{expected}`")
                plan = replace(plan, declared=now, wanted=current)
                return _Done(_left(plan, f"table {now}", gone), None, current)
            return _Done(replace(plan, conflicts=(conflict,)), None, current)
        target, notes, conflicts = self._name(declared, there, expected, renamed and is_moved(table))
        if renamed and not is_moved(table):
            notes = [*notes, f"stays: the name {there.name}; it was called so before the migration"]
        if target != there.name and self.actual.get(target) is not None:
            taken = self._taken(declared, target)
            if not self.options.partial:
                return _Done(plan, there, self.state.tables.get(now), (taken,))
            plan = _left(replace(plan, declared=now), f"the name {there.name}", taken)
            declared, target = now, there.name
        done = undo_altered(
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
        wanted = replace(settle(declared_again(done.sides, current), done.after), name=declared)
        plan = replace(
            plan,
            name=there.name,
            wanted=wanted,
            steps=done.steps,
            notes=(*notes, *plan.notes, *done.notes),
            stays=(*plan.stays, *done.stays),
            last_copies=done.last_copies,
            conflicts=(*conflicts, *done.conflicts),
        )
        return _Done(plan, done.after, wanted, done.problems, done.warnings)

    def _taken(self, declared: TableName, name: TableName) -> Problem:
        """Another table stands under the name that a table shall have again: which one, and what to do."""
        other = self.actual[name]
        assert other is not None, "the name is taken"
        ours = next((n for n, t in self.state.tables.items() if t.uuid == other.uuid is not None), None)
        maker = maker_of(other)
        if ours is not None:
            who = f"table `{ours}`, which is declared"
        elif maker is not None:
            who = f"a table that migration {maker} made"
        else:
            who = "a table that no migration made"
        uuid = "" if other.uuid is None else f" (uuid {other.uuid})"
        old, new = table_sql(self.place.catalog_name, name), path_sql((*name.namespace, f"{name.name}_other"))
        way = f"move that one away, as by `ALTER TABLE {old} RENAME TO {new}`, and roll back again"
        if ours is not None:
            way = "take the migration that made that one back first"
        return Problem(
            "table-exists",
            declared,
            ("name",),
            f"`{declared}` cannot have its name back: `{name}` is {who}{uuid} by now",
            f"{way}; `--partial` undoes the rest",
        )

    def _name(
        self, declared: TableName, there: Table, expected: TableName, renamed: bool
    ) -> tuple[TableName, list[str], tuple[Conflict, ...]]:
        """The name that the table gets back; one that somebody else gave it stays."""
        wanted = self.place.physical(declared) if renamed else expected
        if there.name == expected:
            return wanted, [], ()
        if there.name == wanted:
            return wanted, [f"renamed back already: {wanted}"], ()
        if not renamed or self.options.partial:
            return there.name, [f"found as {there.name}: somebody renamed it since, and the name stays"], ()
        conflict = Conflict(f"{expected}:name", f"table {expected}", f"table {wanted}", f"table {there.name}")
        return there.name, [], (conflict,)


class _Done(Frozen):
    """One table taken back.

    :param after: the table that comes out, in the catalog.
    :param declared: as it is declared then; ``None`` where it is not declared any more.
    """

    plan: TablePlan
    after: Table | None
    declared: Table | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def _left(plan: TablePlan, what: str, problem: Problem) -> TablePlan:
    """The plan, which leaves something as the migration made it, and says why."""
    note = f"stays: {what}; {problem.message}"
    return replace(plan, notes=(*plan.notes, note), stays=(*plan.stays, what))
