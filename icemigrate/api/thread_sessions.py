"""The open tables of a catalog, with a session of its own for each thread."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from icemigrate.errors import UsageError
from icemigrate.project import Project
from icemigrate.table_data.table_session import TableSession, open_tables


class ThreadSessions:
    """Sessions that are opened on first use: connections to a catalog belong to one thread.

    :param project: that has the catalog.
    :param environment: of the project; ``None`` for its default.
    :param is_recorded: whether the project has a history, and is not only a catalog.
    """

    def __init__(self, project: Project, environment: str | None, *, is_recorded: bool) -> None:
        self.project, self.is_recorded = project, is_recorded
        self.environment = environment
        self._sessions = threading.local()
        self._ends: list[ExitStack] = []
        self._is_closed = False

    def close(self) -> None:
        """Close the sessions of all threads."""
        self._is_closed = True
        while self._ends:
            self._ends.pop().close()

    def current(self) -> TableSession:
        """The session of this thread.

        :raises UsageError: the sessions are closed.
        """
        if self._is_closed:
            raise UsageError("this manager is closed", "make a new one")
        session: TableSession | None = getattr(self._sessions, "tables", None)
        if session is None:
            stack = ExitStack()
            opened = open_tables(self.project, self.environment, is_recorded=self.is_recorded)
            session = stack.enter_context(opened)
            self._ends.append(stack)
            self._sessions.tables = session
        return session
