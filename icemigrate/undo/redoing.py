"""A held version applied again: its columns get the field ids back that they had the first time.

So what was written into them before the rollback is there again.  A field keeps its recorded id only where
its type still reads what was written: the recorded type itself, or a promotion of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.frozen import replace
from icemigrate.merge import rebind
from icemigrate.model.names import Path
from icemigrate.model.promotions import is_promotion, is_read_back
from icemigrate.model.schema import index
from icemigrate.model.sides import Wanted
from icemigrate.model.table import Table
from icemigrate.model.types import Field, Type, children, is_nested
from icemigrate.model.undo_record import UndoRecord


def with_recorded_ids(wanted: Wanted, record: UndoRecord, base: Table | None) -> Wanted:
    """What a redo wants, its new fields under the ids of the undo record where these fit.

    :param base: the table as declared before the redo; ``None`` at a first mention, whose ids are the
        catalog's: a table that comes back out of the trash has them still, and what it was made as says
        what others have changed of it since.
    """
    undo = next((u for u in record.tables if u.declared_after == wanted.name), None)
    if wanted.table is None or undo is None or undo.after is None:
        return wanted
    if base is None:
        return replace(wanted, made=undo.after)
    free = {f.id for _, f in undo.after.schema.walk()} - set(index(base.schema))
    ids = dict(_matching(wanted.table, undo.after, free))
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
