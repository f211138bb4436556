"""What one migration does to one table: create, adopt, rename, drop, or alter what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.base import Problem
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.data.base import Ground, RowWork, old_fields
from icemigrate.data.retype import Retype
from icemigrate.diff import Found
from icemigrate.merge import UNKNOWN_BASE, Conflict, Merged, adopted, done_notes, merge
from icemigrate.model import legality
from icemigrate.model.makers import CREATED_BY_PROPERTY, made_by, maker_of, project_of, trash_name
from icemigrate.model.names import TableName
from icemigrate.model.schema import Schema
from icemigrate.model.sides import Wanted
from icemigrate.model.table import Table
from icemigrate.plan import Step, TablePlan
from icemigrate.refills import deferred
from icemigrate.staging import left_to_retype, staged, with_works, work_problems
from icemigrate.steps import as_steps, as_unwritten_steps


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What planning has to know of where the tables live.

    :param catalog_name: the catalog's name in Spark SQL.
    :param physical: a declared table name → the name in this environment's catalog.
    :param physical_namespace: the same for a namespace.
    :param namespaces: namespaces that are there, by their name in the catalog.
    :param default_location: where the catalog puts a table of this name.
    :param overwrite: facts (``table:subject``) that are set whatever they are now.
    :param adjust: what the environment adds to a declared table (overrides of properties, location).
    :param begun: versions that the history knows a run of that has no outcome yet.
    :param partitions_by_first_column: whether the catalog takes that in a ``CREATE TABLE``.
    :param has_branches: whether rows may be written on a branch of a table.
    :param is_catalog_known: whether ``actual`` is what a catalog holds; else nobody knows whether a table
        that is to be adopted is there, and what would only be wrong in making it is not said.
    :param are_statements_read: whether anybody reads the statements; without them nothing can be carried out.
    """

    project: str
    catalog_name: str
    physical: Callable[[TableName], TableName] = lambda name: name
    physical_namespace: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda namespace: namespace
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    default_location: Callable[[TableName], str | None] = lambda name: None
    overwrite: frozenset[str] = frozenset()
    adjust: Callable[[Table], Table] = lambda table: table
    begun: frozenset[str] = frozenset()
    partitions_by_first_column: bool = True
    has_branches: bool = True
    is_catalog_known: bool = True
    are_statements_read: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """A table's plan, what forbids it, and the table it leaves (``None`` where it is gone).

    :param between: the table as it is when its rows are written, where that is another one.
    :param works: the data steps that are left to be done; ``None`` for all.
    """

    plan: TablePlan
    after: Table | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    between: Table | None = None
    works: tuple[RowWork, ...] | None = None

    def namespaces_needed(self) -> Iterator[TableName]:
        """Names whose namespaces must exist before the plan runs."""
        if self.plan.steps and self.after is not None:
            yield self.after.name


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything one table's planning looks at."""

    wanted: Wanted
    base: Table | None
    name: TableName
    goal: Table | None
    version: str
    surroundings: Surroundings

    def plan(self, name: TableName, found: Sequence[Found] = (), notes: Sequence[str] = ()) -> TablePlan:
        return TablePlan(
            name=name,
            declared=self.wanted.name,
            wanted=self.wanted.table if self.wanted.table is None else self.declared_goal(),
            formerly=self.wanted.formerly,
            steps=self.steps(found),
            notes=tuple(notes),
        )

    def steps(self, found: Sequence[Found]) -> tuple[Step, ...]:
        is_read = self.surroundings.are_statements_read
        made = as_steps(found, self.surroundings.catalog_name) if is_read else as_unwritten_steps(found)
        return tuple(step.scoped(self.wanted.name) for step in made)

    @property
    def works(self) -> tuple[RowWork, ...]:
        return tuple(step for step in self.wanted.data if isinstance(step, RowWork))

    def declared_goal(self) -> Table:
        assert self.goal is not None
        return replace(self.goal, name=self.wanted.name)


