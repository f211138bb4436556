"""Everything that the planning of one table looks at, and how a table that is there is altered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from icemigrate.changes.base import Problem
from icemigrate.data.base import RowWork, Stage
from icemigrate.data.on_branches import hint_of
from icemigrate.data.retype import Retype
from icemigrate.diff import Found
from icemigrate.frozen import Frozen, field, replace
from icemigrate.merge import Merged, done_notes
from icemigrate.model import legality
from icemigrate.model.names import TableName
from icemigrate.model.sides import Wanted
from icemigrate.model.table import Table
from icemigrate.plan import Step, TablePlan
from icemigrate.refills import deferred
from icemigrate.staging import carried_over, left_to_retype, staged
from icemigrate.steps import as_steps, as_unwritten_steps


class Surroundings(Frozen):
    """What planning has to know of where the tables live.

    :param catalog_name: the catalog's name in Spark SQL.
    :param physical: a declared table name → the name in this environment's catalog.
    :param physical_namespace: the same for a namespace.
    :param namespaces: namespaces that are there, by their name in the catalog.
    :param default_location: where the catalog puts a table of this name.
    :param overwrite: facts (``table:subject``) that are set whatever they are now.
    :param overwrite_of: further ones of single versions, which an interrupted run was to overwrite.
    :param adjust: what the environment adds to a declared table (overrides of properties, location).
    :param begun: versions that the history knows a run of that has no outcome yet.
    :param back: the fields that an interrupted run of a version has brought back, by version and table.
    :param partitions_by_first_column: whether the catalog takes that in a ``CREATE TABLE``.
    :param has_branches: whether rows may be written on a branch of a table.
    :param is_catalog_known: whether ``actual`` is what a catalog holds; else nobody knows whether a table
        that is to be adopted is there, and what would only be wrong in making it is not said.
    :param last_copies: of a table, by field, the versions that keep values which rollbacks left there.
    :param are_statements_read: whether anybody reads the statements; without them nothing can be carried out.
    """

    project: str
    catalog_name: str
    physical: Callable[[TableName], TableName] = lambda name: name
    physical_namespace: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda namespace: namespace
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    default_location: Callable[[TableName], str | None] = lambda name: None
    overwrite: frozenset[str] = frozenset()
    overwrite_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    adjust: Callable[[Table], Table] = lambda table: table
    begun: frozenset[str] = frozenset()
    back: Mapping[str, Mapping[TableName, frozenset[int]]] = field(default_factory=dict)
    partitions_by_first_column: bool = True
    has_branches: bool = True
    is_catalog_known: bool = True
    last_copies: Callable[[Table], Mapping[int, Sequence[str]]] = lambda table: {}
    are_statements_read: bool = True


class Outcome(Frozen):
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


class Case(Frozen):
    """Everything one table's planning looks at."""

    wanted: Wanted
    base: Table | None
    name: TableName
    goal: Table | None
    version: str
    surroundings: Surroundings

    def plan(self, name: TableName, found: Sequence[Found] = (), notes: Sequence[str] = ()) -> TablePlan:
        """The table's plan with these changes."""
        return TablePlan(
            name=name,
            declared=self.wanted.name,
            wanted=self.wanted.table if self.wanted.table is None else self.declared_goal(),
            formerly=self.wanted.formerly,
            steps=self.steps(found),
            notes=tuple(notes),
        )

    def steps(self, found: Sequence[Found]) -> tuple[Step, ...]:
        """The steps of what was found, with consents asked for by the declared name."""
        is_read = self.surroundings.are_statements_read
        made = as_steps(found, self.surroundings.catalog_name) if is_read else as_unwritten_steps(found)
        return tuple(step.scoped(self.wanted.name) for step in made)

    @property
    def overwrite(self) -> frozenset[str]:
        """The facts that are set whatever they are now."""
        return self.surroundings.overwrite | self.surroundings.overwrite_of.get(self.version, frozenset())

    @property
    def works(self) -> tuple[RowWork, ...]:
        """What the file does to the rows."""
        return tuple(step for step in self.wanted.data if isinstance(step, RowWork))

    def declared_goal(self) -> Table:
        """What the table shall be, under its declared name."""
        assert self.goal is not None
        return replace(self.goal, name=self.wanted.name)


def alter(
    case: Case, there: Table, merged: Merged, name: TableName, found: list[Found], notes: list[str]
) -> Outcome:
    """Lead the table that is there to what was merged."""
    notes = [*notes, *done_notes(merged.done)]
    if taken := legality.duplicate_names(merged.target, there):
        # Somebody else uses a name that the migration gives, so no path means one field any more.
        plan = replace(case.plan(name, (), notes), conflicts=merged.conflicts)
        return Outcome(plan, there, tuple(_problem(case, breach, there) for breach in taken))
    works = tuple(
        w for w in case.works if not isinstance(w, Retype) or left_to_retype(there, merged.target, w)
    )
    stages = staged(there, merged.target, works)
    refilled = case.wanted.refilled
    copies = case.surroundings.last_copies(there) if refilled else {}
    refill = deferred(stages.first.after, (case.surroundings.project, case.version), refilled, copies)
    found = [*found, *stages.first.found, *refill.before, *refill.after]
    plan = replace(
        case.plan(name, found, notes),
        conflicts=merged.conflicts,
        finish=carried_over(case.steps(stages.last.found), works),
    )
    between = stages.first.after
    written = between if any(work.stage is Stage.WRITE for work in works) else None
    judged = judge(case, plan, [*found, *stages.last.found], stages.last.after, there, written)
    judged = replace(judged, between=between, works=works)
    if judged.problems or merged.conflicts or not stages.left:
        return judged
    return replace(judged, problems=_unproved(case, there, stages.target, stages.left))


def _unproved(case: Case, there: Table, target: Table, left: Sequence[str]) -> tuple[Problem, ...]:
    """What is wrong where the changes do not lead to the target.

    :param left: the facts that are still open.
    """
    # What keeps Iceberg from following may be that the declared table itself must not be.
    wrong = (b for b in legality.problems(target, there) if not b.is_warning)
    if breaches := tuple(_problem(case, breach, there) for breach in wrong):
        return breaches
    problem = Problem(
        "unproved",
        case.wanted.name,
        (),
        f"the plan for `{case.name}` does not lead to what is declared; still open: {', '.join(left)}",
        "split the migration into smaller ones, and report this as a bug",
    )
    return (problem,)


def judge(
    case: Case,
    plan: TablePlan,
    found: Sequence[Found],
    after: Table | None,
    before: Table | None,
    written: Table | None = None,
) -> Outcome:
    """The plan with what the changes themselves and the resulting table have against it.

    :param written: the table as it is when its rows are written; ``None`` where none are.
    """
    own = [p for f in found for p in f.change.problems(f.before)]
    problems = [replace(p, table=case.wanted.name) for p in own]
    warnings: list[Problem] = []
    if after is not None and (found or before is None):
        for breach in legality.problems(after, before, written):
            (warnings if breach.is_warning else problems).append(_problem(case, breach, before))
    return Outcome(plan, after, tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(warnings)))


def _problem(case: Case, breach: legality.Breach, before: Table | None) -> Problem:
    """A rule of Iceberg that is broken, told of the declared table."""
    hint = hint_of(breach, before, case.surroundings.catalog_name)
    return Problem(breach.rule, case.wanted.name, breach.subject, breach.message, hint)
