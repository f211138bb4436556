"""``drift --accept``: the next migration, which declares what others did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from icemigrate.app.drifting import Met, declared_already, is_told, meet, wanted_by
from icemigrate.app.lateness import Latecomers
from icemigrate.app.opening import as_mistakes, sound_files
from icemigrate.app.planning import names_in
from icemigrate.app.standing import Standing, standing
from icemigrate.app.world import Opened, opened
from icemigrate.app.writing import Written, consents, write_migration
from icemigrate.catalog.capabilities import is_set_by_machines
from icemigrate.declare.migration import MigrationFile
from icemigrate.diagnostics import Diagnostic
from icemigrate.drift.accepting import Accepted, accept
from icemigrate.drift.results import AcceptResult
from icemigrate.errors import Mistakes
from icemigrate.frozen import Frozen, replace
from icemigrate.history.properties import History
from icemigrate.model.names import TableName
from icemigrate.project import Project

_WORDS = "accept drift"
_REFUSAL = "no migration can declare it"


class _Entry(Frozen):
    """What is to be declared of one table."""

    name: TableName
    accepted: Accepted


def accept_drift(
    project: Project, environment: str | None = None, tables: Iterable[str] = ()
) -> AcceptResult:
    """Write the migration that makes what others did declared, what no file ever declared included.

    Applied where it was done it finds all done already and records it; elsewhere it does it.

    :param tables: declared names of those to look at; all of them where left out.
    :raises UsageError: there is no such environment or table, or the file exists.
    :raises Mistakes: files hold mistakes, or do not fit the history.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    :raises IcemigrateError: the file cannot be written.
    """
    files = sound_files(project)
    with opened(project, environment) as world:
        history = world.history()
        stands = standing(
            files, history.applied, history.intents, lateness=Latecomers(project, history, files)
        )
        # A file that came late waits for `rebase`, and stands behind the new one then.
        as_mistakes(tuple(d for d in stands.mistakes if d.code != "late-file"))
        behind = _recorded(files, history, stands)
        met, notes = _undeclared(world, history, files, meet(world, history, tables))
        entries, kept_out = _entries(world, met)
        notes += kept_out
        where = world.environment.name
        written = Written(
            (),
            f"Declare what was changed by hand in {where}",
            _WORDS,
            f"it was done by hand in {where}, and is there already",
        )
        sound, refused = _sound(project, behind, entries, written)
        notes += refused
        if not sound:
            return AcceptResult(project.name, where, None, tuple(notes))
        entries_of = [dict(e.accepted.entry or {}) for e in sound]
        path = write_migration(
            project, behind, replace(written, entries=entries_of), _REFUSAL, begins_lock=True
        )
        notes += _in_between(stands, history, {e.name for e in sound})
        return AcceptResult(project.name, where, path, tuple(notes))


def _recorded(
    files: Sequence[MigrationFile], history: History, stands: Standing
) -> tuple[MigrationFile, ...]:
    """The files of what is applied: what was done by hand was done to what they declare."""
    applied = {a.version for a in history.applied if a.standing == "applied"}
    squashed = {found.file.version for found in stands.squashes}
    return tuple(f for f in files if f.version in applied | squashed)


def _undeclared(
    world: Opened, history: History, files: Sequence[MigrationFile], met: Sequence[Met]
) -> tuple[list[Met], list[str]]:
    """The tables that no pending file declares as they are already, and what is said of the others."""
    # Where nothing was changed, nothing needs to be planned to see it.
    wanted = wanted_by(world, history, files) if any(map(is_told, met)) else None
    left, notes = list[Met](), list[str]()
    for one in met:
        version = None
        if wanted is not None and is_told(one):
            version = declared_already(world, history, one, wanted)
        if version is None:
            left.append(one)
        else:
            declared = world.names.declared(one.base.name)
            notes.append(f"{declared}: {version} declares what was done already, and is pending")
    return left, notes


def _entries(world: Opened, met: Iterable[Met]) -> tuple[list[_Entry], list[str]]:
    entries, notes = [], []
    for one in met:
        declared = world.names.declared(one.base.name)
        if one.stranger is not None:
            notes.append(
                f"{declared}: another table has its name, which no file can say: move that one away first"
            )
            continue
        base = replace(one.base, name=declared)
        name = declared if one.there is None else world.names.declared(one.there.name)
        machines = is_set_by_machines(world.catalog.capabilities)
        accepted = accept(base, one.there, name, machines, world.names.adjust)
        notes += accepted.notes
        if accepted.entry is not None:
            entries.append(_Entry(declared, accepted))
    return entries, notes


def _sound(
    project: Project, behind: Sequence[MigrationFile], entries: list[_Entry], written: Written
) -> tuple[list[_Entry], list[str]]:
    """The entries that a migration may hold, and why the others may not stand in one."""

    def wrong(some: Sequence[_Entry]) -> tuple[Diagnostic, ...]:
        try:
            tried = replace(written, entries=[dict(e.accepted.entry or {}) for e in some])
            consents(project, behind, f"{'9' * 18}_tried.yaml", tried, _REFUSAL)
        except Mistakes as error:
            return error.diagnostics
        return ()

    if not entries or not wrong(entries):
        return entries, []
    refused = {e.name: found for e in entries if (found := wrong([e]))}
    notes = [f"{name}: {d.message}" for name, found in refused.items() for d in found]
    return [e for e in entries if e.name not in refused], notes


def _in_between(stands: Standing, history: History, names: set[TableName]) -> Iterator[str]:
    """Unapplied files of the same tables come before it, though they were written for what is recorded."""
    late = [file for file in stands.late if isinstance(file, MigrationFile)]
    for file in (*stands.pending, *late):
        if names_in([file], history.state) & names:
            state = "late" if file in late else "pending"
            yield (
                f"{file.version} is {state} and mentions the same table: `icemigrate rebase {file.version}` "
                "puts it behind the new file; where it names what has another name now, edit it first, to "
                "the names of now"
            )
