"""Answers questions about a table's files from its manifests.

Rows are read only to count values that manifests do not have (:mod:`icemigrate.spark.row_counts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from icemigrate.catalog.manifest_reader import CatalogManifestReader
from icemigrate.catalog.metadata_files import ReadBytes
from icemigrate.catalog.snapshot_manifests import (
    FileSchemas,
    LiveDataFile,
    TableManifests,
    UnreadableManifest,
    field_share,
)
from icemigrate.data_steps.publication_state import DATA_SUMMARY_PROPERTY, find_publication
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.spark.java_catalog import JavaCatalog
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.java_manifests import JavaManifestReader
from icemigrate.spark.partition_entries import lossy_partition_fields
from icemigrate.spark.partition_restore import find_losses, readable_by_partition
from icemigrate.spark.retained_values import find_retained_values
from icemigrate.spark.row_counts import RunQuery, count_nulls, files_with_live_rows
from icemigrate.spark_sql.identifiers import table_sql

if TYPE_CHECKING:
    from icemigrate.spark.partition_restore import SnapshotLosses


def gather_evidence(java: JavaCatalog, ask: RunQuery, name: TableName, questions: EvidenceQuery) -> Evidence:
    """Answer questions about the current table, with Iceberg's Java API.

    :raises EngineError: there is no such table, or a manifest cannot be read.
    """
    with convert_java_errors():
        table = java.table(name)
        reader = JavaManifestReader(java, table, _fields(questions))
        manifests = TableManifests(java.read(table.operations().current()), reader)
        losses = find_losses(java, table, questions.columns)
        return _answer(manifests, ask, table_sql(java.name, name), questions, losses)


def gather_without_jvm(
    metadata: Mapping[str, Any], read: ReadBytes, ask: RunQuery, rows: str, questions: EvidenceQuery
) -> Evidence | None:
    """Answer questions about a table without a JVM; ``None`` where only :func:`gather_evidence` can.

    :param metadata: the JSON of the table's metadata file.
    :param read: reads a file at a location.
    :param ask: runs a query in Spark, where rows must be counted.
    :param rows: the table's name in Spark SQL.
    :raises EngineError: a query failed.
    """
    manifests = TableManifests(metadata, CatalogManifestReader(read, _fields(questions)))
    if manifests.current_snapshot is not None and lossy_partition_fields(metadata, questions.columns):
        return None  # values that manifests have lost are read from data files
    try:
        return _answer(manifests, ask, rows, questions, None)
    except UnreadableManifest:
        return None


def _fields(questions: EvidenceQuery) -> frozenset[int]:
    """The fields whose metrics are needed."""
    return questions.nulls.union(*questions.held.values())


def _answer(
    manifests: TableManifests,
    ask: RunQuery,
    rows: str,
    questions: EvidenceQuery,
    lost_values: SnapshotLosses | None,
) -> Evidence:
    """Answer the questions from manifests, and from rows where manifests do not have the answer.

    A file that was added later and has no metrics for a field counts as without its values; an earlier one
    counts as unknown.  If the earlier snapshot has expired, all files without metrics count as unknown.

    :param rows: the table's name in Spark SQL.
    :param lost_values: the partition values that the manifests of the main branch have lost.
    """
    published, since_id = None, questions.since
    if questions.rows_of is not None:
        published = find_publication(manifests.metadata, questions.rows_of, questions.since)
        since_id = questions.since if published is None else published.last.id
    since = manifests.snapshot(since_id)
    is_known = since_id is None or since is not None
    added = _Added(questions, FileSchemas(manifests) if questions.earlier_types else None)
    for file in manifests.added_since(since, is_known):
        added.count(file)
    later_paths = added.paths if is_known else set[str]()
    # While partition values are lost, delete files may not apply: a query would count too many rows.
    files_of = files_with_live_rows(ask, rows, manifests) if lost_values is None else manifests.files
    now = files_of(manifests.current_snapshot) if questions.held else []
    lost = {} if lost_values is None else lost_values.losses({file.path: file.live_rows for file in now})
    held = {
        i: field_share(now, leaves, later_paths, readable_by_partition(lost, leaves))
        for i, leaves in questions.held.items()
    }
    kept = find_retained_values(manifests, files_of, questions, held, now, is_known)
    return Evidence(
        files=added.files,
        rows=added.rows,
        snapshots=manifests.snapshots_since(since_id),
        nulls=added.nulls | count_nulls(ask, rows, manifests, _uncertain(manifests, added.nulls)),
        wide=added.wide,
        held=held,
        existing_snapshots=frozenset(i for i in questions.snapshots if manifests.snapshot(i) is not None),
        kept=kept.best,
        more_kept=kept.more,
        published=published,
        steps=manifests.notes_since(since_id, DATA_SUMMARY_PROPERTY) if questions.steps else None,
        partition_losses=lost,
    )


def _uncertain(manifests: TableManifests, nulls: Mapping[int, int | None]) -> list[int]:
    """The fields whose nulls the metrics do not show.

    Where a struct is null, metrics count the fields in it too; and they count rows that delete files remove.
    """
    is_any = any(nulls.values())
    schema = manifests.schema if is_any else Schema(())
    has_deletes = is_any and manifests.has_deletes()
    return [
        i for i, n in nulls.items() if n is None or (n and (has_deletes or schema.parent_of(i) is not None))
    ]


@dataclass(slots=True)
class _Added:
    """Facts about the files that were added."""

    questions: EvidenceQuery
    written_under: FileSchemas | None
    files: int = 0
    rows: int = 0
    paths: set[str] = field(default_factory=set)
    nulls: dict[int, int | None] = field(default_factory=dict)
    wide: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nulls = dict.fromkeys(self.questions.nulls, 0)
        self.wide = dict.fromkeys(self.questions.earlier_types, 0)

    def count(self, file: LiveDataFile) -> None:
        """Take a file in."""
        self.files += 1
        self.paths.add(file.path)
        self.rows += file.rows
        for i, so_far in self.nulls.items():
            here = file.nulls.get(i)
            self.nulls[i] = None if so_far is None or here is None else so_far + here
        if self.written_under is not None:
            schema = self.written_under(file)
            for i, narrow in self.questions.earlier_types.items():
                then = None if schema is None else schema.by_id(i)
                # A file from a time without the field does not contain it, so it can be read as any type.
                self.wide[i] += schema is None or (then is not None and then.type != narrow)
