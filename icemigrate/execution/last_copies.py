"""Values that only an earlier snapshot has: its tag stays until they are written back.

The history records dependencies on a snapshot when the undo begins, and removes them after the refill that
writes the values back, whichever command runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from icemigrate.errors import IcemigrateError
from icemigrate.events import ValuesRestored
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.history.journal import LockedJournal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import LastCopy, UndoRecord, last_copies_of, with_last_copies
from icemigrate.planning.plan import Direction, MigrationPlan
from icemigrate.planning.undo import recorded_uuid
from icemigrate.spark.append_snapshot import FOR_EVER_MS
from icemigrate.spark.engine_port import Engine


class SnapshotDependencies(Frozen):
    """The values that depend on snapshots after a migration or its undo.

    :param records: changed undo records, by version.
    :param needed_tags: tags that must stay, by the table's name in the catalog.
    :param released_tags: tags that no value depends on any more, with the age limit that they had.
    :param notes: notes about the values that the migration's undo leaves.
    """

    records: Mapping[str, UndoRecord]
    needed_tags: Mapping[TableName, frozenset[str]]
    released_tags: Mapping[TableName, Mapping[str, int | None]]
    notes: tuple[tuple[TableName, str], ...] = ()


def snapshot_dependencies(
    engine: Engine,
    history: History,
    migration: MigrationPlan,
    after: Mapping[TableName, Table | None],
    brought_back: Sequence[ValuesRestored],
) -> SnapshotDependencies:
    """Find the dependencies on snapshots after a migration or its undo.

    :param history: the current one, with the migration's intent.
    :param after: the resulting tables, by the declared name in their plan.
    """
    records: dict[str, UndoRecord] = {}
    kept: dict[TableName, set[str]] = {}
    freed: dict[TableName, dict[str, int | None]] = {}
    notes: list[tuple[TableName, str]] = []
    uuids = {event.table: _uuid(engine, event.table) for event in brought_back}
    is_apply = migration.direction is not Direction.ROLLBACK
    for plan in () if is_apply else migration.tables:
        table = after.get(plan.declared)
        if table is not None:
            uuids[table.name] = table.uuid
    names = {uuid: name for name, uuid in uuids.items() if uuid is not None}
    for applied, record in history.with_last_copies() if names else ():
        is_own = applied.version.text == migration.version
        if is_own and is_apply:
            continue
        copies = list(last_copies_of(record))
        if is_own:
            # Dependencies that the plan does not list any more are over. It says nothing about tables that it
            # does not name.
            wanted = [c for t in migration.tables for c in t.last_copies]
            others = {t.declared for t in record.tables if recorded_uuid(t) not in names}
            left = [c for c in copies if c.declared in others or any(_is_same(c, w) for w in wanted)]
        else:
            left = copies
        left = [c for one in left for c in _without(one, record, brought_back, uuids)]
        if left != copies:
            records[applied.version.text] = with_last_copies(record, left)
        for undo in record.tables:
            name = names.get(recorded_uuid(undo) or "")
            if name is None:
                continue
            mine = [c for c in left if c.declared == undo.declared]
            kept.setdefault(name, set()).update(c.version for c in mine)
            notes += ((name, _promise(c, migration.version)) for c in mine if is_own)
            over = [c for c in copies if c.declared == undo.declared]
            freed.setdefault(name, {}).update({c.version: c.max_ref_age_ms for c in over})
    return SnapshotDependencies(
        records,
        {name: frozenset(tags) for name, tags in kept.items()},
        {
            name: {tag: age for tag, age in tags.items() if tag not in kept.get(name, ())}
            for name, tags in freed.items()
        },
        tuple(notes),
    )


def _promise(copy: LastCopy, version: str) -> str:
    is_tagged = not (copy.version.isascii() and copy.version.isdigit())
    what, how_long = (copy.version, "also later") if is_tagged else (f"snapshot {copy.version}", _UNTAGGED)
    return (
        f"{what} has values that no row has now: `icemigrate rollback --only {version} --refill` restores "
        f"them, {how_long}; `--no-refill` gives them up"
    )


_UNTAGGED = "until that snapshot expires, since no tag keeps it"


def _is_same(copy: LastCopy, wanted: LastCopy) -> bool:
    return (copy.declared, copy.snapshot_id) == (wanted.declared, wanted.snapshot_id)


def _without(
    copy: LastCopy,
    record: UndoRecord,
    brought_back: Iterable[ValuesRestored],
    uuids: Mapping[TableName, str | None],
) -> Iterator[LastCopy]:
    """The copy without fields whose values are restored; ``None`` where all of them are."""
    table = next((t for t in record.tables if t.declared == copy.declared), None)
    uuid = None if table is None else recorded_uuid(table)
    done = {
        field_id
        for event in brought_back
        if event.source_version == copy.version and uuids[event.table] == uuid
        for field_id in event.fields
    }
    fields = tuple(i for i in copy.fields if i not in done)
    if fields:
        yield replace(copy, fields=fields)


def _uuid(engine: Engine, name: TableName) -> str | None:
    table = engine.table(name)
    return None if table is None else table.uuid


def needed_tags(history: History | None) -> frozenset[str]:
    """The tags that must not move, since values depend on them."""
    found = () if history is None else history.with_last_copies()
    return frozenset(copy.version for _, record in found for copy in last_copies_of(record))


def versions_with_last_copies(history: History) -> dict[str | None, dict[int, tuple[str, ...]]]:
    """The versions whose tags keep values that rollbacks did not restore, by the table's uuid and field."""
    found: dict[str | None, dict[int, tuple[str, ...]]] = {}
    for _, record in sorted(history.with_last_copies(), key=lambda pair: pair[0].version, reverse=True):
        for undo in record.tables:
            if undo.actual_before is None:
                continue
            of_table = found.setdefault(undo.actual_before.uuid, {})
            for copy in undo.last_copies:
                for field_id in copy.fields:
                    of_table[field_id] = (*of_table.get(field_id, ()), copy.version)
    return found


def protect_tags(engine: Engine, found: SnapshotDependencies, held: LockedJournal) -> None:
    """Remove the age limit of needed tags, and write the tables of released tags to the lock.

    :func:`free_tags` commits after the intent has ended.  The write that ends the intent also writes these
        names to the lock, so a process that takes the lock over fences the tables.

    :raises LockLost: this process does not hold the lock any more.
    """
    for name, tags in found.needed_tags.items():
        held.require()
        _set_ages(engine, name, dict.fromkeys(tags, FOR_EVER_MS))
    held.may_change(str(name) for name, ages in found.released_tags.items() if ages)


def free_tags(engine: Engine, found: SnapshotDependencies, note: Callable[[TableName, str], None]) -> None:
    """Restore the age limit of tags that no value depends on any more.

    A tag that stays longer causes no problem, so an error here does not fail the run.

    :param note: called with notes about values that still depend on a tag.
    """
    for name, text in found.notes:
        note(name, text)
    with suppress(IcemigrateError):
        for name, ages in found.released_tags.items():
            _set_ages(engine, name, ages)


def _set_ages(engine: Engine, name: TableName, ages: Mapping[str, int | None]) -> None:
    table = engine.table(name)
    if table is not None and _aged(ages, table) != table:
        engine.commit(name, partial(_aged, ages))


def _aged(ages: Mapping[str, int | None], table: Table) -> Table:
    refs = {
        name: replace(ref, max_ref_age_ms=ages[name]) if name in ages and ref.kind == "tag" else ref
        for name, ref in table.refs.items()
    }
    return replace(table, refs=refs)
