"""Write a project's history: a row for people and the properties for planning, in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from icemigrate.errors import HistoryError
from icemigrate.history.properties import DIGEST_KEY, Applied, History, changes, encode
from icemigrate.history.read import history_of
from icemigrate.history.record import SCHEMA, Record
from icemigrate.model.names import TableName
from icemigrate.model.sides import State
from icemigrate.model.table import Table

# Iceberg's own retries would commit on top of a history that was never looked at.
_NO_RETRIES = {"commit.retry.num-retries": "0"}


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
        expected: Mapping[str, str | None],
    ) -> None:
        """Append rows and change properties in one commit, provided that ``expected`` holds."""
        ...


@dataclass(frozen=True, slots=True)
class HistoryWriter:
    """The history of one project in one catalog.

    :param name: of the history table, in the catalog.
    """

    store: Store
    name: TableName
    project: str

    def prepare(self) -> None:
        """Make the history, unless it is there.

        :raises HistoryError: the table is no history, another project's, or from a newer icemigrate.
        """
        found = self.store.table(self.name)
        if found is None:
            self.store.create_namespace(self.name.namespace)
            properties = {**encode(History(self.project)), **_NO_RETRIES}
            self.store.create(Table(self.name, SCHEMA, properties=properties, last_column_id=_last_id()))
        else:
            history_of(found, self.name, self.project)

    def record(self, record: Record, state: State) -> None:
        """Append a row, and let the base of the next plan be ``state``.

        :raises HistoryError: see :meth:`prepare`.
        :raises EngineError: somebody else wrote to the history meanwhile; nothing was written.
        """
        table = self.store.table(self.name)
        if table is None:
            raise HistoryError(
                f"the history `{self.name}` is gone", "bring the table back before anything else is applied"
            )
        history = history_of(table, self.name, self.project)
        after = encode(replace(history, applied=_with(history.applied, record), state=state))
        to_set, to_remove = changes(table.properties, after)
        self.store.append(
            self.name,
            [record.row()],
            to_set,
            to_remove,
            expected={DIGEST_KEY: table.properties.get(DIGEST_KEY)},
        )


def _with(applied: tuple[Applied, ...], record: Record) -> tuple[Applied, ...]:
    others = tuple(a for a in applied if a.version != record.version)
    new = Applied(
        version=record.version,
        checksum=record.checksum,
        description=record.description,
        applied_at=record.finished_at,
        applied_by=record.user,
        duration_ms=record.duration_ms,
    )
    return (*others, new)


def _last_id() -> int:
    return max(field.id for _, field in SCHEMA.walk())
