"""A project in one environment, with its catalog open: what every use case beyond the files works on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from icemigrate.app.mapping import Names, catalog_settings
from icemigrate.catalog import open_catalog
from icemigrate.catalog.port import Catalog
from icemigrate.engine.ended import faults_of_jvm
from icemigrate.errors import EngineError, HistoryError
from icemigrate.frozen import replace
from icemigrate.history.properties import History
from icemigrate.history.read import read
from icemigrate.model.names import BadName, TableName
from icemigrate.project import Environment, Project, choose_environment


@dataclass(frozen=True, slots=True)
class Opened:
    """A project in one environment, with its catalog open for reading."""

    project: Project
    environment: Environment
    catalog: Catalog
    names: Names
    _ends: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)

    def at_end(self, close: Callable[[], None]) -> None:
        """Let go of something in Spark when the block ends; of what was opened last first.

        What cannot be let go of then goes with the JVM, and hides no other fault.
        """

        def end(_: object, error: BaseException | None, __: object) -> bool:
            # A call to the JVM may have been torn apart, whose answer would be taken for the next one's.
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

    def history(self) -> History:
        """What the history says, without a lock that was taken away; empty before the first apply.

        :raises HistoryError: it cannot be used.
        """
        found = read(self.catalog, self.history_name, self.project.name)
        if found is not None and found.lock is not None and found.lock.is_taken_away:
            found = replace(found, lock=None)
        return History(self.project.name) if found is None else found


@contextmanager
def opened(project: Project, environment: str | None) -> Iterator[Opened]:
    """The project in an environment, until the block ends.

    :param environment: ``None`` for the project's default.
    :raises UsageError: there is no such environment.
    :raises Mistakes: variables that it names are missing.
    :raises CatalogError: there is no such catalog.
    """
    chosen = choose_environment(project, environment, dict(os.environ))
    catalog = open_catalog(catalog_settings(chosen))
    with ExitStack() as ends:
        ends.callback(catalog.close)
        with faults_of_jvm():
            yield Opened(project, chosen, catalog, Names(chosen), ends)
