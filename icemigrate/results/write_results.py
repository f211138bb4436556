"""Results of the commands of `table` that create a table or write rows."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, Milliseconds


class CreatedColumn(Frozen):
    """A column of a new table.

    :param id: its field id.
    :param name: its name.
    :param type: as migration files write it.
    :param required: whether each row has a value.
    """

    id: int
    name: str
    type: str
    required: bool = False


class CreateTableResult(Frozen):
    """A new table that no migration declares, or one that would be created.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param environment: where it was created.
    :param format_version: of Iceberg's table format.
    :param location: of its files; ``None`` where it is not created.
    :param columns: in order, with the ids that they have or would get.
    :param is_inferred: whether the types are those that fit all values of a CSV file.
    :param has_rows: whether that file has rows; without rows each of its columns is a string.
    :param done: whether it was created.
    """

    table: str
    name: str
    environment: str
    format_version: int
    location: str | None
    columns: tuple[CreatedColumn, ...]
    is_inferred: bool = False
    has_rows: bool = True
    done: bool = False


class InsertResult(Frozen):
    """Rows that were inserted into a table, in one snapshot.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param snapshot_id: of the new snapshot; ``None`` where there were no rows to insert.
    :param rows: number of inserted rows.
    :param files: number of new data files.
    :param bad_rows: number of rows that do not fit the table and were left out.
    :param bad_rows_file: the file that has them; ``None`` without one.
    :param elapsed_ms: how long it took, in milliseconds.
    """

    table: str
    name: str
    snapshot_id: int | None
    rows: Count
    files: Count
    bad_rows: Count = 0
    bad_rows_file: str | None = None
    elapsed_ms: Milliseconds = 0


class RowChangeResult(Frozen):
    """Rows of a table that were changed, in one snapshot.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param snapshot_id: of the new snapshot; ``None`` where no row had to change.
    :param inserted: number of new rows.
    :param updated: number of changed rows.
    :param deleted: number of deleted rows.
    :param unchanged: number of rows of the data that the table has already (`upsert`).
    :param files_removed: number of data files that were replaced or removed.
    :param files_added: number of new data files.
    :param spark_reason: why Spark made the change; ``None`` where it was made without Spark.
    :param elapsed_ms: how long it took, in milliseconds.
    """

    table: str
    name: str
    snapshot_id: int | None
    inserted: Count = 0
    updated: Count = 0
    deleted: Count = 0
    unchanged: Count = 0
    files_removed: Count = 0
    files_added: Count = 0
    spark_reason: str | None = None
    elapsed_ms: Milliseconds = 0
