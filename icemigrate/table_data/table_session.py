"""The tables of one environment, open for the commands and methods that work on a single table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from icemigrate.diagnostics import did_you_mean_word, most_similar
from icemigrate.errors import CatalogError, UsageError
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import BadName, TableName, format_path
from icemigrate.metadata_engine.apply_updates import complete_metadata
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.metadata_engine.parquet_values import surrogate_problem
from icemigrate.metadata_engine.table_store import StoredTable, TableStore
from icemigrate.project import Project
from icemigrate.table_data.object_storage import ObjectStorage, find_object_storage


class CurrentTable(Frozen):
    """A table as the catalog has it now.

    :param declared: its name in migration files.
    :param name: its name in the catalog.
    :param stored: the location of its metadata file, and the content.
    """

    declared: TableName
    name: TableName
    stored: StoredTable

    @property
    def metadata(self) -> dict[str, Any]:
        """The complete metadata, in the form of format version 2 or later."""
        return complete_metadata(self.stored.json)


class TableSession:
    """The tables of one environment: what commits changes, and what reads rows.

    :param environment: the project in the environment, with its catalog open.
    :param project_name: ``None`` for a catalog that is open without a project.
    """

    def __init__(self, environment: EnvironmentSession, store: TableStore, project_name: str | None) -> None:
        self.environment, self.store, self.project_name = environment, store, project_name

    @property
    def storage_properties(self) -> Mapping[str, str]:
        """The settings of the catalog and its storage, under PyIceberg's keys."""
        return self.environment.catalog.settings.properties

    @property
    def object_storage(self) -> ObjectStorage | None:
        """The storage of the settings that DuckDB can sign in to."""
        return find_object_storage({**self.store.catalog_properties, **self.storage_properties})

    def load(self, text: str) -> CurrentTable:
        """The current table of a name, as migration files write it.

        :raises UsageError: the name is invalid, or there is no such table.
        :raises CatalogError: the catalog cannot be read.
        """
        declared = self.parse(text)
        found = self.find(declared)
        if found is None:
            raise UsageError(f"there is no table `{declared}`", self._hint(declared))
        return found

    def parse(self, text: str) -> TableName:
        """The name of a table.

        :raises UsageError: the text is no name of a table.
        """
        if (problem := surrogate_problem(text)) is not None:
            raise UsageError(f"the name of a table is not UTF-8: {problem}", "write the name in UTF-8")
        try:
            return TableName.parse(text)
        except BadName as error:
            raise UsageError(str(error), "give the namespace and the name, such as `sales.orders`") from error

    def find(self, declared: TableName) -> CurrentTable | None:
        """The current table of a declared name; ``None`` where there is none."""
        name = self.environment.names.table(declared)
        stored = self.store.load(name)
        return None if stored is None else CurrentTable(declared, name, stored)

    def _hint(self, wanted: TableName) -> str:
        names = self.environment.names
        catalog = self.environment.catalog
        beside = {n.name: names.declared(n) for n in catalog.tables(names.namespace(wanted.namespace))}
        where = f"namespace `{format_path(wanted.namespace)}`"
        if not beside:
            return f"{where} has no tables; `icemigrate status` lists tables"
        if similar := most_similar(wanted.name, beside):
            return did_you_mean_word(str(beside[similar]))
        listed = ", ".join(f"`{name}`" for name in list(beside.values())[:_LISTED])
        more = f" and {len(beside) - _LISTED} more tables" if len(beside) > _LISTED else ""
        return f"{where} has {listed}{more}"


_LISTED = 5
"""How many tables a hint names."""


@contextmanager
def open_tables(
    project: Project, environment: str | None = None, *, is_recorded: bool = True
) -> Iterator[TableSession]:
    """Open the tables of a project in an environment, until the block ends.

    :param is_recorded: whether the project has a history, and is not only a catalog.
    :raises UsageError: there is no such environment.
    :raises CatalogError: there is no such catalog, or it is of a kind that only Spark can reach.
    """
    with open_environment(project, environment) as session:
        settings = session.catalog.settings
        store = open_table_store(settings)
        if store is None:
            raise CatalogError(
                f"catalog `{settings.name}` is of type `{settings.type}`, which only Spark can reach",
                "use Spark SQL for its tables",
            )
        try:
            yield TableSession(session, store, project.name if is_recorded else None)
        finally:
            store.close()
