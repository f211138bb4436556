"""What all parts of ``maintain`` look at, and the acts that they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from icemigrate.app.world import Opened
from icemigrate.frozen import Frozen
from icemigrate.history.properties import History
from icemigrate.model.locations import Places, copies_of, places_of, shared_with
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.model.upkeep import Kept, Upkeep

if TYPE_CHECKING:
    from icemigrate.engine.spark import SparkEngine

COLLECTED = "gc.enabled"
"""Where it is false, a table's files may not be deleted (Iceberg's "Table behavior properties")."""


class Act(Frozen):
    """Something to be done to one table; it stands on its own, and doing it twice does no harm.

    :param shown: how people are told of it.
    :param uuid: of the table that was looked at.
    :param run: does it, and says what came of it.
    """

    shown: Upkeep
    name: TableName
    uuid: str | None
    run: Callable[[SparkEngine], str]

    @property
    def key(self) -> tuple[str, TableName, str | None]:
        """What makes it the same as one that was found earlier."""
        return (self.shown.part, self.name, self.uuid)


Found: TypeAlias = "Act | Kept"


@dataclass(slots=True)
class Look:
    """An environment as it is at one moment.

    :param at: the moment that ages are counted from, with time zone.
    :param engine: gives Spark; only called where manifests or folders have to be read.
    """

    world: Opened
    history: History
    at: datetime
    engine: Callable[[], SparkEngine]
    _tables: dict[TableName, Table | None] = field(default_factory=dict)
    _metadata: dict[TableName, dict[str, Any] | None] = field(default_factory=dict)
    _places: tuple[Places, ...] | None = None

    @property
    def at_ms(self) -> int:
        """The moment in milliseconds since 1970."""
        return round(self.at.timestamp() * 1000)

    def tables(self, names: Iterable[TableName]) -> Mapping[TableName, Table | None]:
        """Tables by name; ``None`` for a name that no table has."""
        wanted = list(names)
        missing = [name for name in wanted if name not in self._tables]
        if missing:
            self._tables |= self.world.catalog.load(missing)
        return {name: self._tables[name] for name in wanted}

    def metadata(self, name: TableName) -> Mapping[str, Any] | None:
        """A table's metadata file as JSON; ``None`` where there is no such table."""
        if name not in self._metadata:
            self._metadata[name] = self.world.catalog.metadata_json(name)
        return self._metadata[name]

    def shared_folder(self, name: TableName) -> str | None:
        """Why a table's folder is not its own: what others in the catalog, whosever they are, keep there.

        :raises MetadataError: of some table nobody can tell where its files are.
        """
        return self._not_alone(name, "its folder is not its own alone", shared_with)

    def shared_files(self, name: TableName) -> str | None:
        """Why a table's files are not its own: others in the catalog began as copies of it, or it of them.

        :raises MetadataError: of some table nobody can tell where its files are.
        """
        return self._not_alone(name, "its files are not its own alone", copies_of)

    def _not_alone(
        self, name: TableName, why: str, others: Callable[[Places, Iterable[Places]], Iterable[str]]
    ) -> str | None:
        if self._places is None:
            self._places = tuple(self._all_places())
        mine = next((places for places in self._places if places.name == name), None)
        if mine is None:  # it went just now
            return "nobody knows where it is"
        found = list(others(mine, self._places))
        return f"{why}: {'; '.join(found)}" if found else None

    def _all_places(self) -> Iterator[Places]:
        catalog = self.world.catalog
        for name in catalog.tables():
            metadata = self.metadata(name)
            if metadata is not None:
                yield places_of(name, metadata, catalog.metadata_location(name))

    def waiting(self, declared: TableName) -> str | None:
        """Why nothing may be done to a declared table just now: a migration of it was interrupted."""
        for intent in self.history.intents:
            if str(declared) in intent.tables:
                return f"{intent.version} was interrupted: `apply` finishes it, `rollback` undoes it"
        return None


def is_collected(properties: Mapping[str, str]) -> bool:
    """Whether a table's files may be deleted."""
    return properties.get(COLLECTED, "true").lower() == "true"
