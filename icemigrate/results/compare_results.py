"""Result of ``table compare``."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, one_of
from icemigrate.results.table_results import SnapshotInfo

FieldChangeKind: TypeAlias = Annotated[
    str, one_of("added", "dropped", "renamed", "retyped", "required", "optional", "described")
]
DistinctMethod: TypeAlias = Literal["exact", "approximate", "none"]
RowChangeKind: TypeAlias = Annotated[str, one_of("added", "removed", "changed")]


class FieldDifference(Frozen):
    """A difference of one field, found by its id.

    :param field_id: its id.
    :param change: what differs.
    :param before: its path, type or comment in the first snapshot's schema; ``None`` without one.
    :param after: the same in the second one's.
    :param path: its full name in the newer schema that has it.
    """

    field_id: int
    change: FieldChangeKind
    path: str
    before: str | None = None
    after: str | None = None


class FileSet(Frozen):
    """Files that only one of two snapshots has.

    :param data_files: number of data files.
    :param rows: their rows; deleted rows are counted.
    :param data_bytes: their size.
    :param delete_files: number of delete files.
    :param paths: the first of them.
    """

    data_files: Count = 0
    rows: Count = 0
    data_bytes: Count = 0
    delete_files: Count = 0
    paths: tuple[str, ...] = ()


class ColumnDifference(Frozen):
    """Counts of one column in two snapshots.

    :param column: its name in the newer schema.
    :param nulls_before: number of nulls in the first snapshot; ``None`` where it is not counted.
    :param nulls_after: number of nulls in the second snapshot; ``None`` where it is not counted.
    :param distinct_before: number of distinct values in the first snapshot, without null; ``None`` where they
        are not counted.
    :param distinct_after: the same in the second snapshot.
    :param changed: rows of a key that both snapshots have, and whose value differs; ``None`` without a key.
    """

    column: str
    nulls_before: Count | None = None
    nulls_after: Count | None = None
    distinct_before: Count | None = None
    distinct_after: Count | None = None
    changed: Count | None = None


class SampleValue(Frozen):
    """A value in a row that differs.

    :param column: its name in the newer schema.
    :param before: in the first snapshot, as text; ``None`` for null, and where it has no such row.
    :param after: in the second snapshot.
    """

    column: str
    before: str | None = None
    after: str | None = None


class SampleRow(Frozen):
    """A row that differs.

    :param change: ``added``, ``removed`` or ``changed``.
    :param values: of an added or removed row, those of all columns; of a changed row, those of the key and
        those that differ.
    """

    change: RowChangeKind
    values: tuple[SampleValue, ...]


class RowDifference(Frozen):
    """The rows that differ.

    :param key: the columns that identify a row; empty where whole rows are compared.
    :param added: rows that only the second snapshot has.
    :param removed: rows that only the first snapshot has.
    :param changed: rows whose key both have, and that differ in other columns; 0 without a key.
    :param is_whole: whether all rows were read; otherwise only those of data files that differ.
    :param samples: the first rows of each change.
    """

    key: tuple[str, ...] = ()
    added: Count = 0
    removed: Count = 0
    changed: Count = 0
    is_whole: bool = False
    samples: tuple[SampleRow, ...] = ()


class CompareResult(Frozen):
    """The differences of two snapshots of one table.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param before: the first snapshot.
    :param after: the second snapshot.
    :param fields: differences of both schemas, by field id.
    :param files_added: that only the second snapshot has.
    :param files_removed: that only the first snapshot has.
    :param files_kept: number of data files that both have.
    :param columns: counts per column; empty where rows are not compared.
    :param distinct_values: how the distinct values of all columns are counted: ``none`` where a snapshot has
        many rows; ``None`` where rows are not compared.
    :param rows: the rows that differ; ``None`` where they are not compared.
    """

    table: str
    name: str
    before: SnapshotInfo
    after: SnapshotInfo
    fields: tuple[FieldDifference, ...] = ()
    files_added: FileSet = FileSet()
    files_removed: FileSet = FileSet()
    files_kept: Count = 0
    columns: tuple[ColumnDifference, ...] = ()
    distinct_values: DistinctMethod | None = None
    rows: RowDifference | None = None
