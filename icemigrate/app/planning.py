"""``plan``: pending migrations against the catalog; reads alone, starts no JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from icemigrate import versions
from icemigrate.app.continuing import (
    OVERWRITE,
    brought_back_before,
    half_undone,
    overwritten_before,
    without_left_branches,
)
from icemigrate.app.folding import Folding
from icemigrate.app.gaps import with_gaps
from icemigrate.app.lateness import Latecomers
from icemigrate.app.layouts import with_left_alone, with_old_files
from icemigrate.app.locking import notes
from icemigrate.app.opening import as_mistakes, known_version, load_unapplied, mistakes_first
from icemigrate.app.redoing import Redo, find_redo, redos_of, with_held
from icemigrate.app.reserved import reserved_in
from icemigrate.app.squashes import Found, other_state, values_left
from icemigrate.app.standing import Standing, standing
from icemigrate.app.wider_files import with_wider_files
from icemigrate.app.world import Opened, opened
from icemigrate.baseline import plan_baseline
from icemigrate.declare.migration import UNSET, AnyFile, MigrationFile
from icemigrate.diagnostics import did_you_mean, has_errors, sort_key
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen, field, replace
from icemigrate.history.properties import History, is_history
from icemigrate.live import with_writers
from icemigrate.model.collecting import collector_at_rest
from icemigrate.model.makers import trash_names
from icemigrate.model.names import BadName, TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.plan import MigrationPlan, Plan, Squash
from icemigrate.plan_case import Surroundings
from icemigrate.planner import Planned, plan_migrations
from icemigrate.project import Project
from icemigrate.results import PlanResult


def plan(
    project: Project,
    environment: str | None = None,
    *,
    to: str | None = None,
    overwrite: Iterable[str] = (),
    redo: str | None = None,
    baseline: bool = False,
) -> PlanResult:
    """Plan all pending migrations, or those up to a version.

    :param environment: ``None`` for the project's default.
    :param to: the last version to plan.
    :param overwrite: facts (``table:subject``) that are set whatever the catalog has now.
    :param redo: plan this version alone, which was rolled back.
    :param baseline: plan to record them as done already, without touching a table: those that only adopt, or
        with ``to`` all up to a version that the catalog is at.
    :raises UsageError: there is no such environment, version or conflict.
    :raises Mistakes: files hold mistakes, or do not fit the history.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with collector_at_rest(), mistakes_first(project), opened(project, environment) as world:
        history = world.history()
        loaded = load_unapplied(project, history.applied)
        result = plan_in(
            world, history, loaded.files, to=to, overwrite=overwrite, redo=redo, baseline=baseline
        )
        result = with_left_alone(result, world.catalog, world.names.table)
    told = dict.fromkeys((*loaded.diagnostics, *result.diagnostics))
    return replace(result, diagnostics=tuple(sorted(told, key=sort_key)))


def plan_in(
    world: Opened,
    history: History,
    files: Sequence[AnyFile],
    *,
    to: str | None = None,
    overwrite: Iterable[str] = (),
    strict: bool = True,
    redo: str | None = None,
    baseline: bool = False,
) -> PlanResult:
    """Plan in an environment whose catalog is open; as :func:`plan`.

    :param strict: refuse facts of ``overwrite`` about which there is no conflict.
    """
    late = Latecomers(world.project, history)
    stands = standing(files, history.applied, history.intents, lateness=late)
    as_mistakes(stands.mistakes)
    as_mistakes(tuple(d for found in stands.squashes for d in other_state(history, found)))
    as_mistakes(tuple(d for found in stands.squashes for d in values_left(history, found)))
    pending, squashes, beyond = _asked(stands, None if to is None else known_version(files, to, "--to"))
    again = None if redo is None else find_redo(history, files, redo)
    if again is not None:
        pending, squashes = (again.file,), ()
    redos = redos_of(history, pending, again)
    if baseline:
        squashes = ()
    # Nothing to apply needs no look at the tables.
    names = names_in(pending, history.state) if pending else frozenset()
    physical = {world.names.table(name) for name in names}
    # A table that it made the first time was put into the trash.
    physical |= {t for v in redos for n in physical for t in trash_names(n, world.project.name, v)}
    known = {world.names.table(name): table for name, table in history.state.tables.items()}
    begun = [intent.version.text for intent in history.intents]
    loaded = world.catalog.load(sorted(physical), with_writers=True, known=known)
    actual = without_left_branches(loaded, world.project.name, begun)
    there = frozenset(world.catalog.namespaces())
    planner = partial(plan_baseline, is_claimed=to is not None) if baseline else plan_migrations
    given = _Given(world, pending, history, actual, there, redo, redos, squashes, planner)
    asked = frozenset(overwrite)
    result = given.plan(asked)
    if strict:
        _refuse_idle(given, asked)
    whole = replace(with_old_files(result.plan, world.catalog), to=to, beyond=beyond)
    whole = with_held(whole, history, files, [m.version for m in stands.migrations if m.state == "held"])
    return PlanResult(whole, (*result.diagnostics, *notes(history)))


def _asked(
    stands: Standing, last: int | None
) -> tuple[tuple[MigrationFile, ...], tuple[Found, ...], tuple[str, ...]]:
    """The files that wait and the squashes up to a version, and the versions that wait beyond it."""
    if last is None:
        return stands.pending, stands.squashes, ()
    return (
        tuple(f for f in stands.pending if f.version.number <= last),
        tuple(s for s in stands.squashes if s.file.version.number <= last),
        tuple(f.version.text for f in stands.pending if f.version.number > last),
    )


