"""The state that all parts of ``maintain`` share, and their actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from icemigrate.catalog.readable_tables import load_readable_tables, unreadable_text
from icemigrate.catalog.table_places import places_of_tables
from icemigrate.errors import CatalogError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import Frozen
from icemigrate.history.history_properties import History
from icemigrate.history.needed_snapshots import (
    NeededSnapshot,
    snapshots_before_row_changes,
    snapshots_with_last_copies,
)
from icemigrate.iceberg.locations import NearbyTables, TableLocations, copies_of, shared_with
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table, purge_name
from icemigrate.results.maintain_results import ActionSummary, SkippedTable

if TYPE_CHECKING:
    from icemigrate.spark.commit_ports import CommittingEngine

NeededSnapshots: TypeAlias = Mapping[str, Sequence[NeededSnapshot]]
"""By the UUID of the table."""
NO_JVM = (
    "Iceberg's Java library does this, which Spark Connect does not reach: run `icemigrate maintain` in an "
    "environment with `master` instead of `remote`"
)
"""Why an action of :data:`JVM_PARTS` is refused."""
JVM_PARTS = frozenset({"trash", "snapshots", "orphans"})
"""The parts of ``maintain`` that delete files, which Iceberg's Java library finds."""


class ActionSkipped(Exception):
    """An action did nothing, for a reason that is no failure.

    :param reason: for the user, in words.
    :param ends_part: whether the other actions of its part would do nothing for the same reason.
    """

    def __init__(self, reason: str, *, ends_part: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.ends_part = reason, ends_part


class MaintenanceAction(Frozen):
    """An independent, idempotent action on one table.

    :param shown: its summary for the user.
    :param uuid: of the table as it was inspected.
    :param run: performs the action, and returns the result in words; may raise :class:`ActionSkipped`.
    :param snapshots: ids of the snapshots that expire.
    :param schemas: ids of the schemas that are removed.
    :param views: names of the views that are dropped.
    """

    shown: ActionSummary
    name: TableName
    uuid: str | None
    run: Callable[[CommittingEngine], str]
    snapshots: frozenset[int] = frozenset()
    schemas: frozenset[int] = frozenset()
    views: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, TableName, str | None]:
        """Identifies the action across two searches."""
        return (self.shown.part, self.name, self.uuid)

    def names(self, run: str) -> tuple[TableName, ...]:
        """All names that the table can have during the action."""
        return (self.name, purge_name(self.name, run)) if self.shown.part == "trash" else (self.name,)


ActionOrSkipped: TypeAlias = "MaintenanceAction | SkippedTable"