def plan_table(
    wanted: Wanted,
    base: Table | None,
    actual: Mapping[TableName, Table | None],
    version: str,
    former: frozenset[TableName],
    surroundings: Surroundings,
) -> Outcome:
    """Plan one table.

    :param base: the table as the history has it, ``None`` at its first mention.
    :param actual: the catalog's tables by their name there.
    :param former: declared names that tables had once.
    """
    name = surroundings.physical(wanted.name)
    goal = None if wanted.table is None else surroundings.adjust(replace(wanted.table, name=name))
    case = _Case(wanted, base, name, goal, version, surroundings)
    if goal is None:
        return _drop(case, actual)
    if base is None:
        trashed = actual.get(trash_name(name, version))
        outcome = _first_mention(case, goal, actual.get(name), wanted.name in former, trashed)
    else:
        outcome = _known(case, goal, base, actual)
    return _with_rows(case, outcome, actual.get(outcome.plan.name))


def _with_rows(case: _Case, outcome: Outcome, there: Table | None) -> Outcome:
    """The outcome with the data steps; without them where the table itself cannot be planned."""
    works = case.works if outcome.works is None else outcome.works
    if not works or outcome.after is None or outcome.problems or outcome.plan.conflicts:
        return outcome
    is_resumed = case.version in case.surroundings.begun
    between = outcome.between or outcome.after
    ground = Ground(case.wanted.name, between, old_fields(case.base, there, is_resumed))
    plan = with_works(outcome.plan, works, ground, case.surroundings.catalog_name, case.version, is_resumed)
    problems = tuple(work_problems(works, ground, case.surroundings.has_branches))
    return replace(outcome, plan=plan, problems=problems)


def _first_mention(
    case: _Case, goal: Table, there: Table | None, reused: bool, trashed: Table | None
) -> Outcome:
    owner = made_by(case.surroundings.project, case.version)
    if there is None and trashed is not None and maker_of(trashed) == owner:
        return _out_of_the_trash(case, goal, trashed)
    if there is None:
        made = replace(goal, properties={**goal.properties, CREATED_BY_PROPERTY: owner})
        if reused and made.location is None:
            made = replace(made, location=_own_location(case))
        blank = Table(case.name, Schema(), format_version=goal.format_version)
        change = CreateTable(case.name, made, _partition_afterwards(made, case.surroundings))
        after = change.apply(blank)
        plan = case.plan(case.name, [Found(change, blank)])
        if case.wanted.adopt and not case.surroundings.is_catalog_known:
            return Outcome(plan, after)
        return _judge(case, plan, [Found(change, blank)], after, None)
    if maker_of(there) == owner and case.version in case.surroundings.begun:
        # Tags and branches that nobody declared, such as the mark of that run, are none of this.
        refs = {name: ref for name, ref in there.refs.items() if name in goal.refs}
        nothing = replace(there, schema=Schema(), properties={}, refs=refs)
        merged = merge(nothing, goal, there, case.wanted.positions, case.surroundings.overwrite)
        return _alter(case, there, merged, there.name, [], ["created by an earlier run that was cut short"])
    if case.wanted.adopt:
        return _adopt(case, goal, there)
    return Outcome(case.plan(case.name), there, (_in_the_way(case, there),))


def _in_the_way(case: _Case, there: Table) -> Problem:
    """A table that exists, and that nothing in the history accounts for."""
    maker = maker_of(there)
    if project_of(there) == case.surroundings.project:
        # To plan it as a run that was cut short would play migrations over rows that have seen them.
        return Problem(
            "history-lost",
            case.wanted.name,
            ("name",),
            f"table `{case.name}` was made by `{maker}` of this project, and the history knows nothing of it",
            "bring the project's history table back (`history:` in the project file names it), or take the "
            "table in as it is with `adopt: true`",
        )
    return Problem(
        "table-exists",
        case.wanted.name,
        ("name",),
        f"table `{case.name}` exists already, and no migration made it",
        "write `adopt: true` to take it in as it is, or choose another name",
    )


