"""``shell``: reads commands and SQL statements; the statements run in a Spark session that stays open."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icemigrate.errors import ExitCode, UsageError
from icemigrate.frozen import Frozen
from icemigrate.project import Project, choose_environment

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from icemigrate.spark.session_settings import SparkSettings

MAX_ROWS = 100
"""How many rows of a result are shown."""
_MAX_CHARACTERS = 80
_COMMENTS = ("#", "--")
_SQL_WORDS = frozenset(
    {
        *("alter", "analyze", "cache", "call", "clear", "create", "delete", "desc", "describe", "drop"),
        *("explain", "from", "insert", "merge", "msck", "refresh", "reset", "select", "set", "show"),
        *("table", "truncate", "uncache", "update", "use", "values", "with"),
    }
)
"""Words that begin a statement of Spark SQL."""


class ShellEntry(Frozen):
    """One command or SQL statement.

    :param text: without the semicolon of a statement.
    """

    text: str
    is_sql: bool


@dataclass(slots=True)
class EntryReader:
    """Puts lines together to entries: a statement may have several lines, and ends with ``;``.

    :param commands: the names of commands; ``show`` is one, ``SHOW`` and ``show tables;`` are SQL.
    """

    commands: Collection[str]
    _lines: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether a statement is not finished."""
        return bool(self._lines)

    def feed(self, line: str) -> ShellEntry | None:
        """The entry that a line ends; ``None`` for an empty line, a comment, and inside a statement."""
        text = line.strip()
        if not self._lines and (not text or text.startswith(_COMMENTS)):
            return None
        if not self._lines and self._is_command(text.rstrip("; ")):
            return ShellEntry(text.rstrip("; "), is_sql=False)
        if self._lines or _finished_statement(text) is not None or self._begins_statement(text):
            self._lines.append(line.rstrip("\r\n"))
            # Without a semicolon in the line, the whole text need not be read again.
            statement = _finished_statement("\n".join(self._lines)) if ";" in line else None
            if statement is None:
                return None
            self._lines.clear()
            return ShellEntry(statement, is_sql=True) if statement else None
        return ShellEntry(text, is_sql=False)

    def clear(self) -> None:
        """Forget an unfinished statement."""
        self._lines.clear()

    def require_finished(self) -> None:
        """Require that no statement is open at the end of the input.

        :raises UsageError: one is.
        """
        if self._lines:
            first = self._lines[0].strip()
            self._lines.clear()
            raise UsageError(f"the last statement has no end: {first[:60]}", "end it with `;`")

    def _is_command(self, text: str) -> bool:
        """Whether a text is a command, with or without a semicolon, and no statement of Spark SQL."""
        word = (text.split() or ("",))[0]
        return word in self.commands and word not in _SQL_WORDS

    def _begins_statement(self, text: str) -> bool:
        word = text.split()[0]
        return word.startswith("(") or (word not in self.commands and word.lower() in _SQL_WORDS)


_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*` | ['"`].*\Z  # the last: an open quote
    | --[^\n]* | /\*.*?\*/ | .""",
    re.DOTALL | re.VERBOSE,
)


def _finished_statement(text: str) -> str | None:
    """A statement without its last ``;``; ``None`` for a text without one outside of strings and comments."""
    end = None
    for token in _TOKEN.finditer(text):
        if token[0] == ";":
            end = token.start() if end is None else end
        elif not token[0].isspace() and not token[0].startswith(("--", "/*")):
            end = None
    return None if end is None else text[:end].strip()


@dataclass(slots=True)
class SqlSession:
    """The Spark session of a user's statements; temporary views and settings stay from one to the next.

    It is opened with the first statement, and anew where Spark was stopped, or the project file or the
    environment gives other settings.
    """

    _session: SparkSession | None = None
    _settings: SparkSettings | None = None
    _context: SparkContext | None = None

    def run(
        self,
        project: Project,
        environment: str | None,
        statement: str,
        on_start: Callable[[], None] = lambda: None,
    ) -> str:
        """Run a statement; returns its rows as Spark's table, at most :data:`MAX_ROWS`, or an empty text.

        Tables need no catalog's name: the environment's catalog is the current one.

        :param on_start: called before Spark is started.
        :raises UsageError: there is no such environment, or it uses Spark Connect.
        :raises EngineError: Java, Spark or the statement failed.
        """
        from icemigrate.spark.java_errors import convert_java_errors
        from icemigrate.spark.job_progress import job_activity

        session = self._open(project, environment, on_start)
        with convert_java_errors(), job_activity(session.sparkContext, "Running the statement"):
            found = session.sql(statement)
            return str(found._jdf.showString(MAX_ROWS, _MAX_CHARACTERS, False)) if found.columns else ""

    def _open(self, project: Project, environment: str | None, on_start: Callable[[], None]) -> SparkSession:
        from icemigrate.execution.spark_start import open_engine, spark_settings
        from icemigrate.spark.java_errors import convert_java_errors

        chosen = choose_environment(project, environment, dict(os.environ))
        settings = spark_settings(chosen)
        session = self._session
        if session is None or settings != self._settings or running_spark() is not self._context:
            session = open_engine(chosen, None, on_start).session
            name = chosen.catalog.name
            with convert_java_errors():
                # A cache would show a table as it was before a command changed it.
                session.conf.set(f"spark.sql.catalog.{name}.cache-enabled", "false")
                session.catalog.setCurrentCatalog(name)
            self._session, self._settings, self._context = session, settings, session.sparkContext
        return session


def running_spark() -> SparkContext | None:
    """The Spark of this process; a process that never imported PySpark has none."""
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.SparkContext._active_spark_context


def discard_broken_spark(code: int) -> bool:
    """End a Spark that the next command cannot use; returns whether there was one.

    After Ctrl-C in a call to the JVM, the answer of that call would be read as that of the next one.

    :param code: the exit code of the last command.
    """
    context = running_spark()
    if context is None:
        return False
    from icemigrate.spark import gateway

    if code not in (ExitCode.INTERRUPTED, ExitCode.TERMINATED) and gateway.is_alive():
        return False
    gateway.discard_jvm()
    return True


@contextmanager
def one_warm_spark(on_restart: Callable[[], None]) -> Iterator[None]:
    """A block whose commands share one Spark, and get the settings that a new process would have.

    :param on_restart: called where Spark runs with other settings and is stopped.
    """
    from icemigrate.spark.session import restart_for_other_settings

    with restart_for_other_settings(on_restart):
        yield
