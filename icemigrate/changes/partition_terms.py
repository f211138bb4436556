"""The difference of two partition specs, and helpers of the kinds that change a spec.

Specs are compared by their live fields, each as (source, transform, name), without their order: unchanged
fields keep their position, new ones come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from icemigrate.changes.change import TablePair
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partitioning import PartitionField
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.expressions import transform_sql
from icemigrate.spark_sql.identifiers import quote


class SpecDifference(Frozen):
    """The difference of two specs.

    :param dropped: dropped fields, in the order of the old spec.
    :param renamed: fields that keep source and transform, old and new.
    :param replaced: fields that another field of the same source replaces in one statement, old and new.
    :param added: all new fields, including those that replace one, in the order of the new spec.
    """

    dropped: tuple[PartitionField, ...] = ()
    renamed: tuple[tuple[PartitionField, PartitionField], ...] = ()
    replaced: tuple[tuple[PartitionField, PartitionField], ...] = ()
    added: tuple[PartitionField, ...] = ()


def spec_difference(pair: TablePair) -> SpecDifference:
    """The difference of the specs of a table; empty unless it exists before and after."""
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
    """Old and new field with the same source and transform."""
    terms = {(f.source_ids, str(f.transform)): f for f in come}
    for old in gone:
        new = terms.get((old.source_ids, str(old.transform)))
        if new is not None:
            yield old, new


def _replaced(
    pair: TablePair, gone: Sequence[PartitionField], come: Sequence[PartitionField], taken: set[str]
) -> Iterator[tuple[PartitionField, PartitionField]]:
    """Old and new field of the same source, if the old field can stay until the columns have changed.

    :param taken: all names of the new spec: an old field must be dropped before another one takes its name.
    """
    rest = list(come)
    for old in gone:
        new = next((f for f in rest if f.source_ids == old.source_ids), None)
        is_free = new is not None and (old.name == new.name or old.name not in taken)
        if new is not None and is_free and _keeps_its_type(pair, old.source_ids[0]):
            rest.remove(new)
            yield old, new


def _keeps_its_type(pair: TablePair, source: int) -> bool:
    """Whether the source keeps its type, so that the old field can stay while columns change."""
    return pair.old[source].field.type == pair.new[source].field.type


def existing_field_sql(table: Table, field: PartitionField) -> str:
    """An existing partition field as in ``DROP`` and ``REPLACE PARTITION FIELD``.

    This is its name, or its term if a column has the same name, because Spark would take it for the column.
    """
    names = {".".join(path) for path, _ in table.schema.walk()}
    if field.name not in names:
        return quote(field.name)
    return transform_sql(field.transform, source_path(table, field))


def source_path(table: Table, field: PartitionField) -> FieldPath:
    """The path of a field's source, which must exist."""
    path = table.schema.path_of(field.source_ids[0])
    assert path is not None, f"partition field {field.name} has no source"
    return path


def partition_field_named(table: Table, name: str) -> PartitionField:
    """The partition field with a name, which must exist."""
    return next(f for f in table.spec.fields if f.name == name)


def lacking_sources(table: Table, paths: Iterable[FieldPath]) -> Iterator[str]:
    """The missing columns."""
    return (f"column `{format_path(path)}`" for path in paths if table.schema.find(path) is None)


def lacking_fields(table: Table, names: Iterable[str]) -> Iterator[str]:
    """The missing partition fields."""
    there = {field.name for field in table.spec.fields}
    return (f"partition field `{name}`" for name in names if name not in there)


def source_id(table: Table, path: FieldPath) -> int:
    """The id of a source, which must exist."""
    field = table.schema.find(path)
    assert field is not None, f"no field {path}"
    return field.id
