"""``drift``: the catalog against what the history recorded; reads alone, starts no JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.app.folding import Folding
from icemigrate.app.lateness import Latecomers
from icemigrate.app.locking import interrupted_words
from icemigrate.app.observing import observed
from icemigrate.app.opening import load_unapplied, mistakes_first
from icemigrate.app.planning import names_in, surroundings
from icemigrate.app.standing import standing
from icemigrate.app.world import Opened, opened
from icemigrate.catalog.capabilities import is_set_by_machines
from icemigrate.declare.migration import AnyFile
from icemigrate.diagnostics import did_you_mean
from icemigrate.drift.facts import Fact, compare, is_expired
from icemigrate.drift.reading import Trace, trace
from icemigrate.drift.results import DriftFact, DriftResult, TableDrift, TableState, Told
from icemigrate.drift.values import Machines
from icemigrate.errors import MetadataError, UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.history.properties import History
from icemigrate.model.marks import is_own_branch, older_tag_names, tag_name
from icemigrate.model.names import BadName, TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.plan import MigrationPlan
from icemigrate.planner import Planned, plan_migrations
from icemigrate.project import Project

_NOTHING = Trace(None, None)


class Met(Frozen):
    """A recorded table, and what is found of it.

    :param there: the table that the history means, wherever it is now; ``None`` where it is gone.
    :param stranger: another table that has its name.
    """

    base: Table
    there: Table | None
    stranger: Table | None
    facts: tuple[Fact, ...] = ()

    @property
    def is_renamed(self) -> bool:
        """Whether it has another name in the catalog than it is declared under; see :func:`meet`."""
        return self.there is not None and self.there.name != self.base.name


class Wanted(Frozen):
    """What the pending migrations lead to."""

    migrations: tuple[MigrationPlan, ...]
    state: State

    def of(self, base: Table) -> Table | None:
        """A recorded table as it is declared then."""
        if base.uuid is None:
            return self.state.tables.get(base.name)
        return next((t for t in self.state.tables.values() if t.uuid == base.uuid), None)

    def version(self, base: Table, subject: Sequence[str]) -> str | None:
        """The migration that found a fact done already; else the last one that mentions the table."""
        words = ".".join(subject[:2])
        last = None
        for migration in self.migrations:
            for table in migration.tables:
                if base.name in (table.declared, table.formerly):
                    last = migration.version
                    if any(f":{words}" in note for note in table.notes):
                        return last
        return last


def drift(project: Project, environment: str | None = None, tables: Iterable[str] = ()) -> DriftResult:
    """What of the tables is not as it was recorded when it was last applied.

    :param tables: declared names of those to look at; all of them where left out.
    :raises UsageError: there is no such environment or table.
    :raises Mistakes: files hold mistakes.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with mistakes_first(project), opened(project, environment) as world:
        history = world.history()
        loaded = load_unapplied(project, history.applied)
        met = meet(world, history, tables)
        wanted = wanted_by(world, history, loaded.files) if any(is_told(m) for m in met) else None
        found = [_table(world, history, m, wanted) for m in met]
        return DriftResult(
            project=project.name,
            environment=world.environment.name,
            catalog=world.catalog.identity,
            compared=len(met),
            recorded=bool(history.state.tables),
            tables=tuple(t for t in found if t.state != "there" or t.facts or t.notes),
            interrupted=interrupted_words(history),
        )


def meet(world: Opened, history: History, tables: Iterable[str] = ()) -> tuple[Met, ...]:
    """The recorded tables, each with what has become of it.

    Their names are those in the catalog on both sides, so that a name tells a rename.

    :raises UsageError: no such table is recorded.
    """
    bases = [history.state.tables[name] for name in _chosen(history, tables)]
    physical = {base.name: world.names.table(base.name) for base in bases}
    actual = dict(world.catalog.load(physical.values()))
    if any(_is_elsewhere(base, actual[physical[base.name]]) for base in bases):
        # Somebody renamed it: looked for by its uuid, in all of the catalog.
        actual |= world.catalog.load([name for name in world.catalog.tables() if name not in actual])
    machines = is_set_by_machines(world.catalog.capabilities)
    return tuple(_met(base, physical[base.name], actual, machines) for base in bases)