def _partition_afterwards(made: Table, surroundings: Surroundings) -> bool:
    first = made.schema.fields[0].id if made.schema.fields else None
    by_first = any(first in f.source_ids for f in made.spec.live)
    return by_first and not surroundings.partitions_by_first_column


def _out_of_the_trash(case: _Case, goal: Table, trashed: Table) -> Outcome:
    """The table that this very migration made before it was rolled back, rows and all."""
    rename = RenameTable(trashed.name, case.name)
    there = rename.apply(trashed)
    # What others made of its partitioning and order since is no part of what the migration changes.
    made = case.wanted.made or there
    nothing = replace(
        there, schema=Schema(), properties={}, refs={}, spec=made.spec, sort_order=made.sort_order
    )
    merged = merge(nothing, goal, there, case.wanted.positions, case.surroundings.overwrite)
    return _alter(
        case, there, merged, trashed.name, [Found(rename, trashed)], ["comes back out of the trash"]
    )


def _adopt(case: _Case, goal: Table, there: Table) -> Outcome:
    goal = adopted(goal, there, case.wanted.unsaid)
    case = replace(case, goal=goal)
    merged = merge(None, goal, there, (), case.surroundings.overwrite)
    # To adopt is to record what is there, so what would have to be changed is a conflict too.
    conflicts = tuple(replace(c, base=UNKNOWN_BASE) for c in (*merged.conflicts, *merged.opened))
    change = AdoptTable(case.name)
    plan = case.plan(case.name, [] if conflicts else [Found(change, there)])
    return Outcome(replace(plan, conflicts=conflicts), there)


def _own_location(case: _Case) -> str | None:
    """A location that no earlier table of this name has used.

    A renamed or trashed table keeps its files where they were; sharing the folder with it would let
    ``remove_orphan_files`` on the one delete the other's.
    """
    default = case.surroundings.default_location(case.name)
    return None if default is None else f"{default}__{case.version}"


def _known(case: _Case, goal: Table, base: Table, actual: Mapping[TableName, Table | None]) -> Outcome:
    assert case.wanted.formerly is not None
    old_name = case.surroundings.physical(case.wanted.formerly)
    there = actual.get(old_name)
    found: list[Found] = []
    notes: list[str] = []
    if old_name != case.name:
        target = actual.get(case.name)
        if target is not None and _is_renamed(base, there, target):
            there = target
            notes.append(f"renamed already: {old_name} → {case.name}")
            old_name = case.name
        elif there is not None:
            if target is not None:
                return _taken(case, there, old_name)
            rename = RenameTable(old_name, case.name)
            found.append(Found(rename, there))
            there = rename.apply(there)
    if there is None:
        return _vanished(case, old_name, goal)
    if not _same_table(base, there):
        return _stranger(case, base, there, old_name, f"table {base.uuid}")
    base = replace(base, name=case.name)
    merged = merge(base, goal, there, case.wanted.positions, case.surroundings.overwrite)
    return _alter(case, there, merged, old_name, found, notes)


def _is_renamed(base: Table, there: Table | None, target: Table) -> bool:
    """Whether the table has its new name already; another one may stand under the old name by now."""
    if there is None:
        return _same_table(base, target)
    return base.uuid is not None and base.uuid == target.uuid != there.uuid


def _same_table(base: Table, there: Table) -> bool:
    """Whether it is the table that the history means; the uuid tells, where both are known."""
    return base.uuid is None or there.uuid is None or base.uuid == there.uuid


def _stranger(case: _Case, base: Table, there: Table, name: TableName, wanted: str) -> Outcome:
    """A table that somebody dropped and made anew under the same name."""
    conflict = Conflict(f"{name}:name", f"table {base.uuid}", wanted, f"another table, {there.uuid}")
    return Outcome(replace(case.plan(name), conflicts=(conflict,)), there)


