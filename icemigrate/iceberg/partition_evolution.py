"""Changes of a partition spec, and their effect on existing data files.

The rules are those of ``BaseUpdatePartitionSpec`` and ``TableMetadata`` in Iceberg's Java library: from
format version 2 on a dropped field is removed and its id is used again when the same field returns; in
version 1 it becomes a void field, because ids count through every spec there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from icemigrate.diagnostics import format_count, format_size
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.partitioning import VOID, PartitionField, PartitionSpec, Transform
from icemigrate.iceberg.table import Table


def drop_partition_field(table: Table, name: str) -> Table:
    """The table after ``DROP PARTITION FIELD``; the field must exist."""
    return _with_fields(table, _without(table, _named(table.spec, name)))


def add_partition_field(table: Table, source_id: int, transform: Transform, name: str) -> Table:
    """The table after ``ADD PARTITION FIELD … AS name``."""
    return _with_fields(
        table, (*_move_void(table.spec.fields, name), _new(table, source_id, transform, name))
    )


def replace_partition_field(table: Table, old: str, source_id: int, transform: Transform, name: str) -> Table:
    """The table after ``REPLACE PARTITION FIELD old WITH … AS name``, which is one update, not two."""
    rest = _move_void(_without(table, _named(table.spec, old)), name)
    return _with_fields(table, (*rest, _new(table, source_id, transform, name)))


def rename_partition_field(table: Table, old: str, new: str) -> Table:
    """The table after a replacement by the same source and transform: the field keeps its id and position."""
    fields = _move_void(table.spec.fields, new)
    return _with_fields(table, tuple(replace(f, name=new) if f.name == old else f for f in fields))


def _named(spec: PartitionSpec, name: str) -> PartitionField:
    return next(f for f in spec.fields if f.name == name)


def _without(table: Table, dropped: PartitionField) -> tuple[PartitionField, ...]:
    if table.format_version >= 2:
        return tuple(f for f in table.spec.fields if f != dropped)
    return tuple(replace(f, transform=VOID) if f == dropped else f for f in table.spec.fields)


def _move_void(fields: Iterable[PartitionField], name: str) -> tuple[PartitionField, ...]:
    """Void fields give up their name to a new one: they take their id into it."""
    fields = tuple(fields)
    for void in fields:
        if void.name == name and void.transform == VOID:
            moved = f"{name}_{void.id}"
            rest = _move_void((f for f in fields if f != void), moved)
            by_id = {f.id: f for f in (*rest, replace(void, name=moved))}
            return tuple(by_id[f.id] for f in fields)
    return fields


def _new(table: Table, source_id: int, transform: Transform, name: str) -> PartitionField:
    earlier = (
        f.id
        for spec in _all_specs(table)
        for f in spec.fields
        if f.name == name and f.source_ids == (source_id,) and f.transform == transform
    )
    recycled = min(earlier, default=None) if table.format_version >= 2 else None
    field_id = table.last_partition_id + 1 if recycled is None else recycled
    return PartitionField((source_id,), transform, name, field_id)


def _with_fields(table: Table, fields: tuple[PartitionField, ...]) -> Table:
    """The table with a spec of these fields; an equal earlier spec is used again under its own id."""
    specs = _all_specs(table)
    first = fields[0].name if fields else ""
    # A table may have hundreds of specs, and nearly all of them differ in the first name.
    alike = (s for s in specs if (s.fields[0].name if s.fields else "") == first)
    spec = next((s for s in alike if _say_the_same(s.fields, fields)), None)
    last = table.last_partition_id
    if spec is None:
        spec = PartitionSpec(fields, specs[-1].id + 1)
        last = max((last, *(f.id for f in fields)))
    older = tuple(s for s in specs if s.id != spec.id)
    return replace(table, spec=spec, older_specs=older, last_partition_id=last)


def _say_the_same(some: Sequence[PartitionField], others: Sequence[PartitionField]) -> bool:
    return len(some) == len(others) and all(
        one.definition == other.definition for one, other in zip(some, others, strict=True)
    )


def _all_specs(table: Table) -> tuple[PartitionSpec, ...]:
    return tuple(sorted((*table.older_specs, table.spec), key=attrgetter("id")))


class FileTotals(Frozen):
    """Live data files.

    :param bytes: their size; ``None`` where finding out would have taken too long.
    """

    files: int
    bytes: int | None


class FilesBySpec(Frozen):
    """The live data files of a table's current snapshot by the id of the spec they were written under."""

    by_spec: Mapping[int, FileTotals]


