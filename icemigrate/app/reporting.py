"""``status`` and ``history``: what the history and the catalog say; reading alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from icemigrate.app.lateness import Latecomers
from icemigrate.app.layouts import old_files_of
from icemigrate.app.locking import lock_status
from icemigrate.app.offline import rehearse
from icemigrate.app.opening import sound_files
from icemigrate.app.standing import Standing, standing
from icemigrate.app.world import Opened, opened
from icemigrate.catalog.capabilities import is_set_by_machines
from icemigrate.drift.facts import compare, is_expired
from icemigrate.drift.values import Machines
from icemigrate.frozen import replace
from icemigrate.history.intent import Intent
from icemigrate.history.log import Entry, Log, broken_off, unpack
from icemigrate.history.properties import History
from icemigrate.model.makers import made_by, maker_of, owner_of, project_of
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.plan import MigrationPlan
from icemigrate.project import Project
from icemigrate.status_results import HistoryEntry, HistoryEvent, HistoryResult, Status, TableStatus


def history(project: Project, environment: str | None = None) -> HistoryResult:
    """Who did what, when, and how long it took.

    :raises UsageError: there is no such environment.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    with opened(project, environment) as world:
        known = world.history()
        entries = tuple(
            HistoryEntry(
                version=a.version.text,
                description=a.description,
                standing=a.standing,
                at=a.applied_at,
                by=a.applied_by,
                duration_ms=a.duration_ms,
                checksum=a.checksum,
            )
            for a in known.applied
        )
        log = unpack(known.log)
        return HistoryResult(project.name, world.environment.name, entries, events(known, log), log.earlier)


def events(known: History, log: Log) -> tuple[HistoryEvent, ...]:
    """What happened, and what goes on or was broken off since.

    :param log: the history's, unpacked.
    """
    in_log = {e.version for e in log.entries}
    before = [a for a in known.applied if a.version not in in_log and a.standing != "interrupted"]
    told = [
        # Of what an earlier icemigrate applied, or what is too long ago for the log, this is what is known.
        HistoryEvent(
            "applied", a.version.text, a.description, a.applied_at, a.applied_by, "", a.duration_ms or None
        )
        for a in sorted(before, key=lambda a: a.applied_at)
    ]
    told += [_event(e) for e in log.entries]
    told += [_unended(i, known) for i in broken_off(log, known.intents)]
    return tuple(told)


def _event(entry: Entry) -> HistoryEvent:
    return HistoryEvent(
        event=entry.event,
        version=None if entry.version is None else entry.version.text,
        description=entry.description,
        at=entry.at,
        by=entry.user,
        host=entry.host,
        duration_ms=entry.duration_ms or None,
        run=entry.run,
        message=entry.message,
    )


def _unended(intent: Intent, known: History) -> HistoryEvent:
    applied = known.of(intent.version)
    is_on = known.lock is not None and known.lock.run == intent.run
    what = intent.direction.value
    return HistoryEvent(
        event="running" if is_on else "interrupted",
        version=intent.version.text,
        description="" if applied is None else applied.description,
        at=intent.started_at,
        by=intent.user,
        host=intent.host,
        run=intent.run,
        message=what if is_on else f"{what} was broken off",
    )


def status(project: Project, environment: str | None = None) -> Status:
    """Where each migration and each table stands.

    :raises UsageError: there is no such environment.
    :raises Mistakes: files hold mistakes.
    :raises CatalogError: the catalog cannot be read.
    :raises HistoryError: the history cannot be used.
    """
    files = sound_files(project)
    with opened(project, environment) as world:
        known = world.history()
        late = Latecomers(project, known, files)
        stands = standing(files, known.applied, known.intents, known.lock, lateness=late)
        applied = [m.version for m in stands.migrations if m.state in _DONE]
        trails = _trails(rehearse(project, files).plans, stands)
        return Status(
            project=project.name,
            environment=world.environment.name,
            catalog=world.catalog.identity,
            version=applied[-1] if applied else None,
            migrations=stands.migrations,
            tables=_tables(world, trails, known),
            lock=lock_status(known),
        )


_DONE = ("applied", "edited", "missing", "unrecorded")
"""States of migrations whose changes are made."""


