"""Read and write the history table; its head is moved by compare-and-swap only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.errors import EngineError, HeadMoved, HistoryError
from icemigrate.frozen import Frozen, replace
from icemigrate.history.head_snapshot import HistoryHead, LockInfo, head_summary, parse_head
from icemigrate.history.history_properties import History, decode_history, encode_history
from icemigrate.history.history_record import SCHEMA, check_columns
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.system.activity import activity


def read_history(
    catalog: Catalog, name: TableName, project: str, *, accepts_damaged_lock: bool = False
) -> History | None:
    """The project's history; ``None`` before the first apply.

    :param name: of the history table.
    :param accepts_damaged_lock: as in :func:`history_of`.
    :raises HistoryError: the table is none, or another project's, was altered, or is from a newer icemigrate.
    :raises CatalogError: as the catalog does.
    """
    table = catalog.load((name,))[name]
    if table is None:
        return None
    return history_of(table, name, project, accepts_damaged_lock=accepts_damaged_lock)


def history_of(
    table: Table,
    name: TableName,
    project: str,
    *,
    accepts_damaged_lock: bool = False,
    decode: Callable[[Mapping[str, str]], History] = decode_history,
) -> History:
    """The history in a table.

    :param accepts_damaged_lock: whether a lock with entries that cannot be read is no error.
    :param decode: decodes the properties.
    :raises HistoryError: as :func:`read_history`.
    """
    try:
        history = decode(table.properties)
        head = parse_head(table.snapshot)
        check_columns(table.schema)
        if head.lock is not None and head.lock.damage and not accepts_damaged_lock:
            raise HistoryError(f"its head cannot be read: {head.lock.damage}", "icemigrate unlock")
    except HistoryError as error:
        raise HistoryError(f"the history `{name}` cannot be used: {error.message}", error.hint) from error
    if history.project != project:
        raise HistoryError(
            f"the history `{name}` belongs to project `{history.project}`, not to `{project}`",
            "give this project its own with `history: NAMESPACE.TABLE` in the project file",
        )
    return replace(history, head=head.id, lock=head.lock)


_PREVIOUS_FILES = "write.metadata.previous-versions-max"
_EARLIER_LIMIT = (_PREVIOUS_FILES, "100")
"""What earlier releases set; each of these files has the whole history."""
_SETTINGS = {
    # Iceberg's own retries would commit on top of a history that this process did not read.
    "commit.retry.num-retries": "0",
    # Every step is a commit, and the newest metadata file has all that earlier ones have.
    "write.metadata.delete-after-commit.enabled": "true",
    _PREVIOUS_FILES: "10",
    # Every record is a manifest.
    "commit.manifest.min-count-to-merge": "20",
}


def missing_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings that a history of an earlier release lacks; values that a person chose stay."""
    found = {key: value for key, value in properties.items() if (key, value) != _EARLIER_LIMIT}
    return {key: value for key, value in _SETTINGS.items() if key not in found}


class HistoryStore(Protocol):
    """The operations on tables that the history needs; see :class:`icemigrate.spark.engine_port.Engine`."""

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace, unless it exists."""
        ...

    def table(self, name: TableName) -> Table | None:
        """The table as it is now."""
        ...

    def create(self, table: Table) -> Table:
        """Make a table."""
        ...

    def append(
        self,
        name: TableName,
        rows: Sequence[Mapping[str, Any]],
        properties: Mapping[str, str],
        remove: Sequence[str],
        *,
        expected_head: int | None,
        summary: Mapping[str, str],
    ) -> int:
        """Move the table's head by compare-and-swap."""
        ...


class HistoryWriter(Frozen):
    """The history of one project in one catalog; see :class:`icemigrate.history.project_lock.HeadPort`.

    :param name: of the history table, in the catalog.
    """

    store: HistoryStore
    name: TableName
    project: str

    def prepare(self) -> None:
        """Create the history with a first, empty snapshot, unless it exists.

        :raises HistoryError: the table is not a history, belongs to another project, or is from a newer
            release.
        """
        found = self.store.table(self.name)
        if found is None:
            found = self._make()
        if history_of(found, self.name, self.project).head is None:
            with suppress(HeadMoved):  # another process began it
                self.swap(None, "begun", None)

    def _make(self) -> Table:
        self.store.create_namespace(self.name.namespace)
        properties = {**encode_history(History(self.project)), **_SETTINGS}
        try:
            self.store.create(Table(self.name, SCHEMA, properties=properties, last_column_id=_last_id()))
        except EngineError:
            # When several processes create it at once, all but one get this error.
            if self.store.table(self.name) is None:
                raise
        return self.table()

    def table(self) -> Table:
        """The current history table.

        :raises HistoryError: it does not exist any more.
        """
        found = self.store.table(self.name)
        if found is None:
            raise HistoryError(
                f"the history `{self.name}` is gone", "restore the table before you apply anything else"
            )
        return found

    def read(self) -> History:
        """The current history.

        :raises HistoryError: it cannot be used.
        """
        return history_of(self.table(), self.name, self.project)

    def head(self) -> HistoryHead:
        """The head as it is now.

        :raises HistoryError: the history cannot be used.
        """
        history = self.read()
        return HistoryHead(history.head, history.lock)

    def swap(
        self,
        expected: int | None,
        event: str,
        lock: LockInfo | None,
        rows: Sequence[Mapping[str, Any]] = (),
        properties: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
    ) -> int:
        """Move the head.

        :raises HeadMoved: it is not ``expected``; nothing was written.
        """
        with activity("Writing the history"):
            return self.store.append(
                self.name,
                rows,
                properties or {},
                remove,
                expected_head=expected,
                summary=head_summary(event, lock),
            )


def _last_id() -> int:
    return max(field.id for _, field in SCHEMA.walk())
