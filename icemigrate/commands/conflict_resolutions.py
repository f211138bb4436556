"""What a user can do about each conflict of a plan: a plan shows only what planning has tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from icemigrate.changes.change import PlanProblem
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import TRASH_NAMESPACE, Table
from icemigrate.planning.merge import NO_TABLE, OTHER_TABLE, RECREATED_TABLE, Conflict
from icemigrate.planning.plan import MigrationPlan, Plan, TablePlan
from icemigrate.spark_sql.identifiers import table_sql

if TYPE_CHECKING:
    from icemigrate.commands.plan import PlanInputs
    from icemigrate.commands.rollback import RollbackInputs

Facts = frozenset[str]
_AGAIN = "register its last metadata file again (`CALL … system.register_table`)"
_REGISTER = f"restore the table: {_AGAIN}"
MAX_SINGLE_TRIALS = 50
"""How many tables are tried one by one.

Each trial makes the whole plan again, so that thousands of tables in conflict would take the square of the
time of a plan."""


class Resolution(Frozen):
    """One thing that a user can do about conflicts.

    :param text: what to do about a conflict of a table of a migration; ``None`` where it is nothing to do
        about this one.
    :param trial: the plan as it would be once the user had done it about all of these facts; it may raise
        :class:`~icemigrate.errors.IcemigrateError`.
    :param leaves_out: whether the plan leaves out the migration: then no other migration may conflict.
    """

    text: Callable[[Conflict, TablePlan, MigrationPlan], str | None]
    trial: Callable[[Facts], Sequence[MigrationPlan]]
    leaves_out: bool = False


def with_plannable(plan: Plan, resolutions: Sequence[Resolution]) -> Plan:
    """The plan, each conflict with those resolutions after which it can be planned.

    :param resolutions: the candidates, in the order in which they are shown.
    """
    solved = [(r, _solved_facts(plan.migrations, r)) for r in resolutions if _applies(plan, r)]

    def resolved(conflict: Conflict, table: TablePlan, migration: MigrationPlan) -> Conflict:
        texts = (r.text(conflict, table, migration) for r, facts in solved if conflict.fact in facts)
        return replace(conflict, resolutions=tuple(text for text in texts if text is not None))

    return replace(
        plan,
        migrations=tuple(
            replace(
                m,
                tables=tuple(
                    replace(t, conflicts=tuple(resolved(c, t, m) for c in t.conflicts)) for t in m.tables
                ),
            )
            for m in plan.migrations
        ),
    )


def _applies(plan: Plan, resolution: Resolution) -> bool:
    """Whether there is a conflict about which it is something to do: else it needs no trial."""
    return any(
        resolution.text(c, t, m) is not None for m in plan.migrations for t in m.tables for c in t.conflicts
    )


def _solved_facts(before: Sequence[MigrationPlan], resolution: Resolution) -> Facts:
    """The facts that a resolution solves: tried for all of them at once, then for single tables."""
    by_table = [
        frozenset(c.fact for c in t.conflicts if resolution.text(c, t, m) is not None)
        for m in before
        for t in m.tables
    ]
    by_table = [facts for facts in by_table if facts]
    solved = _try(before, resolution, frozenset[str]().union(*by_table))
    left = [facts for facts in by_table if not facts <= solved]
    if len(by_table) > 1:
        for facts in left[:MAX_SINGLE_TRIALS]:
            solved |= _try(before, resolution, facts)
    left = [facts for facts in left if len(facts) > 1 and not facts <= solved]
    for fact in sorted(frozenset[str]().union(*left) - solved)[:MAX_SINGLE_TRIALS]:
        solved |= _try(before, resolution, frozenset((fact,)))
    return solved


def _try(before: Sequence[MigrationPlan], resolution: Resolution, facts: Facts) -> Facts:
    try:
        after = {m.version: m for m in resolution.trial(facts)}
    except IcemigrateError:
        return frozenset()
    if resolution.leaves_out:
        return frozenset() if any(not m.ready for m in after.values()) else facts
    solved: set[str] = set()
    for migration in before:
        now = after.get(migration.version)
        for table in migration.tables if now is not None else ():
            solved |= _solved_of_table(table, migration, now)
    return facts & solved


def _solved_of_table(table: TablePlan, before: MigrationPlan, now: MigrationPlan | None) -> set[str]:
    """The conflicts of a table that are gone, where nothing else came in their place."""
    assert now is not None
    then = next((t for t in now.tables if t.declared == table.declared), None)
    if then is None:
        return set()
    old = {c.fact for c in table.conflicts}
    new = {c.fact for c in then.conflicts}
    problems = {p for p in now.problems if p.table == table.declared} - {*before.problems}
    return set() if problems or new - old else old - new


# Conflicts of an apply


def with_apply_resolutions(given: PlanInputs, plan: Plan, to: str | None) -> Plan:
    """The plan of pending or redone migrations, its conflicts with their resolutions.

    :param to: the last version that was asked for.
    """
    options = "" if to is None else f" --to {to}"
    if plan.redo is not None:
        options = "".join(f" --redo {version}" for version in plan.redo.split())

    def planned(overwrite: Facts = frozenset(), keep: Facts = frozenset()) -> Sequence[MigrationPlan]:
        return given.plan(plan.overwrite | overwrite, keep).plan.migrations

    def overwritten(conflict: Conflict, _table: TablePlan, _migration: MigrationPlan) -> str | None:
        return f"set the declared state: `plan{options} --overwrite {_shell_word(conflict.fact)}`"

    resolutions = [
        Resolution(_edited(given), lambda facts: planned(keep=facts)),
        _recorded_again(given, plan),
    ]
    if plan.is_baseline:
        resolutions += _baseline_resolutions(given, plan)
    else:
        resolutions += [
            Resolution(overwritten, lambda facts: planned(overwrite=facts)),
            _reconciled(given, plan),
            _registered(given, plan),
            _created_anew(given, plan),
        ]
    return with_plannable(plan, resolutions)


def _edited(given: PlanInputs) -> Callable[[Conflict, TablePlan, MigrationPlan], str | None]:
    names = {f.version.text: f.path.rpartition("/")[2] for f in given.pending}

    def text(conflict: Conflict, table: TablePlan, migration: MigrationPlan) -> str:
        file = names[migration.version]
        if _is_of_name(conflict, table):
            return (
                f"leave the table out: delete its entry from `{file}`; then `drift --accept` declares that "
                "the table is gone"
            )
        return f"keep the current state: declare it in `{file}`, then plan again"

    return text


def _baseline_resolutions(given: PlanInputs, plan: Plan) -> Iterator[Resolution]:
    """Record less: only the migrations before the first one that conflicts."""
    first = next((at for at, m in enumerate(plan.migrations) if m.conflicts), 0)
    before = given.pending[:first]
    if before:
        last = before[-1].version.text
        shorter = replace(given, pending=before)
        text = f"set the declared state: `apply --baseline --to {last}` records the rest; then `apply`"
        yield Resolution(
            lambda *_: text, lambda _: shorter.plan(plan.overwrite).plan.migrations, leaves_out=True
        )


def _reconciled(given: PlanInputs, plan: Plan) -> Resolution:
    """Restore the recorded state first; the trial starts no Spark."""
    from icemigrate.commands.reconcile import reconcile_request, unready_tables

    recorded = {t.declared: t.formerly for m in plan.migrations for t in m.tables if t.conflicts}

    def text(_conflict: Conflict, table: TablePlan, _migration: MigrationPlan) -> str | None:
        if table.formerly not in given.history.state.tables:
            return None
        return f"restore the recorded state: `plan --reconcile --table {table.formerly}` shows how"

    def trial(facts: Facts) -> Sequence[MigrationPlan]:
        asked = [t for m in plan.migrations for t in m.tables if any(c.fact in facts for c in t.conflicts)]
        names = [str(recorded[t.declared]) for t in asked]
        unready = unready_tables(given.session, reconcile_request(names))
        return [
            replace(m, tables=tuple(_without_conflicts(t) for t in m.tables if t.formerly not in unready))
            for m in plan.migrations
        ]

    return Resolution(text, trial)


def _without_conflicts(table: TablePlan) -> TablePlan:
    return replace(table, conflicts=())


def _recorded_again(given: PlanInputs, plan: Plan) -> Resolution:
    """Record a table that another client dropped and created again."""
    from icemigrate.commands.recreated_tables import find_recreated, with_recreated

    def text(conflict: Conflict, table: TablePlan, _migration: MigrationPlan) -> str | None:
        if not _is_of_name(conflict, table) or given.actual.get(table.name) is None:
            return None
        if table.formerly not in given.history.state.tables:
            return None
        return f"record the table that has the name now: `repair --adopt {table.formerly}`"

    def trial(facts: Facts) -> Sequence[MigrationPlan]:
        names = [
            str(t.formerly)
            for m in plan.migrations
            for t in m.tables
            if any(c.fact in facts for c in t.conflicts)
        ]
        found = find_recreated(given.session, given.history, names)
        history = with_recreated(given.history, found)
        return replace(given, history=history).plan(plan.overwrite).plan.migrations

    return Resolution(text, trial)


def _registered(given: PlanInputs, plan: Plan) -> Resolution:
    """Register the table that the catalog no longer has."""

    def text(conflict: Conflict, table: TablePlan, _migration: MigrationPlan) -> str | None:
        if not _is_of_name(conflict, table) or given.actual.get(table.name) is not None:
            return None
        return f"{_REGISTER}, then plan again"

    def trial(_facts: Facts) -> Sequence[MigrationPlan]:
        physical = given.session.names.table
        recorded = {physical(n): replace(t, name=physical(n)) for n, t in given.history.state.tables.items()}
        missing = {n: t for n, t in recorded.items() if n in given.actual and given.actual[n] is None}
        return _with_tables(given, missing).plan(plan.overwrite).plan.migrations

    return Resolution(text, trial)


def _created_anew(given: PlanInputs, plan: Plan) -> Resolution:
    """Give up a table that waits in the trash."""

    def text(_conflict: Conflict, table: TablePlan, _migration: MigrationPlan) -> str | None:
        if table.name.namespace != (TRASH_NAMESPACE,):
            return None
        name = table_sql(given.session.environment.catalog.name, table.name)
        return f"create the table anew, without its rows: `DROP TABLE {name}` in Spark SQL, then plan again"

    def trial(facts: Facts) -> Sequence[MigrationPlan]:
        given_up: dict[TableName, Table | None] = {
            t.name: None
            for m in plan.migrations
            for t in m.tables
            if t.name.namespace == (TRASH_NAMESPACE,) and any(c.fact in facts for c in t.conflicts)
        }
        return _with_tables(given, given_up).plan(plan.overwrite).plan.migrations

    return Resolution(text, trial)


def _with_tables(given: PlanInputs, tables: Mapping[TableName, Table | None]) -> PlanInputs:
    return replace(given, actual={**given.actual, **tables})


def _is_of_name(conflict: Conflict, table: TablePlan) -> bool:
    """Whether the conflict is about the table itself: it is gone, or another one has its name."""
    return conflict.fact == f"{table.name}:name"


def _shell_word(text: str) -> str:
    import shlex

    return shlex.quote(text)


# Conflicts of a rollback


def with_rollback_resolutions(given: RollbackInputs, plan: Plan) -> Plan:
    """The plan of a rollback, its conflicts with their resolutions."""

    def restored(conflict: Conflict, _table: TablePlan, _migration: MigrationPlan) -> str | None:
        if conflict.actual == RECREATED_TABLE:
            return None
        if conflict.actual == NO_TABLE:
            return f"{_REGISTER}, then roll back again"
        if conflict.actual == OTHER_TABLE:
            away = "move the table that has the name now away, restore the recorded one"
            return f"{away}: {_AGAIN}, then roll back again"
        return f"set it back to {conflict.base}, then roll back again"

    def partial(conflict: Conflict, table: TablePlan, _migration: MigrationPlan) -> str:
        rest = f"undo the rest: `rollback{given.choice} --partial`"
        if conflict.actual == OTHER_TABLE:
            return f"record the table that has the name now: `repair --adopt {table.formerly}`, and {rest}"
        return f"leave it and {rest}"

    return with_plannable(
        plan,
        [
            Resolution(restored, lambda _: [_all_solved(m) for m in plan.migrations]),
            Resolution(partial, lambda _: given.plan(replace(given.options, partial=True))),
        ],
    )


def _all_solved(migration: MigrationPlan) -> MigrationPlan:
    """A migration whose conflicts end as soon as their facts have their base values: so they are defined."""
    return replace(migration, tables=tuple(map(_without_conflicts, migration.tables)))


# Problems of a rollback

_OPTIONS = {
    "--partial": "partial",
    "--metadata-only": "metadata_only",
    "--discard-new-data": "discard_new_data",
}


def with_tried_hints(given: RollbackInputs, plan: Plan) -> Plan:
    """The plan of a rollback, its problems with hints that name only options which end the problem."""
    hints = [p.hint for m in plan.migrations for p in m.problems if p.hint]
    left = {
        option: _problems_left(given, field)
        for option, field in _OPTIONS.items()
        if any(f"`{option}`" in hint for hint in hints)
    }

    def tried(version: str, problem: PlanProblem) -> PlanProblem:
        key = _problem_key(version, problem)
        failing = [f"`{option}`" for option, problems in left.items() if problems is None or key in problems]
        parts = (problem.hint or "").split("; ")
        kept = [part for part in parts if not any(option in part for option in failing)]
        return replace(problem, hint="; ".join(kept) or None) if failing else problem

    return replace(
        plan,
        migrations=tuple(
            replace(m, problems=tuple(tried(m.version, p) for p in m.problems)) for m in plan.migrations
        ),
    )


def _problems_left(given: RollbackInputs, field: str) -> frozenset[object] | None:
    """The problems of the plan with one more option; ``None`` where the option itself is refused."""
    try:
        migrations = given.plan(replace(given.options, **{field: True}))
    except IcemigrateError:
        return None
    return frozenset(_problem_key(m.version, p) for m in migrations for p in m.problems)


def _problem_key(version: str, problem: PlanProblem) -> object:
    return (version, problem.rule, problem.table, problem.subject)
