"""Rollbacks that other clients or retention have made impossible since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from icemigrate.errors import CatalogError, EngineError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.version_number import Version
from icemigrate.history.history_properties import History
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery, describe_shares
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import TRASH_NAMESPACE
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.undo import recorded_uuid
from icemigrate.planning.undo.evidence_questions import questions_about

_MOST_FILES = 1_000
"""Data files of a table above which its manifests are read only for details."""


def find_lost_rollbacks(
    session: EnvironmentSession,
    history: History,
    records: Mapping[Version, UndoRecord],
    *,
    is_short: bool = False,
) -> Mapping[str, tuple[str, ...]]:
    """What no rollback of an applied version can restore any more, by version.

    Reads the list of the trash, the metadata of each table whose rows a rollback would restore, and the
    manifests of tables whose files were written again after a migration dropped a column.  Starts no Spark:
    where only Spark can answer, nothing is reported.

    :param records: the undo records of the versions.
    :param is_short: leave tables with many files out.
    """
    search = _Search(session, history, is_short)
    return {
        version.text: lost
        for version, record in records.items()
        if (lost := tuple(text for undo in record.tables for text in search.lost(record, undo)))
    }


class _Search:
    def __init__(self, session: EnvironmentSession, history: History, is_short: bool) -> None:
        self.session = session
        self.is_short = is_short
        self.names: dict[str | None, TableName] = {
            table.uuid: session.names.table(name)
            for name, table in history.state.tables.items()
            if table.uuid
        }
        self._trash: frozenset[TableName] | None = None
        self._metadata: dict[TableName, Mapping[str, Any] | None] = {}

    def lost(self, record: UndoRecord, undo: TableUndo) -> Iterator[str]:
        if undo.trash is not None and undo.declared_after is None and undo.trash not in self._in_trash():
            yield f"`{undo.declared}` is no longer in the trash: `rollback` cannot restore it"
        before = None if undo.actual_before is None else undo.actual_before.snapshot
        name = self.names.get(recorded_uuid(undo))
        if before is None or name is None or record.baseline:
            return
        if undo.rows_changed and not undo.rows_open and not self._has_snapshot(name, before.id):
            yield (
                f"the snapshot that `{undo.declared}` had before this migration has expired: "
                "`rollback` needs `--metadata-only`, which leaves its rows as they are"
            )
        if undo.before is not None and undo.after is not None:
            yield from self._lost_values(record.version, undo, name, before.total_records)

    def _lost_values(
        self, version: str, undo: TableUndo, name: TableName, rows_before: int | None
    ) -> Iterator[str]:
        """Values of dropped columns that neither the files nor a tag contain any more."""
        metadata = self._metadata_of(name)
        if metadata is None:
            return
        questions = questions_about(undo, table_from_json(metadata, name), version, self.session.project.name)
        if questions is None or not questions.held or not self._is_read(metadata, questions):
            return
        evidence = self._evidence(metadata, name, questions)
        if evidence is None or undo.before is None:
            return
        fields = schema_index(undo.before.schema)
        missing = {
            fields[i].path: share
            for i, share in evidence.held.items()
            if i in fields
            and share.held + share.unknown < min(share.total, rows_before or share.total)
            and not ((kept := evidence.kept.get(i)) is not None and kept.can_be_matched)
        }
        for text, _, _ in describe_shares(missing):
            yield f"`{undo.declared}`: {text}"

    def _is_read(self, metadata: Mapping[str, Any], questions: EvidenceQuery) -> bool:
        """Whether files were written again since, so that reading the manifests can find a loss."""
        if set(_operations_since(metadata, questions.since)) <= {"append"}:
            return False
        count = (_current(metadata).get("summary") or {}).get("total-data-files", "0")
        return not self.is_short or (str(count).isdecimal() and int(count) <= _MOST_FILES)

    def _evidence(
        self, metadata: Mapping[str, Any], name: TableName, questions: EvidenceQuery
    ) -> Evidence | None:
        from icemigrate.spark.file_evidence import gather_without_jvm

        asked = EvidenceQuery(questions.since, held=questions.held, sources=questions.sources)
        try:
            return gather_without_jvm(
                metadata, self.session.catalog.read_file, _refuse_query, str(name), asked
            )
        except (CatalogError, EngineError):
            return None

    def _in_trash(self) -> frozenset[TableName]:
        if self._trash is None:
            catalog, namespace = self.session.catalog, (TRASH_NAMESPACE,)
            is_there = catalog.namespaces((namespace,))
            self._trash = frozenset(catalog.tables(namespace)) if is_there else frozenset()
        return self._trash

    def _has_snapshot(self, name: TableName, snapshot_id: int) -> bool:
        """Whether a table has a snapshot; also where its metadata cannot be read."""
        metadata = self._metadata_of(name)
        return metadata is None or any(s["snapshot-id"] == snapshot_id for s in _snapshots(metadata))

    def _metadata_of(self, name: TableName) -> Mapping[str, Any] | None:
        """A table's metadata; ``None`` where it cannot be read."""
        if name not in self._metadata:
            try:
                self._metadata[name] = self.session.catalog.metadata_json(name)
            except CatalogError:
                self._metadata[name] = None
        return self._metadata[name]


def _snapshots(metadata: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return metadata.get("snapshots") or ()


def _current(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = metadata.get("current-snapshot-id")
    return next((s for s in _snapshots(metadata) if s["snapshot-id"] == wanted), {})


def _operations_since(metadata: Mapping[str, Any], since: int | None) -> tuple[str, ...]:
    """The operations of the main branch's snapshots after one; ends with ``expired`` where one is gone."""
    known, found = {s["snapshot-id"]: s for s in _snapshots(metadata)}, list[str]()
    snapshot = _current(metadata)
    while snapshot and snapshot["snapshot-id"] != since:
        found.append(str(snapshot.get("summary", {}).get("operation", "")))
        parent = snapshot.get("parent-snapshot-id")
        if parent is not None and parent not in known:
            found.append("expired")
        snapshot = known.get(parent, {})
    return tuple(found)


def _refuse_query(_text: str) -> NoReturn:
    raise EngineError("rows are not counted here", None)
