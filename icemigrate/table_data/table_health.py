"""What makes reads of a table slow, or uses storage: small files, delete files, old snapshots.

The limits are those of Iceberg's own procedures: ``rewrite_data_files`` rewrites a group of at least five
files that have less than 75 % of the target size, ``expire_snapshots`` removes snapshots after five days.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from icemigrate.diagnostics import format_count
from icemigrate.iceberg.metadata_parts import default_spec_id
from icemigrate.iceberg.retention import MINUTE_MS, SNAPSHOT_AGE, format_duration, snapshot_ids_to_expire
from icemigrate.iceberg.table_properties import whole_number
from icemigrate.results.describe_results import TableHealth
from icemigrate.table_data.live_files import DATA, LiveFile, SnapshotManifest
from icemigrate.table_data.table_session import CurrentTable

_TARGET = "write.target-file-size-bytes"
_DEFAULT_TARGET = 512 * 1024**2
_SMALL, _FEWEST = 0.75, 5
_DEFAULT_AGE_MS = 5 * 24 * 60 * MINUTE_MS
_DAY_MS = 24 * 60 * MINUTE_MS
_MANY_MANIFESTS = 100
_SMALL_MANIFEST = 1024**2
_MANY_METADATA_FILES = 100
_OLD_METADATA_DAYS = 365


def table_health(
    table: CurrentTable, files: Sequence[LiveFile], manifests: Sequence[SnapshotManifest], at: datetime
) -> Iterator[TableHealth]:
    """The findings about a table.

    :param files: of its current snapshot.
    :param manifests: of its current snapshot.
    :param at: the time that ages are counted from.
    """
    yield from _small_files(table, files)
    yield from _delete_files(table, files)
    yield from _old_spec_files(table, files)
    yield from _manifests(manifests)
    yield from _snapshots(table, at)
    yield from _metadata(table, at)


def _small_files(table: CurrentTable, files: Sequence[LiveFile]) -> Iterator[TableHealth]:
    target = whole_number(table.metadata["properties"].get(_TARGET)) or _DEFAULT_TARGET
    small = Counter(
        (file.spec_id, str(sorted(file.partition.items(), key=str)))
        for file in files
        if file.content == DATA and file.size < target * _SMALL
    )
    many = [count for count in small.values() if count >= _FEWEST]
    if many:
        is_partitioned = any(file.partition for file in files)
        place = f" in {format_count(len(many), 'partition')}" if is_partitioned else ""
        yield TableHealth(
            "small-files",
            f"{sum(many):,} data files{place} are smaller than three quarters of the target of "
            f"{target / 1024**2:,.0f} MiB",
            f"`icemigrate table compact {table.declared}`",
        )


def _delete_files(table: CurrentTable, files: Sequence[LiveFile]) -> Iterator[TableHealth]:
    deletes = [file for file in files if file.content != DATA]
    rows = sum(file.rows for file in files if file.content == DATA)
    if deletes:
        count = sum(file.rows for file in deletes)
        share = f", {100 * min(1, count / rows):.0f} % of the rows" if rows else ""
        yield TableHealth(
            "delete-files",
            f"readers apply {format_count(len(deletes), 'delete file')} with {count:,} deletes{share}",
            f"`icemigrate table compact {table.declared}`",
        )


def _old_spec_files(table: CurrentTable, files: Sequence[LiveFile]) -> Iterator[TableHealth]:
    current = default_spec_id(table.metadata)
    old = sum(file.content == DATA and file.spec_id != current for file in files)
    if old:
        yield TableHealth(
            "old-spec-files",
            f"{format_count(old, 'data file')} {'has' if old == 1 else 'have'} an older partition spec",
            "`rewrite: {partitions: old}` in a migration file rewrites them",
        )


def _manifests(manifests: Sequence[SnapshotManifest]) -> Iterator[TableHealth]:
    small = sum(manifest.length < _SMALL_MANIFEST for manifest in manifests)
    if small >= _MANY_MANIFESTS:
        yield TableHealth(
            "many-manifests", f"a reader opens {len(manifests):,} manifests, {small:,} of them below 1 MiB"
        )


def _snapshots(table: CurrentTable, at: datetime) -> Iterator[TableHealth]:
    metadata = table.metadata
    age = whole_number(metadata["properties"].get(SNAPSHOT_AGE)) or _DEFAULT_AGE_MS
    old = snapshot_ids_to_expire(metadata, round(at.timestamp() * 1000))
    if old:
        days = max(1, round(age / _DAY_MS))
        yield TableHealth(
            "old-snapshots",
            f"{format_count(len(old), 'snapshot')} {'is' if len(old) == 1 else 'are'} older than "
            f"{format_duration(age)} and can expire",
            f"`icemigrate table expire {table.declared} --days {days}`",
        )


def _metadata(table: CurrentTable, at: datetime) -> Iterator[TableHealth]:
    metadata = table.metadata
    count = len(metadata["metadata-log"]) + 1
    if count >= _MANY_METADATA_FILES:
        yield TableHealth("many-metadata-files", f"the log of metadata names {count:,} files")
    days = (at.timestamp() * 1000 - metadata["last-updated-ms"]) / _DAY_MS
    if days >= _OLD_METADATA_DAYS:
        yield TableHealth("old-metadata", f"the last change was {days:,.0f} days ago")
