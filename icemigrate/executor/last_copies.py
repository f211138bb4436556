"""Values that only an earlier snapshot has: its tag stays until they are brought back.

What depends on a snapshot is noted in the history when the undo begins, and ends with the refill that brings
the values back, whoever asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from icemigrate.engine.markers import FOR_EVER_MS
from icemigrate.engine.port import Engine
from icemigrate.errors import IcemigrateError
from icemigrate.events import ValuesBroughtBack
from icemigrate.frozen import Frozen, replace
from icemigrate.history.properties import History
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.undo_record import LastCopy, UndoRecord, last_copies_of, with_last_copies
from icemigrate.plan import Direction, MigrationPlan
from icemigrate.undo import uuid_of


class Dependence(Frozen):
    """Which values depend on snapshots once a migration or its undo has ended.

    :param records: undo records that changed, by version.
    :param kept: tags that must stay, by the table's name in the catalog.
    :param freed: tags that nothing depends on any more, with the age limit that they had.
    :param notes: what is to be said of the values that the migration's undo leaves.
    """

    records: Mapping[str, UndoRecord]
    kept: Mapping[TableName, frozenset[str]]
    freed: Mapping[TableName, Mapping[str, int | None]]
    notes: tuple[tuple[TableName, str], ...] = ()


def dependence(
    engine: Engine,
    history: History,
    migration: MigrationPlan,
    after: Mapping[TableName, Table | None],
    brought_back: Sequence[ValuesBroughtBack],
) -> Dependence:
    """Find out what depends on snapshots from now on.

    :param history: as it is, the migration's intent included.
    :param after: the tables that came out of it, by the declared name in their plan.
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
    for applied in history.applied if names else ():
        record = history.undo_record(applied.version)
        is_own = applied.version.text == migration.version
        if record is None or not last_copies_of(record) or (is_own and is_apply):
            continue
        copies = list(last_copies_of(record))
        if is_own:
            # What the plan found nothing left of is over.  It says nothing of tables that it does not name.
            wanted = [c for t in migration.tables for c in t.last_copies]
            others = {t.declared for t in record.tables if uuid_of(t) not in names}
            left = [c for c in copies if c.declared in others or any(_is_same(c, w) for w in wanted)]
        else:
            left = copies
        left = [c for one in left for c in _without(one, record, brought_back, uuids)]
        if left != copies:
            records[applied.version.text] = with_last_copies(record, left)
        for undo in record.tables:
            name = names.get(uuid_of(undo) or "")
            if name is None:
                continue
            mine = [c for c in left if c.declared == undo.declared]
            kept.setdefault(name, set()).update(c.version for c in mine)
            notes += ((name, _promise(c, migration.version)) for c in mine if is_own)
            over = [c for c in copies if c.declared == undo.declared]
            freed.setdefault(name, {}).update({c.version: c.max_ref_age_ms for c in over})
    return Dependence(
        records,
        {name: frozenset(tags) for name, tags in kept.items()},
        {
            name: {tag: age for tag, age in tags.items() if tag not in kept.get(name, ())}
            for name, tags in freed.items()
        },
        tuple(notes),
    )


def _promise(copy: LastCopy, version: str) -> str:
    is_tagged = not copy.version.isdigit()
    what, how_long = (copy.version, "also later") if is_tagged else (f"snapshot {copy.version}", _UNTAGGED)
    return (
        f"{what} has values that no row of now has: `icemigrate rollback --only {version} --refill` restores "
        f"them, {how_long}; `--no-refill` gives them up"
    )


_UNTAGGED = "until another tool expires that snapshot, which no tag keeps"


def _is_same(copy: LastCopy, wanted: LastCopy) -> bool:
    return (copy.declared, copy.snapshot_id) == (wanted.declared, wanted.snapshot_id)


def _without(
    copy: LastCopy,
    record: UndoRecord,
    brought_back: Iterable[ValuesBroughtBack],
    uuids: Mapping[TableName, str | None],
) -> Iterator[LastCopy]:
    """The copy without fields whose values are back; nothing where all of them are."""
    table = next((t for t in record.tables if t.declared == copy.declared), None)
    uuid = None if table is None else uuid_of(table)
    done = {
        field_id
        for event in brought_back
        if event.kept_in == copy.version and uuids[event.table] == uuid
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
    applied = () if history is None else history.applied
    records = (history.undo_record(a.version) for a in applied if history is not None)
    return frozenset(copy.version for record in records for copy in last_copies_of(record))


def keep_tags(engine: Engine, found: Dependence, require: Callable[[], None]) -> None:
    """Let the tags that values depend on never expire.

    :param require: raises where the lock is not ours any more.
    """
    for name, tags in found.kept.items():
        require()
        _set_ages(engine, name, dict.fromkeys(tags, FOR_EVER_MS))


def free_tags(engine: Engine, found: Dependence, note: Callable[[TableName, str], None]) -> None:
    """Give the tags that nothing depends on any more the age limit back that they had.

    A tag that stays longer harms nobody, so what fails here fails nothing.

    :param note: hears what is to be said of values that still depend on a tag.
    """
    for name, text in found.notes:
        note(name, text)
    with suppress(IcemigrateError):
        for name, ages in found.freed.items():
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
