"""The three sides of an undo: the merge of the way there, with base and wanted exchanged.

Where a fact holds several things that come and go one by one (partition fields, identifier fields), the merge
compares it as a whole.  An undo takes away what the migration added and puts back what it took,
and leaves what others added: so the sides are prepared here, from what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.frozen import Frozen, replace
from icemigrate.merge import Merged, merge
from icemigrate.model.partitioning import PartitionField, PartitionSpec
from icemigrate.model.schema import Schema, index
from icemigrate.model.sides import Position
from icemigrate.model.table import Table


class Sides(Frozen):
    """What the migration made of a table.

    :param before: the table as it shall be declared again.
    :param after: as the migration left it.
    """

    before: Table
    after: Table


def inverse(sides: Sides, there: Table) -> Merged:
    """What the table becomes when the migration's difference is taken back; what others changed stays."""
    before, after = replace(sides.before, name=there.name), replace(sides.after, name=there.name)
    base = replace(after, spec=there.spec, schema=_identified(after, there.schema.identifier_ids))
    wanted = replace(
        before,
        spec=_spec(before, after, there),
        schema=_identified(before, _identifier(before, after, there)),
    )
    return merge(base, wanted, there, tuple(_positions(before, after, there)))


def declared_again(sides: Sides, now: Table) -> Table:
    """The table as it is declared once the migration is taken back; later migrations stay in it."""
    table = inverse(sides, now).target
    gone = {d.field.id for d in sides.after.dropped} - {d.field.id for d in sides.before.dropped}
    kept = tuple(d for d in now.dropped if d.field.id not in gone)
    known = {d.field.id for d in kept}
    present = index(table.schema)
    back = tuple(d for d in sides.before.dropped if d.field.id not in known and d.field.id not in present)
    return replace(table, name=now.name, dropped=(*kept, *back))


def _identified(table: Table, ids: frozenset[int]) -> Schema:
    return replace(table.schema, identifier_ids=ids)


def _identifier(before: Table, after: Table, there: Table) -> frozenset[int]:
    old, new = before.schema.identifier_ids, after.schema.identifier_ids
    return (there.schema.identifier_ids - (new - old)) | (old - new)


def _spec(before: Table, after: Table, there: Table) -> PartitionSpec:
    old, new = {_key(f) for f in before.spec.live}, {_key(f) for f in after.spec.live}
    now = {_key(f) for f in there.spec.live}
    # Void fields are nobody's wish: Iceberg leaves them, and gives their names to those that come.
    kept = tuple(f for f in there.spec.live if _key(f) not in new - old)
    back = tuple(f for f in before.spec.live if _key(f) in old - new - now)
    return (
        there.spec
        if not (back or len(kept) < len(there.spec.live))
        else replace(there.spec, fields=(*kept, *back))
    )


def _key(f: PartitionField) -> tuple[tuple[int, ...], str, str]:
    return (f.source_ids, str(f.transform), f.name)


def _positions(before: Table, after: Table, there: Table) -> Iterator[Position]:
    """The order of before, where the migration moved fields and nobody has moved them since."""
    old, new, now = _siblings(before), _siblings(after), _siblings(there)
    for parent in old.keys() & new.keys() & now.keys():
        kept = [i for i in old[parent] if i in new[parent] and i in now[parent]]
        moved = kept != [i for i in new[parent] if i in kept]
        if not moved or [i for i in now[parent] if i in kept] != [i for i in new[parent] if i in kept]:
            continue
        # What the migration dropped stands among them again.
        order = [i for i in old[parent] if i in kept or i not in new[parent]]
        yield from (Position(i, behind) for behind, i in zip((None, *order), order, strict=False))


def _siblings(table: Table) -> dict[int | None, list[int]]:
    out: dict[int | None, list[int]] = {}
    for field_id, entry in index(table.schema).items():
        out.setdefault(entry.parent, []).append(field_id)
    return out
