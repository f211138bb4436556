"""Result of ``table describe``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, one_of

HealthFinding: TypeAlias = Annotated[
    str,
    one_of(
        "small-files", "delete-files", "old-spec-files", "many-manifests", "old-snapshots",
        "many-metadata-files", "old-metadata",
    ),
]  # fmt: skip


class ColumnDescription(Frozen):
    """A column, or a field inside one.

    :param field_id: its id.
    :param path: its full name, with the names of the fields around it.
    :param type: as in a migration file; ``struct``, ``list`` or ``map`` where its fields follow.
    :param required: whether it has no nulls.
    :param is_identifier: whether it is an identifier field.
    :param doc: its comment.
    :param initial_default: the value of rows from before the column, as JSON; ``None`` without one.
    :param write_default: the value of rows whose writer omits it, as JSON; ``None`` without one.
    """

    field_id: int
    path: str
    type: str
    required: bool = False
    is_identifier: bool = False
    doc: str | None = None
    initial_default: str | None = None
    write_default: str | None = None


class TermDescription(Frozen):
    """A partition field, or a term of a sort order.

    :param term: the column with its transform, as in a migration file.
    :param field_id: of a partition field; ``None`` in a sort order.
    :param name: of a partition field; ``None`` in a sort order.
    """

    term: str
    field_id: int | None = None
    name: str | None = None


class TableSizes(Frozen):
    """What the current snapshot has.

    :param rows: of data files; deleted rows are counted.
    :param data_files: their number.
    :param data_bytes: their size.
    :param delete_files: number of position delete files, deletion vectors and equality delete files.
    :param deletes: number of position deletes and equality deletes in them.
    :param delete_bytes: their size.
    :param manifests: their number.
    :param manifest_bytes: their size.
    :param smallest_bytes: the size of the smallest data file; ``None`` without one.
    :param median_bytes: the median size of data files; ``None`` without one.
    :param largest_bytes: the size of the largest data file; ``None`` without one.
    :param partitions: number of partitions with data files.
    """

    rows: Count = 0
    data_files: Count = 0
    data_bytes: Count = 0
    delete_files: Count = 0
    deletes: Count = 0
    delete_bytes: Count = 0
    manifests: Count = 0
    manifest_bytes: Count = 0
    smallest_bytes: Count | None = None
    median_bytes: Count | None = None
    largest_bytes: Count | None = None
    partitions: Count = 0


class TableHealth(Frozen):
    """Something that makes reads slow, or uses storage.

    :param finding: its identifier.
    :param text: what it is, in one sentence.
    :param hint: a command that helps; ``None`` where icemigrate has none.
    """

    finding: HealthFinding
    text: str
    hint: str | None = None


class GrowthPoint(Frozen):
    """The table at one snapshot of main, by its summary.

    :param snapshot_id: its id.
    :param at: when it was committed, in UTC.
    :param rows: ``None`` where its writer omitted it.
    :param data_files: ``None`` where its writer omitted it.
    :param size_bytes: of data files and delete files; ``None`` where its writer omitted it.
    """

    snapshot_id: int
    at: datetime
    rows: Count | None = None
    data_files: Count | None = None
    size_bytes: Count | None = None


class DescribeResult(Frozen):
    """What a table is, and what it contains.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param uuid: its id.
    :param format_version: Iceberg's.
    :param file_format: the format of new data files.
    :param location: its folder.
    :param metadata_location: of its current metadata file.
    :param created_at: the time of the oldest known metadata file, in UTC.
    :param updated_at: when its metadata was last changed, in UTC.
    :param columns: all fields, parents before the fields inside them.
    :param schema_id: of the current schema.
    :param spec_id: of the current partition spec.
    :param partition_by: its partition fields.
    :param sort_by: the terms of the current sort order.
    :param properties: by name; secrets are masked.
    :param sizes: of the current snapshot.
    :param snapshots: number of snapshots.
    :param branches: number of branches.
    :param tags: number of tags.
    :param schemas: number of schemas in the metadata.
    :param specs: number of partition specs in the metadata.
    :param metadata_files: number of metadata files that the log names, with the current one.
    :param health: what can be improved.
    :param growth: the snapshots of main, the oldest first.
    :param is_plot: whether text draws the growth.
    """

    table: str
    name: str
    uuid: str | None
    format_version: int
    file_format: str
    location: str
    metadata_location: str
    created_at: datetime
    updated_at: datetime
    columns: tuple[ColumnDescription, ...]
    schema_id: int
    spec_id: int
    partition_by: tuple[TermDescription, ...]
    sort_by: tuple[TermDescription, ...]
    properties: dict[str, str]
    sizes: TableSizes
    snapshots: Count = 0
    branches: Count = 0
    tags: Count = 0
    schemas: Count = 0
    specs: Count = 0
    metadata_files: Count = 0
    health: tuple[TableHealth, ...] = ()
    growth: tuple[GrowthPoint, ...] = ()
    is_plot: bool = False
