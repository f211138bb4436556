"""The history table as the one who changes tables sees it: made once, its head moved by compare-and-swap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from icemigrate.errors import EngineError, HeadMoved, HistoryError
from icemigrate.frozen import Frozen
from icemigrate.history.head import Head, LockInfo, summary
from icemigrate.history.properties import History, encode
from icemigrate.history.read import history_of
from icemigrate.history.record import SCHEMA
from icemigrate.model.names import TableName
from icemigrate.model.table import Table

_SETTINGS = {
    # Iceberg's own retries would commit on top of a history that was never looked at.
    "commit.retry.num-retries": "0",
    # Every step is a commit; what came before them is in the newest metadata file too.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class Store(Protocol):
    """What the history asks of the one who changes tables; see :class:`icemigrate.engine.port.Engine`."""

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Make a namespace, unless it is there."""
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
    """The history of one project in one catalog; see :class:`icemigrate.history.lock.HeadPort`.

    :param name: of the history table, in the catalog.
    """

    store: Store
    name: TableName
    project: str

    def prepare(self) -> None:
        """Make the history with a first, empty snapshot, unless it is there.

        :raises HistoryError: the table is no history, another project's, or from a newer icemigrate.
        """
        found = self.store.table(self.name)
        if found is None:
            found = self._make()
        if history_of(found, self.name, self.project).head is None:
            with suppress(HeadMoved):  # somebody else began it
                self.swap(None, "begun", None)

    def _make(self) -> Table:
        self.store.create_namespace(self.name.namespace)
        properties = {**encode(History(self.project)), **_SETTINGS}
        try:
            self.store.create(Table(self.name, SCHEMA, properties=properties, last_column_id=_last_id()))
        except EngineError:
            # Of several who make it at once, all but one are told that it exists.
            if self.store.table(self.name) is None:
                raise
        return self.table()

    def table(self) -> Table:
        """The history table as it is now.

        :raises HistoryError: it is gone.
        """
        found = self.store.table(self.name)
        if found is None:
            raise HistoryError(
                f"the history `{self.name}` is gone", "bring the table back before anything else is applied"
            )
        return found

    def read(self) -> History:
        """What the history says now.

        :raises HistoryError: it cannot be used.
        """
        return history_of(self.table(), self.name, self.project)

    def head(self) -> Head:
        """The head as it is now.

        :raises HistoryError: the history cannot be used.
        """
        history = self.read()
        return Head(history.head, history.lock)

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

        :raises HeadMoved: it was another one than ``expected``; nothing was written.
        """
        return self.store.append(
            self.name,
            rows,
            properties or {},
            remove,
            expected_head=expected,
            summary=summary(event, lock),
        )


def _last_id() -> int:
    return max(field.id for _, field in SCHEMA.walk())