def _vanished(case: _Case, name: TableName, goal: Table) -> Outcome:
    conflict = Conflict(f"{name}:name", f"table {name}", f"table {case.name}", "no such table in the catalog")
    return Outcome(replace(case.plan(name), conflicts=(conflict,)), goal)


def _taken(case: _Case, there: Table, old_name: TableName) -> Outcome:
    problem = Problem(
        "table-exists",
        case.wanted.name,
        ("renamed_from",),
        f"`{old_name}` cannot be renamed: a table `{case.name}` exists already",
        "choose another name, or move the other table away first",
    )
    return Outcome(case.plan(old_name), there, (problem,))


def _drop(case: _Case, actual: Mapping[TableName, Table | None]) -> Outcome:
    assert case.wanted.formerly is not None
    old_name = case.surroundings.physical(case.wanted.formerly)
    there = actual.get(old_name)
    if there is None:
        return Outcome(case.plan(old_name, notes=("dropped already",)), None)
    if case.base is not None and not _same_table(case.base, there):
        conflict = Conflict(
            f"{old_name}:name", f"table {case.base.uuid}", "dropped", f"another table, {there.uuid}"
        )
        return Outcome(replace(case.plan(old_name), conflicts=(conflict,)), there)
    trash = trash_name(old_name, case.version)
    found = [Found(DropTable(old_name, trash), there)]
    return _judge(case, case.plan(old_name, found), found, None, None)


def _alter(
    case: _Case, there: Table, merged: Merged, name: TableName, found: list[Found], notes: list[str]
) -> Outcome:
    notes = [*notes, *done_notes(merged.done)]
    if taken := legality.duplicate_names(merged.target):
        # Somebody else uses a name that the migration gives, so no path means one field any more.
        plan = replace(case.plan(name, (), notes), conflicts=merged.conflicts)
        return Outcome(plan, there, tuple(_problem(case, breach) for breach in taken))
    works = tuple(
        w for w in case.works if not isinstance(w, Retype) or left_to_retype(there, merged.target, w)
    )
    stages = staged(there, merged.target, works)
    refill = deferred(stages.first.after, case.version, case.wanted.refilled)
    found = [*found, *stages.first.found, *refill.before, *refill.after]
    plan = replace(
        case.plan(name, found, notes),
        conflicts=merged.conflicts,
        finish=case.steps(stages.last.found),
    )
    judged = _judge(case, plan, [*found, *stages.last.found], stages.last.after, there)
    judged = replace(judged, between=stages.first.after, works=works)
    if judged.problems or merged.conflicts:
        return judged
    left = stages.left
    if left:
        # What keeps Iceberg from following may be that the declared table itself must not be.
        found_wrong = (b for b in legality.problems(stages.target, there) if not b.is_warning)
        breaches = tuple(_problem(case, breach) for breach in found_wrong)
        if breaches:
            return replace(judged, problems=breaches)
        problem = Problem(
            "unproved",
            case.wanted.name,
            (),
            f"the plan for `{case.name}` does not lead to what is declared; still open: {', '.join(left)}",
            "split the migration into smaller ones, and report this as a bug",
        )
        return replace(judged, problems=(problem,))
    return judged


def _judge(
    case: _Case, plan: TablePlan, found: Sequence[Found], after: Table | None, before: Table | None
) -> Outcome:
    """The plan with what the changes themselves and the resulting table have against it."""
    own = [p for f in found for p in f.change.problems(f.before)]
    problems = [replace(p, table=case.wanted.name) for p in own]
    warnings: list[Problem] = []
    if after is not None and (found or before is None):
        for breach in legality.problems(after, before):
            (warnings if breach.is_warning else problems).append(_problem(case, breach))
    return Outcome(plan, after, tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(warnings)))


def _problem(case: _Case, breach: legality.Breach) -> Problem:
    return Problem(breach.rule, case.wanted.name, breach.subject, breach.message, breach.hint)
