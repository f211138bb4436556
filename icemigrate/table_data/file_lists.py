"""The files, partitions and manifests of a snapshot, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from icemigrate.results.file_results import (
    FileInfo,
    FilesResult,
    ManifestInfo,
    ManifestsResult,
    PartitionInfo,
    PartitionsResult,
)
from icemigrate.table_data.live_files import (
    DATA,
    EQUALITY_DELETES,
    POSITION_DELETES,
    LiveFile,
    LiveFileReader,
    SnapshotManifest,
)
from icemigrate.table_data.partition_texts import PartitionTexts
from icemigrate.table_data.snapshot_list import utc_time
from icemigrate.table_data.table_points import CURRENT, ReadPoint, find_snapshot
from icemigrate.table_data.table_session import CurrentTable, TableSession

CONTENTS = {DATA: "data", POSITION_DELETES: "position_deletes", EQUALITY_DELETES: "equality_deletes"}


def open_files(tables: TableSession, table: CurrentTable) -> LiveFileReader:
    """What reads the manifests of a table."""
    return LiveFileReader(table.metadata, tables.environment.catalog.read_file)


def snapshot_or_current(table: CurrentTable, snapshot: str | None) -> Mapping[str, Any] | None:
    """The snapshot of a text, or the current one; ``None`` where the table has none.

    :raises UsageError: the table has no such snapshot.
    """
    found = find_snapshot(table, CURRENT if snapshot is None else ReadPoint(snapshot=snapshot))
    return None if found is None else found.json


def list_files(
    tables: TableSession, name: str, *, snapshot: str | None = None, limit: int | None = None
) -> FilesResult:
    """The data files and delete files of a snapshot.

    :param name: of the table, as migration files write it.
    :param snapshot: an id, a tag, a branch or a time; ``None`` for the current snapshot.
    :param limit: number of files that the result lists; ``None`` for all.
    :raises UsageError: there is no such table or snapshot.
    :raises MetadataError: a manifest cannot be read.
    """
    table = tables.load(name)
    chosen = snapshot_or_current(table, snapshot)
    texts = PartitionTexts(table.metadata)
    listed, total, rows, size = list[FileInfo](), 0, 0, 0
    for file in open_files(tables, table).of(chosen):
        total, size = total + 1, size + file.size
        rows += file.rows if file.content == DATA else 0
        if limit is None or len(listed) < limit:
            listed.append(_file_info(file, texts))
    return FilesResult(str(table.declared), str(table.name), _id(chosen), tuple(listed), total, rows, size)


def list_partitions(
    tables: TableSession, name: str, *, snapshot: str | None = None, limit: int | None = None
) -> PartitionsResult:
    """The partitions of a snapshot, the largest first; one without partitions where it is unpartitioned.

    :param name: of the table, as migration files write it.
    :param snapshot: an id, a tag, a branch or a time; ``None`` for the current snapshot.
    :param limit: number of partitions that the result lists; ``None`` for all.
    :raises UsageError: there is no such table or snapshot.
    :raises MetadataError: a manifest cannot be read.
    """
    table = tables.load(name)
    chosen = snapshot_or_current(table, snapshot)
    texts, times = PartitionTexts(table.metadata), _times(table.metadata)
    groups: dict[tuple[int, str], list[LiveFile]] = {}
    for file in open_files(tables, table).of(chosen):
        groups.setdefault((file.spec_id, texts.text(file.spec_id, file.partition)), []).append(file)
    entries = [_partition_info(spec, text, files, times) for (spec, text), files in groups.items()]
    entries.sort(key=lambda entry: (-entry.size_bytes, entry.partition))
    shown = tuple(entries if limit is None else entries[:limit])
    return PartitionsResult(str(table.declared), str(table.name), _id(chosen), shown, len(entries))


def list_manifests(
    tables: TableSession, name: str, *, snapshot: str | None = None, limit: int | None = None
) -> ManifestsResult:
    """The manifests of a snapshot.

    :param name: of the table, as migration files write it.
    :param snapshot: an id, a tag, a branch or a time; ``None`` for the current snapshot.
    :param limit: number of manifests that the result lists; ``None`` for all.
    :raises UsageError: there is no such table or snapshot.
    :raises MetadataError: the manifest list cannot be read.
    """
    table = tables.load(name)
    chosen = snapshot_or_current(table, snapshot)
    manifests = open_files(tables, table).manifests(chosen)
    shown = tuple(map(_manifest_info, manifests if limit is None else manifests[:limit]))
    length = sum(manifest.length for manifest in manifests)
    return ManifestsResult(str(table.declared), str(table.name), _id(chosen), shown, len(manifests), length)


def _id(snapshot: Mapping[str, Any] | None) -> int | None:
    return None if snapshot is None else int(snapshot["snapshot-id"])


def _file_info(file: LiveFile, texts: PartitionTexts) -> FileInfo:
    return FileInfo(
        path=file.path,
        content=CONTENTS.get(file.content, "data"),
        format=file.format,
        spec_id=file.spec_id,
        partition=texts.text(file.spec_id, file.partition),
        rows=file.rows,
        size_bytes=file.size,
        added_by=file.added_by,
    )


def _times(metadata: Mapping[str, Any]) -> Mapping[int, datetime]:
    return {s["snapshot-id"]: utc_time(s["timestamp-ms"]) for s in metadata["snapshots"]}


def _partition_info(
    spec_id: int, text: str, files: list[LiveFile], times: Mapping[int, datetime]
) -> PartitionInfo:
    data = [file for file in files if file.content == DATA]
    deletes = [file for file in files if file.content != DATA]
    moments = [times[id_] for id_ in {file.added_by for file in files} if id_ is not None and id_ in times]
    return PartitionInfo(
        partition=text,
        spec_id=spec_id,
        files=len(data),
        rows=sum(file.rows for file in data),
        size_bytes=sum(file.size for file in data),
        delete_files=len(deletes),
        deletes=sum(file.rows for file in deletes),
        updated_at=max(moments, default=None),
    )


def _manifest_info(manifest: SnapshotManifest) -> ManifestInfo:
    added, existing, deleted = manifest.files
    added_rows, existing_rows, deleted_rows = manifest.rows
    return ManifestInfo(
        path=manifest.path,
        content="data" if manifest.is_data else "deletes",
        length=manifest.length,
        spec_id=manifest.spec_id,
        added_by=manifest.added_by,
        added_files=added,
        existing_files=existing,
        deleted_files=deleted,
        added_rows=added_rows,
        existing_rows=existing_rows,
        deleted_rows=deleted_rows,
    )
