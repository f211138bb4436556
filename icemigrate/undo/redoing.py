"""A held version applied again: its columns get the field ids back that they had the first time.

So what was written into them before the rollback is there again.  A field keeps its recorded id only where
its type still reads what was written: the recorded type itself, or a promotion of it; and where Iceberg takes
it beside the columns that are there, see :func:`barred`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from icemigrate.data.retype import Retype
from icemigrate.frozen import replace
from icemigrate.merge import rebind
from icemigrate.model.names import Path, TableName
from icemigrate.model.promotions import is_promotion, is_read_back
from icemigrate.model.schema import index
from icemigrate.model.sides import Wanted
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Type, children, is_nested
from icemigrate.model.undo_record import UndoRecord


def barred(wanted: Wanted, record: UndoRecord, there: Table | None) -> Iterator[tuple[int, Retype]]:
    """Recorded fields that cannot come back beside those that they replace: their ids, and what fills them.

    While a column is retyped the old one has its name.  Iceberg takes no column of a name that the table was
    ever partitioned under as long as the source of that partition field is there, whatever the source itself
    is called (``PartitionSpec.Builder``: "Cannot create identity partition sourced from different field").

    :param there: the table as it is.
    """
    after = _recorded(wanted, record)
    if after is None or there is None:
        return
    named = {(f.source_ids[0], f.name) for spec in (there.spec, *there.older_specs) for f in spec.fields}
    for work in wanted.data:
        if isinstance(work, Retype) and there.schema.by_id(work.field_id) is not None:
            was = after.schema.find(work.path)
            if was is not None and (was.id, ".".join(work.path)) in named:
                yield was.id, work


def under_other_names(wanted: Wanted, record: UndoRecord, there: Table | None) -> Iterator[int]:
    """Recorded fields that are there under another name: an interrupted redo has brought them back, and they
    are being filled under a temporary name, by which they are found.

    :param there: the table as it is.
    """
    after = _recorded(wanted, record)
    if after is None or there is None:
        return
    entries = index(after.schema)
    for field_id, entry in index(there.schema).items():
        if field_id in entries and entries[field_id].path != entry.path:
            yield field_id


def brought_back(record: UndoRecord) -> dict[TableName, frozenset[int]]:
    """The fields that a run of a migration brought back under ids that they had before, by declared name.

    Files may hold values of them.
    """
    found = {}
    for undo in record.tables:
        before = undo.actual_before
        if before is None or undo.after is None:
            continue
        known = index(before.schema)
        ids = {*undo.creates, *index(undo.after.schema)}
        found[undo.declared] = frozenset(i for i in ids if 0 < i <= before.last_column_id and i not in known)
    return found


def _recorded(wanted: Wanted, record: UndoRecord) -> Table | None:
    """The table as the migration left it the first time."""
    return next((u.after for u in record.tables if u.declared_after == wanted.name), None)


def with_recorded_ids(
    wanted: Wanted, record: UndoRecord, base: Table | None, anew: Collection[int] = ()
) -> Wanted:
    """What a redo wants, its new fields under the ids of the undo record where these fit.

    :param base: the table as declared before the redo; ``None`` at a first mention, whose ids are the
        catalog's: a table that comes back out of the trash has them still, and what it was made as says
        what others have changed of it since.
    :param anew: recorded ids that are given to nothing.
    """
    after = _recorded(wanted, record)
    if wanted.table is None or after is None:
        return wanted
    if base is None:
        return replace(wanted, made=after)
    free = {f.id for _, f in after.schema.walk()} - set(index(base.schema)) - set(anew)
    ids = dict(_matching(wanted.table, after, free))
    positions = tuple(
        replace(
            p,
            field_id=ids.get(p.field_id, p.field_id),
            after=None if p.after is None else ids.get(p.after, p.after),
        )
        for p in wanted.positions
    )
    return replace(wanted, table=rebind(wanted.table, ids), positions=positions)


def _matching(table: Table, recorded: Table, free: set[int]) -> Iterator[tuple[int, int]]:
    """New field → the recorded field at the same path; what is below another one only with it."""
    known: Mapping[Path, Field] = dict(recorded.schema.walk())
    refused: list[Path] = []
    for path, field in table.schema.walk():
        if field.id > 0 or any(path[: len(r)] == r for r in refused):
            continue
        was = known.get(path)
        if was is not None and was.id in free and _reads(was.type, field.type, table.format_version):
            yield field.id, was.id
        else:
            refused.append(path)


def _reads(old: Type, new: Type, format_version: int) -> bool:
    """Whether values of the one type are read as the other."""
    if is_nested(old) or is_nested(new):
        return type(old) is type(new) and (bool(children(old)) or not children(new))
    return old == new or (is_promotion(old, new, format_version) and is_read_back(old, new))
