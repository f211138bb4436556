"""Results of the commands of `table` about the files of one snapshot."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, one_of

FileContent: TypeAlias = Annotated[str, one_of("data", "position_deletes", "equality_deletes")]
ManifestContent: TypeAlias = Annotated[str, one_of("data", "deletes")]


class FileInfo(Frozen):
    """A data file or a delete file.

    :param path: its location.
    :param content: ``data``, ``position_deletes``, also of deletion vectors, or ``equality_deletes``.
    :param format: such as ``PARQUET``.
    :param spec_id: the partition spec that it was written with.
    :param partition: its partition values, such as ``at_day=2026-11-27``; empty for an unpartitioned file.
    :param rows: its rows; of a delete file, the number of its deletes.
    :param size_bytes: in bytes; of a deletion vector, that of its file.
    :param added_by: the snapshot that added it.
    """

    path: str
    content: FileContent
    format: str
    spec_id: int
    partition: str
    rows: Count
    size_bytes: Count
    added_by: int | None = None


class FilesResult(Frozen):
    """The files of a snapshot.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param snapshot_id: ``None`` where the table has no snapshot.
    :param files: those that ``--limit`` allows, in the order of the manifests.
    :param total: number of all files.
    :param rows: of all data files; deleted rows are counted.
    :param size_bytes: of all data files and delete files.
    """

    table: str
    name: str
    snapshot_id: int | None
    files: tuple[FileInfo, ...] = ()
    total: Count = 0
    rows: Count = 0
    size_bytes: Count = 0


class PartitionInfo(Frozen):
    """The files of one partition.

    :param partition: its values, such as ``at_day=2026-11-27``; empty for an unpartitioned table.
    :param spec_id: the partition spec of its files.
    :param files: number of its data files.
    :param rows: of its data files; deleted rows are counted.
    :param size_bytes: of its data files.
    :param delete_files: number of its delete files.
    :param deletes: number of position and equality deletes in them.
    :param updated_at: when a snapshot added its newest file, in UTC; ``None`` where the snapshot has expired.
    """

    partition: str
    spec_id: int
    files: Count = 0
    rows: Count = 0
    size_bytes: Count = 0
    delete_files: Count = 0
    deletes: Count = 0
    updated_at: datetime | None = None


class PartitionsResult(Frozen):
    """The partitions of a snapshot.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param snapshot_id: ``None`` where the table has no snapshot.
    :param partitions: the largest ones that ``--limit`` allows, by size.
    :param total: number of all partitions.
    """

    table: str
    name: str
    snapshot_id: int | None
    partitions: tuple[PartitionInfo, ...] = ()
    total: Count = 0


class ManifestInfo(Frozen):
    """A manifest.

    :param path: its location.
    :param content: ``data`` for data files, ``deletes`` for delete files.
    :param length: in bytes.
    :param spec_id: the partition spec of its files.
    :param added_by: the snapshot that wrote it.
    :param added_files: files that this snapshot added; ``None`` where a writer of format version 1 omits it.
    :param existing_files: files that were added before.
    :param deleted_files: files that this snapshot removed.
    :param added_rows: of added files.
    :param existing_rows: of existing files.
    :param deleted_rows: of deleted files.
    """

    path: str
    content: ManifestContent
    length: Count
    spec_id: int
    added_by: int | None
    added_files: Count | None
    existing_files: Count | None
    deleted_files: Count | None
    added_rows: Count | None = None
    existing_rows: Count | None = None
    deleted_rows: Count | None = None


class ManifestsResult(Frozen):
    """The manifests of a snapshot.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param snapshot_id: ``None`` where the table has no snapshot.
    :param manifests: those that ``--limit`` allows, in the order of the manifest list.
    :param total: number of all manifests.
    :param length: of all manifests, in bytes.
    """

    table: str
    name: str
    snapshot_id: int | None
    manifests: tuple[ManifestInfo, ...] = ()
    total: Count = 0
    length: Count = 0