@dataclass(slots=True)
class MaintenanceContext:
    """An environment at one moment.

    :param at: the moment that ages are counted from, with time zone.
    :param engine: gives Spark; only called where manifests or folders have to be read.
    :param has_jvm: whether Iceberg's Java library is within reach; not through Spark Connect.
    :param unreadable: tables that were asked for and cannot be read, each with the reason.
    """

    session: EnvironmentSession
    history: History
    at: datetime
    engine: Callable[[], CommittingEngine]
    has_jvm: bool = True
    unreadable: dict[TableName, str] = field(default_factory=dict)
    _tables: dict[TableName, Table | None] = field(default_factory=dict)
    _metadata: dict[TableName, dict[str, Any] | None] = field(default_factory=dict)
    _places: NearbyTables | None = None
    _unlocated: list[str] = field(default_factory=list)
    _recorded: dict[str, list[Schema]] | None = None
    _last_copies: NeededSnapshots | None = None
    _row_changes: NeededSnapshots | None = None

    @property
    def at_ms(self) -> int:
        """The time in milliseconds since 1970."""
        return round(self.at.timestamp() * 1000)

    def tables(self, names: Iterable[TableName]) -> Mapping[TableName, Table | None]:
        """Tables by name; ``None`` for a name that no table has; without those that cannot be read."""
        wanted = list(names)
        missing = [name for name in wanted if name not in self._tables and name not in self.unreadable]
        if missing:
            loaded = load_readable_tables(self.session.catalog, missing)
            self._tables |= loaded.tables
            self.unreadable |= loaded.unreadable
        return {name: self._tables[name] for name in wanted if name in self._tables}

    def unreadable_among(self, names: Iterable[TableName], part: str) -> Iterator[SkippedTable]:
        """Those of the tables that were asked for and cannot be read."""
        for name in names:
            if name in self.unreadable:
                yield SkippedTable(part, str(name), self.unreadable[name], is_unreadable=True)

    def metadata(self, name: TableName) -> Mapping[str, Any] | None:
        """A table's metadata file as JSON; ``None`` where there is no such table, or it cannot be read."""
        if name not in self._metadata:
            try:
                self._metadata[name] = self.session.catalog.metadata_json(name)
            except CatalogError as error:
                self.unreadable[name] = unreadable_text(error)
                self._metadata[name] = None
        return self._metadata[name]

    def shared_folder(self, name: TableName) -> str | None:
        """Why a table's folder is not its own: what others in the catalog, whosever they are, keep there."""
        return self._not_alone(name, "other tables use its folder", shared_with)

    def shared_files(self, name: TableName) -> str | None:
        """Why a table's files are not its own: others in the catalog began as copies of it, or it of them."""
        return self._not_alone(name, "other tables use its files", copies_of)

    def _not_alone(
        self,
        name: TableName,
        why: str,
        others: Callable[[TableLocations, Iterable[TableLocations]], Iterable[str]],
    ) -> str | None:
        if self._places is None:
            self._places = NearbyTables(self._all_places())
        if self._unlocated:
            return f"{self._unlocated[0]}, so it may use the same files"
        mine = self._places.of(name)
        if mine is None:  # it went just now
            return "its location is unknown"
        found = list(others(mine, self._places.near(mine)))
        return f"{why}: {'; '.join(found)}" if found else None

    def _all_places(self) -> Iterator[TableLocations]:
        catalog = self.session.catalog
        for place in places_of_tables(catalog, self.metadata, self.unreadable.__contains__):
            if isinstance(place, TableName):
                self._unlocated.append(f"table `{place}` cannot be read")
            else:
                yield place

    def recorded_schemas(self, uuid: str | None) -> Sequence[Schema]:
        """The schemas of a table in the undo records of the history."""
        if self._recorded is None:
            self._recorded = {}
            for applied in self.history.applied:
                record = self.history.undo_record(applied.version)
                for undo in record.tables if record is not None else ():
                    for table in (undo.actual_before, undo.actual_after):
                        if table is not None and table.uuid is not None:
                            self._recorded.setdefault(table.uuid, []).append(table.schema)
        return self._recorded.get(uuid or "", ())

    def snapshots_with_last_copies(self, uuid: str | None) -> Sequence[NeededSnapshot]:
        """The snapshots of a table with values that a rollback left there, and that are nowhere else.

        :raises HistoryError: an undo record is damaged.
        """
        if self._last_copies is None:
            self._last_copies = snapshots_with_last_copies(self.history)
        return self._last_copies.get(uuid or "", ())

    def snapshots_before_row_changes(self, uuid: str | None) -> Sequence[NeededSnapshot]:
        """The snapshots of a table from before migrations that changed its rows: an undo restores those rows.

        :raises HistoryError: an undo record is damaged.
        """
        if self._row_changes is None:
            self._row_changes = snapshots_before_row_changes(self.history)
        return self._row_changes.get(uuid or "", ())

    def interrupted_reason(self, declared: TableName) -> str | None:
        """Why a declared table must not change now: a migration of it was interrupted."""
        for intent in self.history.intents:
            if str(declared) in intent.tables:
                return f"{intent.version} was interrupted: `apply` finishes it, `rollback` undoes it"
        return None
