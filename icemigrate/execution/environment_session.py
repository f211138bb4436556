"""A project in one environment, with its catalog open: the context of all commands that need a catalog."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icemigrate import versions
from icemigrate.catalog import open_catalog
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.errors import EngineError, HistoryError
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.project import Environment, Project, choose_environment
from icemigrate.project.namespace_mapping import NamespaceMapping, catalog_settings
from icemigrate.spark.java_errors import convert_jvm_exit_errors
from icemigrate.system.process import user_name

if TYPE_CHECKING:
    # What queries need not import: 40 ms.
    from icemigrate.history.history_properties import History
    from icemigrate.iceberg.table import Table
    from icemigrate.planning.plan import MigrationPlan, Plan


@dataclass(frozen=True, slots=True)
class EnvironmentSession:
    """A project in one environment, with its catalog open for reading."""

    project: Project
    environment: Environment
    catalog: Catalog
    names: NamespaceMapping
    _ends: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)

    def on_close(self, close: Callable[[], None]) -> None:
        """Register the clean-up of a Spark resource for the end of the block; the last one runs first.

        A resource that cannot be closed ends with the JVM, and its error hides no other one.
        """

        def end(_: object, error: BaseException | None, __: object) -> bool:
            # After an interrupted call, its answer could be read as that of the next call to the JVM.
            if not isinstance(error and (error.__cause__ or error), KeyboardInterrupt):
                with suppress(EngineError):
                    close()
            return False

        self._ends.push(end)

    @property
    def history_name(self) -> TableName:
        """The history table's name.

        :raises HistoryError: the project file names it wrongly.
        """
        try:
            return TableName.parse(self.project.history)
        except BadName as error:
            raise HistoryError(f"`history:` in the project file: {error}") from error

    def history(self, *, accepts_damaged_lock: bool = False) -> History:
        """The history, without a removed lock or one whose holder ended; empty before the first apply.

        :param accepts_damaged_lock: whether a lock with entries that cannot be read is no error.
        :raises HistoryError: it cannot be used.
        """
        from icemigrate.history.history_io import read_history
        from icemigrate.history.history_properties import History

        found = read_history(
            self.catalog,
            self.history_name,
            self.project.name,
            accepts_damaged_lock=accepts_damaged_lock,
        )
        if (
            found is not None
            and found.lock is not None
            and (found.lock.is_taken_away or found.lock.has_ended)
        ):
            found = replace(found, lock=None)
        return History(self.project.name) if found is None else found


def environment_plan(
    session: EnvironmentSession,
    history: History,
    migrations: tuple[MigrationPlan, ...],
    based_on: Mapping[TableName, Table | None],
) -> Plan:
    """A plan of migrations in an environment.

    :param based_on: the current tables, by their name in the catalog; ``None`` for a missing table.
    """
    from icemigrate.planning.plan import Plan

    return Plan(
        project=session.project.name,
        environment=session.environment.name,
        catalog=session.catalog.identity,
        catalog_name=session.environment.catalog.name,
        migrations=migrations,
        applied=tuple((applied.version.text, applied.checksum) for applied in history.applied),
        based_on=based_on,
        base=history.state,
        tool_version=versions.ICEMIGRATE,
    )


class Operator(Frozen):
    """The user and host that the history records."""

    user: str
    host: str


def current_operator() -> Operator:
    """The operator of this process, according to the operating system."""
    import socket

    return Operator(user_name(), socket.gethostname())


@contextmanager
def open_environment(project: Project, environment: str | None) -> Iterator[EnvironmentSession]:
    """Open the project in an environment, until the block ends.

    :param environment: ``None`` for the project's default.
    :raises UsageError: there is no such environment.
    :raises Mistakes: variables that it names are missing.
    :raises CatalogError: there is no such catalog.
    """
    chosen = choose_environment(project, environment, dict(os.environ))
    catalog = open_catalog(catalog_settings(chosen))
    with ExitStack() as ends:
        ends.callback(catalog.close)
        with convert_jvm_exit_errors():
            yield EnvironmentSession(project, chosen, catalog, NamespaceMapping(chosen), ends)