def surroundings(
    world: Opened,
    history: History,
    namespaces: frozenset[tuple[str, ...]],
    overwrite: frozenset[str] = frozenset(),
) -> Surroundings:
    """What the planner has to know of the environment.

    :param namespaces: those that the catalog has.
    """
    return Surroundings(
        project=world.project.name,
        catalog_name=world.environment.catalog.name,
        physical=world.names.table,
        physical_namespace=world.names.namespace,
        namespaces=namespaces,
        default_location=world.catalog.default_location,
        overwrite=overwrite,
        overwrite_of=overwritten_before(history),
        adjust=world.names.adjust,
        begun=frozenset(intent.version.text for intent in history.intents),
        back=brought_back_before(history),
        partitions_by_first_column=world.catalog.capabilities.partitions_by_first_column,
        has_branches=world.catalog.capabilities.branches,
        last_copies=partial(_last_copies, history),
    )


def _last_copies(history: History, table: Table) -> dict[int, tuple[str, ...]]:
    """The versions that keep values of a table which rollbacks did not bring back, by field."""
    found: dict[int, tuple[str, ...]] = {}
    for applied in sorted(history.applied, key=lambda a: a.version, reverse=True):
        record = history.undo_record(applied.version)
        for undo in record.tables if record is not None else ():
            if undo.actual_before is None or undo.actual_before.uuid != table.uuid:
                continue
            for copy in undo.last_copies:
                for field_id in copy.fields:
                    found[field_id] = (*found.get(field_id, ()), copy.version)
    return found


class _Given(Frozen):
    """Everything that a plan is made of, read once."""

    world: Opened
    pending: tuple[MigrationFile, ...]
    history: History
    actual: dict[TableName, Table | None]
    namespaces: frozenset[tuple[str, ...]]
    redo: str | None = None
    redos: Mapping[str, Redo] = field(default_factory=dict)
    squashes: tuple[Found, ...] = ()
    planner: Callable[..., Planned] = plan_migrations

    def plan(self, overwrite: frozenset[str]) -> PlanResult:
        world = self.world
        histories = [
            world.names.declared(name)
            for name, table in self.actual.items()
            if table is not None and is_history(table.properties)
        ]
        folding = Folding(why_reserved=reserved_in(world.project, (world.environment,), histories))
        pending = folding.pending(self.pending)
        pending = tuple(
            self.redos[one.version].pending(one, world, self.actual) if one.version in self.redos else one
            for one in pending
        )
        around = surroundings(world, self.history, self.namespaces, overwrite)
        planned = self.planner(pending, self.history.state, self.actual, around)
        name = world.environment.catalog.name
        migrations = with_gaps(planned.migrations, self.actual, world.catalog, name)
        migrations = with_wider_files(migrations, self.actual, world.catalog, self.history, redone=self.redos)
        diagnostics = folding.diagnostics(migrations)
        if has_errors(folding.said):
            as_mistakes(diagnostics)
        return PlanResult(self._complete(migrations, overwrite), diagnostics)

    def _complete(self, migrations: tuple[MigrationPlan, ...], overwrite: frozenset[str]) -> Plan:
        world, told = self.world, with_writers(migrations, self.actual)
        recorded = overwritten_before(self.history)
        return Plan(
            project=world.project.name,
            environment=world.environment.name,
            catalog=world.catalog.identity,
            catalog_name=world.environment.catalog.name,
            migrations=(
                *(found.plan() for found in self.squashes),
                *(self._marked(m, overwrite | recorded.get(m.version, frozenset())) for m in told),
            ),
            applied=tuple((a.version.text, a.checksum) for a in self.history.applied),
            based_on=self.actual,
            base=self.history.state,
            overwrite=overwrite,
            tool_version=versions.ICEMIGRATE,
            redo=None if self.redo is None else next(iter(self.redos)),
            unfinished=half_undone(self.history),
        )

    def _marked(self, migration: MigrationPlan, overwrite: frozenset[str]) -> MigrationPlan:
        """A redo, and a squash that runs, as such."""
        choices = tuple(f"{OVERWRITE} {fact}" for fact in sorted(overwrite))
        migration = replace(migration, is_redo=migration.version in self.redos, choices=choices)
        file = next(f for f in self.pending if f.version.text == migration.version)
        if file.replaces is None:
            return migration
        return replace(migration, squash=Squash(file.replaces.first.text))


def names_in(files: Iterable[MigrationFile], base: State) -> frozenset[TableName]:
    """Declared names of all tables that the files can touch."""
    names: set[TableName] = set()
    for file in files:
        for entry in file.tables:
            if entry.match is not None:
                # It may fit whatever is declared by then.
                names |= base.tables.keys()
            for text in (entry.name, None if entry.renamed_from is UNSET else entry.renamed_from):
                if text is not None:
                    names |= _parsed(text)
    return frozenset(names)


def _parsed(text: str) -> set[TableName]:
    try:
        return {TableName.parse(text)}
    except BadName:
        return set()  # the fold says so, with its place


def _refuse_idle(given: _Given, overwrite: frozenset[str]) -> None:
    """Refuse a fact that overwrites nothing: it was misspelt, or another client was faster.

    One that an interrupted run was to overwrite may be as wanted by now.

    :raises UsageError: without this fact there would be no conflict about it.
    """
    recorded = frozenset[str]().union(*overwritten_before(given.history).values())
    for fact in sorted(overwrite - recorded):
        without = given.plan(overwrite - {fact}).plan
        conflicts = {c.fact for m in without.migrations for c in m.conflicts}
        if fact not in conflicts:
            hint = did_you_mean(fact, conflicts) or "`plan` without it names the conflicts"
            raise UsageError(f"--overwrite {fact}: there is no conflict about this", hint)
