"""What the kinds that change the partition spec have in common.

Two specs are compared by their live fields, each as (source, transform, name), without regard to order:
kept fields stay where they are, new ones go last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.base import Pair
from icemigrate.frozen import Frozen
from icemigrate.model.names import Path
from icemigrate.model.partitioning import PartitionField
from icemigrate.model.table import Table
from icemigrate.sql.names import quote
from icemigrate.sql.terms import transform_sql


class SpecDifference(Frozen):
    """How two specs differ.

    :param dropped: fields that go, in the order of the old spec.
    :param renamed: fields that keep source and transform, old and new.
    :param replaced: fields that make room for another one of the same source in one statement.
    :param added: all new fields, those that replace one included, in the order of the new spec.
    """

    dropped: tuple[PartitionField, ...] = ()
    renamed: tuple[tuple[PartitionField, PartitionField], ...] = ()
    replaced: tuple[tuple[PartitionField, PartitionField], ...] = ()
    added: tuple[PartitionField, ...] = ()


def spec_difference(pair: Pair) -> SpecDifference:
    """How the specs of a table that is there before and after differ."""
    if pair.both is None:
        return SpecDifference()
    old, new = (table.spec.live for table in pair.both)
    if old == new:
        return SpecDifference()
    kept = {f.definition for f in old} & {f.definition for f in new}
    gone = [f for f in old if f.definition not in kept]
    come = [f for f in new if f.definition not in kept and f.source_ids[0] in pair.new]
    renamed = list(_renamed(gone, come))
    gone = [f for f in gone if f not in [old for old, _ in renamed]]
    come = [f for f in come if f not in [new for _, new in renamed]]
    replaced = list(_replaced(pair, gone, come, {f.name for f in new}))
    dropped = [f for f in gone if f not in [old for old, _ in replaced]]
    return SpecDifference(tuple(dropped), tuple(renamed), tuple(replaced), tuple(come))


def _renamed(
    gone: Sequence[PartitionField], come: Sequence[PartitionField]
) -> Iterator[tuple[PartitionField, PartitionField]]:
    """Pairs of one source and transform."""
    terms = {(f.source_ids, str(f.transform)): f for f in come}
    for old in gone:
        new = terms.get((old.source_ids, str(old.transform)))
        if new is not None:
            yield old, new


def _replaced(
    pair: Pair, gone: Sequence[PartitionField], come: Sequence[PartitionField], taken: set[str]
) -> Iterator[tuple[PartitionField, PartitionField]]:
    """Pairs of one source, where the old field may wait until the columns are as they shall be.

    :param taken: all names of the new spec: an old field makes way earlier for another one of its name.
    """
    rest = list(come)
    for old in gone:
        new = next((f for f in rest if f.source_ids == old.source_ids), None)
        is_free = new is not None and (old.name == new.name or old.name not in taken)
        if new is not None and is_free and _keeps_its_type(pair, old.source_ids[0]):
            rest.remove(new)
            yield old, new


def _keeps_its_type(pair: Pair, source: int) -> bool:
    """Whether the old field may stay while the source changes: it need not fit another type."""
    return pair.old[source].field.type == pair.new[source].field.type


def existing_field_sql(table: Table, field: PartitionField) -> str:
    """An existing partition field as ``DROP`` and ``REPLACE PARTITION FIELD`` take it.

    By its name, unless a column has that name too: Spark takes it for the column then.
    """
    names = {".".join(path) for path, _ in table.schema.walk()}
    if field.name not in names:
        return quote(field.name)
    return transform_sql(field.transform, source_path(table, field))


def source_path(table: Table, field: PartitionField) -> Path:
    """The path of a field's source, which must be there."""
    path = table.schema.path_of(field.source_ids[0])
    assert path is not None, f"partition field {field.name} has no source"
    return path


def named(table: Table, name: str) -> PartitionField:
    """The partition field of this name, which must be there."""
    return next(f for f in table.spec.fields if f.name == name)


def source_id(table: Table, path: Path) -> int:
    """The id of a source, which must be there."""
    field = table.schema.find(path)
    assert field is not None, f"no field {path}"
    return field.id