class OldSpecFiles(Frozen):
    """The part of a table's files with another spec than the current or planned one.

    :param files: number of such data files, of the ``all_files`` of the current snapshot.
    :param all_files: number of all data files in the current snapshot.
    :param bytes: their size; ``None`` where it is unknown, as for ``all_bytes``.
    :param all_bytes: the size of all files.
    """

    files: int
    all_files: int
    bytes: int | None = None
    all_bytes: int | None = None

    def __str__(self) -> str:
        text = f"{self.files} of {self.all_files} files"
        if self.bytes is None or self.all_bytes is None:
            return f"{text}, of unknown size,"
        return f"{text}, {format_size(self.bytes)} of {format_size(self.all_bytes)},"


def old_spec_files(layout: FilesBySpec, table: Table, wanted: PartitionSpec) -> OldSpecFiles:
    """The files whose partitioning differs from the wanted spec's.

    Fields and transforms count, but neither the names of partition fields nor their order: files that only
    lack a new name need no rewrite.

    :param table: the current table, with all its specs.
    """
    same = equivalent_spec_ids(table, wanted)
    old = [portion for spec_id, portion in layout.by_spec.items() if spec_id not in same]
    every = list(layout.by_spec.values())
    return OldSpecFiles(_files(old), _files(every), _bytes(old), _bytes(every))


def equivalent_spec_ids(table: Table, wanted: PartitionSpec) -> frozenset[int]:
    """The ids of a table's specs that partition files as the wanted one does."""
    goal = _parts(wanted)
    return frozenset(spec.id for spec in (table.spec, *table.older_specs) if _parts(spec) == goal)


def has_one_partitioning(table: Table) -> bool:
    """Whether all of a table's specs part files alike."""
    return len(equivalent_spec_ids(table, table.spec)) == len(
        {s.id for s in (table.spec, *table.older_specs)}
    )


def was_repartitioned(recorded: Table) -> bool:
    """Whether a recorded table, which has no older specs, was ever partitioned differently.

    Specs are numbered from 0, and the history has the highest id.  Older histories have none; there the table
    was repartitioned if more field ids were given, from 1000 on, than there are fields.
    """
    return recorded.spec.id != 0 or recorded.last_partition_id >= 1000 + len(recorded.spec.fields)


def _parts(spec: PartitionSpec) -> frozenset[tuple[tuple[int, ...], str]]:
    return frozenset((f.source_ids, str(f.transform)) for f in spec.live)


def _files(portions: Iterable[FileTotals]) -> int:
    return sum(p.files for p in portions)


def _bytes(portions: Iterable[FileTotals]) -> int | None:
    total = 0
    for portion in portions:
        if portion.bytes is None:
            return None
        total += portion.bytes
    return total


class UnrecordedValues(Frozen):
    """Files whose value of a partition field is not recorded anywhere.

    :param reads_null: whether the column itself reads null (``identity``); otherwise only filters miss the
        rows.
    """

    files: int
    rows: int
    reads_null: bool


class PartitionLoss(Frozen):
    """The lost values of one column in manifests, and those that the commit restoring the column can find.

    :param files: number of data files whose values the commit restores.
    :param rows: number of their rows.
    :param hidden: by the name of the partition field, the files that it cannot restore.
    :param unreadable: paths of files in which the column reads null although it has values.
    :param readable: paths of files whose value manifests have, whether the files contain it or not.
    """

    files: int = 0
    rows: int = 0
    hidden: Mapping[str, UnrecordedValues] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    readable: frozenset[str] = frozenset()

    def notes(self, column: str) -> Iterator[str]:
        """The notes of a plan.

        :param column: the column's path as text.
        """
        if self.files:
            yield (
                f"manifests written while {column} was dropped have null for its partition values in "
                f"{format_count(self.files, 'file')} ({format_count(self.rows, 'row')}): "
                "the commit rewrites these manifests with the right values"
            )
        for name, hidden in self.hidden.items():
            effect = f"{column} reads null there" if hidden.reads_null else f"filters on {column} miss them"
            yield (
                f"values of partition field `{name}` that are not recorded anywhere: "
                f"{format_count(hidden.files, 'file')} ({format_count(hidden.rows, 'row')}); {effect}"
            )