@dataclass(slots=True)
class _Trail:
    """The migrations that mention one table."""

    applied: str | None = None
    pending: list[str] = field(default_factory=list)


def _trails(plans: Iterable[MigrationPlan], stands: Standing) -> dict[TableName, _Trail]:
    """Every table that is applied or pending, by its name in the state that the history has."""
    states = {m.version: m.state for m in stands.migrations}
    trails: dict[TableName, _Trail] = {}
    now: dict[TableName, TableName] = {}
    for plan in plans:
        is_applied = states.get(plan.version) in _DONE
        for table in plan.tables:
            before = now.pop(table.formerly, table.formerly) if table.formerly else None
            if is_applied:
                trail = trails.pop(before, _Trail()) if before else _Trail()
                trail.applied = plan.version
                shown = table.declared
            else:
                # Until it is applied, a table goes by the name that it has.
                shown = before or table.declared
                trail = trails.pop(shown, _Trail())
                # One that was rolled back waits for a redo: no `apply` brings it.
                if states.get(plan.version) != "held":
                    trail.pending.append(plan.version)
            if table.wanted is not None or not is_applied:
                trails[shown] = trail
                now[table.declared] = shown
    return trails


def _tables(world: Opened, trails: Mapping[TableName, _Trail], known: History) -> tuple[TableStatus, ...]:
    """Every table that is declared, and others that stand under a name that one of them had."""
    state = known.state
    names = sorted({*trails, *state.tables, *state.former})
    there = world.catalog.load([world.names.table(n) for n in names])
    machines = is_set_by_machines(world.catalog.capabilities)
    unsettled = {table for intent in known.intents for table in intent.tables}
    rows = []
    for name in names:
        physical = world.names.table(name)
        found, is_known = there[physical], name in trails or name in state.tables
        if found is None and not is_known:
            continue
        trail = trails.get(name, _Trail())
        made_here = found is not None and project_of(found) == world.project.name
        if not is_known:
            note: str | None = _UNDER_AN_OLD_NAME
        elif found is not None and made_here and trail.applied is None and not _is_begun(found, known):
            note = _LOST.format(maker_of(found))
        elif found is not None and owner_of(found) not in (None, world.project.name):
            note = f"it belongs to project `{owner_of(found)}`: no migration of this project can change it"
        else:
            note = _stranger(state.tables.get(name), found)
        rows.append(
            TableStatus(
                table=str(name),
                name=str(physical),
                version=trail.applied,
                exists=found is not None,
                pending=tuple(trail.pending),
                ours=trail.applied is not None or made_here,
                note=note,
                old_files=old_files_of(found, world.catalog) if found is not None and is_known else None,
                differs=note is None
                and str(name) not in unsettled
                and _differs(state.tables.get(name), found, machines),
            )
        )
    return tuple(rows)


_UNDER_AN_OLD_NAME = (
    "it has a name that a table of this project had: `rollback` cannot give that one its name back before "
    "this one is moved away"
)


_LOST = (
    "it was made by `{}` of this project, and the history knows nothing of it (history-lost): bring the "
    "project's history table back (`history:` in the project file names it), or take the table in as it is "
    "with `adopt: true`"
)


def _is_begun(made: Table, known: History) -> bool:
    """Whether a table is of a run that was cut short or goes on just now."""
    return any(maker_of(made) == made_by(known.project, i.version.text) for i in known.intents)


def _differs(recorded: Table | None, found: Table | None, machines: Machines) -> bool:
    """Whether others changed what a migration declared; of the columns and properties of others, nothing."""
    if recorded is None or found is None:
        return False
    facts = compare(replace(recorded, name=found.name), found, machines)
    return any(fact.managed and not is_expired(fact, recorded) for fact in facts)


def _stranger(declared: Table | None, found: Table | None) -> str | None:
    """What is to be said where the catalog's table is another one than the history means."""
    if declared is None or found is None or None in (declared.uuid, found.uuid):
        return None
    if declared.uuid == found.uuid:
        return None
    return (
        f"it is another table (uuid {found.uuid}) than the history means (uuid {declared.uuid}): somebody "
        "dropped or renamed that one. Move this one away, and rename or register that one back"
    )