def _met(base: Table, name: TableName, actual: Mapping[TableName, Table | None], machines: Machines) -> Met:
    here = actual[name]
    base = replace(base, name=name)
    if not _is_elsewhere(base, here):
        assert here is not None
        return Met(base, here, None, compare(base, here, machines))
    moved = next((t for t in actual.values() if t and base.uuid and t.uuid == base.uuid), None)
    facts = () if moved is None else compare(base, moved, machines)
    return Met(base, moved, here, facts)


def _is_elsewhere(base: Table, here: Table | None) -> bool:
    return here is None or (None not in (base.uuid, here.uuid) and base.uuid != here.uuid)


def _chosen(history: History, tables: Iterable[str]) -> list[TableName]:
    known = history.state.tables
    if not (texts := list(tables)):
        return sorted(known)
    chosen = set()
    for text in texts:
        try:
            name = TableName.parse(text)
        except BadName as error:
            raise UsageError(str(error)) from error
        if name not in known:
            hint = did_you_mean(text, map(str, known)) or "`icemigrate status` lists the tables"
            raise UsageError(f"the history has recorded no table `{text}`", hint)
        chosen.add(name)
    return sorted(chosen)


def declared_already(world: Opened, history: History, met: Met, wanted: Wanted) -> str | None:
    """The pending migration that wants a table just as others left it; ``None`` where none wants all."""
    told = _table(world, history, met, wanted)
    by = [told.pending] if told.state != "there" else []
    by += [fact.pending for fact in told.facts]
    return by[-1] if by and None not in by else None


def wanted_by(world: Opened, history: History, files: Sequence[AnyFile]) -> Wanted:
    """What the pending files declare; what does not fit them is for ``plan`` to tell."""
    late = Latecomers(world.project, history)
    pending = standing(files, history.applied, history.intents, lateness=late).pending
    if not pending:
        return Wanted((), history.state)
    names = {world.names.table(name) for name in names_in(pending, history.state)}
    actual = dict(world.catalog.load(sorted(names)))
    around = surroundings(world, history, frozenset(world.catalog.namespaces()))
    planned: Planned = plan_migrations(Folding().pending(pending), history.state, actual, around)
    return Wanted(planned.migrations, planned.state)


def is_told(met: Met) -> bool:
    """Whether anything of a table is not as recorded."""
    return bool(met.facts) or met.there is None or met.is_renamed


def _table(world: Opened, history: History, met: Met, wanted: Wanted | None) -> TableDrift:
    declared = world.names.declared(met.base.name)
    base = replace(met.base, name=declared)
    then = wanted.of(base) if wanted is not None else base
    told = TableDrift(
        str(declared),
        str(met.base.name),
        notes=(*_marks(world, history, met), *_strays(history, declared, met)),
    )
    if met.there is None:
        dropped = wanted.version(base, ("name",)) if wanted is not None and then is None else None
        state: TableState = "gone" if met.stranger is None else "replaced"
        return replace(told, state=state, pending=dropped, notes=_replaced(met))
    if met.is_renamed:
        told = replace(told, state="renamed", found=str(met.there.name), notes=(*told.notes, *_replaced(met)))
        if then is not None and world.names.table(then.name) == met.there.name and wanted is not None:
            told = replace(told, pending=wanted.version(base, ("name",)))
    done = _done(world, met, then)
    pending = {f: wanted.version(base, f.subject) for f in done} if wanted is not None else {}
    traces = _traces(world, history, met)
    facts = (
        replace(
            _told(f, pending.get(f), traces.get(f, _NOTHING), met),
            note=_namesake(history, base, f) or _left_optional(history, base, f),
        )
        for f in met.facts
    )
    return replace(told, facts=tuple(facts))


def _done(world: Opened, met: Met, then: Table | None) -> list[Fact]:
    """The facts that pending migrations want just as they are."""
    if then is None or met.there is None or then == met.base:
        return []
    left = {f.key for f in compare(then, met.there, is_set_by_machines(world.catalog.capabilities))}
    return [f for f in met.facts if f.key not in left]


def _told(fact: Fact, pending: str | None, seen: Trace, met: Met) -> DriftFact:
    told: Told = "drift" if fact.managed else "unmanaged"
    if pending is not None:
        told = "done already"
    elif is_expired(fact, met.base):
        told = "expired"
    return DriftFact(
        fact=".".join(fact.subject),
        change=fact.kind.value,
        recorded=fact.recorded,
        actual=fact.actual,
        told=told,
        pending=pending,
        after=seen.after,
        before=seen.before,
        writers=seen.writers,
    )


def _namesake(history: History, base: Table, fact: Fact) -> str | None:
    """What is to be said of a column that no file declared, and that has the name of one that a file did."""
    if fact.managed or fact.key[0] != "columns":
        return None
    path, kept = fact.subject[1], {*index(base.schema), fact.key[1]}
    for applied in history.applied:
        record = history.undo_record(applied.version) if applied.standing == "applied" else None
        for undo in record.tables if record is not None else ():
            if undo.after is None or undo.after.uuid not in (None, base.uuid):
                continue
            if undo.after.uuid is None and undo.declared != base.name:
                continue
            for field_id, entry in index(undo.after.schema).items():
                if field_id == fact.key[1]:
                    return f"unmanaged: {applied.version} declared it, and no migration does any more"
                if format_path(entry.path) == path and field_id not in kept:
                    return (
                        f"unmanaged: {path} was declared by {applied.version} as field {field_id}, which is "
                        f"dropped; the {path} there is another column"
                    )
    return None


def _left_optional(history: History, base: Table, fact: Fact) -> str | None:
    """What is to be said of a required column that came back as optional when a migration was taken back."""
    if fact.subject[2:] != ("required",):
        return None
    for applied in history.applied:
        record = history.undo_record(applied.version) if applied.standing == "held" else None
        for undo in record.tables if record is not None else ():
            if undo.before is None or undo.after is None or undo.before.uuid != base.uuid:
                continue
            was, dropped = undo.before.schema.by_id(fact.key[1]), undo.after.schema.by_id(fact.key[1]) is None
            if was is not None and was.required and dropped:
                return (
                    f"rolling {applied.version} back left it so, since rows were written without it: "
                    "`apply --reconcile` makes it required again when every row has a value"
                )
    return None


def _traces(world: Opened, history: History, met: Met) -> dict[Fact, Trace]:
    if not met.facts or met.there is None:
        return {}
    try:
        metadata = world.catalog.metadata_json(met.there.name)
    except MetadataError:
        metadata = None
    if metadata is None:
        return {}
    declared = replace(met.base, name=world.names.declared(met.base.name))
    seen = observed(history, declared, met.there, met.facts, is_set_by_machines(world.catalog.capabilities))
    return trace(metadata, tuple(seen), met.facts)


def _marks(world: Opened, history: History, met: Met) -> Iterable[str]:
    """Tags of migrations that somebody took off a table."""
    if met.there is None or world.environment.keep_tags is not None or world.environment.record != "tags":
        return
    for applied in history.applied:
        tag, older = (
            tag_name(world.project.name, applied.version.text),
            older_tag_names(applied.version.text)[0],
        )
        if applied.standing != "applied" or {tag, older} & met.there.refs.keys():
            continue
        record = history.undo_record(applied.version)
        if record is not None and record.baseline:
            continue  # it was recorded without touching a table, and never had a tag
        uuids = [t.actual_after.uuid for t in record.tables if t.actual_after] if record else []
        if met.base.uuid is not None and met.base.uuid in uuids:
            yield (
                f"the tag {tag} is gone: the rows as of that migration cannot be read by it any more; "
                "`rollback` does not need it"
            )


def _strays(history: History, declared: TableName, met: Met) -> Iterator[str]:
    """Branches of ours on a table of which nothing goes on or waits."""
    if met.there is None or any(str(declared) in intent.tables for intent in history.intents):
        return
    for name, ref in sorted(met.there.refs.items()):
        if ref.kind == "branch" and is_own_branch(name):
            yield f"the branch {name} is left of a run that died: `ALTER TABLE … DROP BRANCH` takes it away"


def _replaced(met: Met) -> tuple[str, ...]:
    if met.stranger is None:
        return ()
    return (
        f"{met.stranger.name} is another table now (uuid {met.stranger.uuid}, recorded is {met.base.uuid}): "
        "move it away, and bring the recorded one back by a rename or `register_table`",
    )
