"""What of a migration is done so far: told while it runs, numbered as its plan is, reported if it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from icemigrate.engine.publish import statement_text
from icemigrate.engine.telling import told
from icemigrate.events import (
    Event,
    FilesRewritten,
    Noted,
    StatementFinished,
    StatementStarted,
    TablePublished,
    TablePublishing,
    ValuesBroughtBack,
)
from icemigrate.executor.faults import Report
from icemigrate.frozen import replace
from icemigrate.model.names import TableName, format_path
from icemigrate.plan import MigrationPlan, Step
from icemigrate.plan_rows import RowsPart, When, running


@dataclass(slots=True)
class Account:
    """What one migration has done.

    :param catalog: the catalog's name in Spark SQL.
    :param on_event: told of every step.
    :param before_each: called before every statement and commit with what it is in words; may raise.
    :param is_redo: whether it is applied once more, after it was rolled back.
    :param at: what runs now, in words.
    :param brought_back: values that refills have brought back.
    """

    migration: MigrationPlan
    catalog: str
    on_event: Callable[[Event], None]
    before_each: Callable[[str], None]
    is_redo: bool
    project: str
    at: str = ""
    brought_back: list[ValuesBroughtBack] = field(default_factory=list)
    _todo: tuple[str, ...] = field(init=False)
    _place: int = 0
    _done: list[str] = field(default_factory=list)
    _copied: dict[int, str] = field(default_factory=dict)
    _number: int = 0

    def __post_init__(self) -> None:
        self._todo = statements(self.migration, self.catalog, self.project)

    @property
    def done(self) -> tuple[str, ...]:
        """What was run, in order."""
        return tuple(self._done)

    def report(self) -> Report:
        """How far it came."""
        left = [*self._todo]
        for text in (*self._done, self.at):
            if text in left:
                left.remove(text)
        return Report(
            self.migration.version,
            self.migration.direction,
            self.done,
            self.at,
            tuple(left),
            f"apply --redo {self.migration.version}" if self.is_redo else self.migration.direction.value,
            is_on_copy=bool(self._copied),
        )

    def hear(self, event: Event) -> None:
        """Keep account of what is done, and pass the event on, statements numbered within the migration."""
        if isinstance(event, StatementStarted):
            self._number = event.number
            # What runs again on a copy, and what came behind it, counts no more as it ran before.
            self._copied = {n: text for n, text in self._copied.items() if n < self._number}
            self.next(event.text)
            event = replace(event, number=self._numbered(event.text), of=len(self._todo))
        elif isinstance(event, StatementFinished):
            if event.on_copy:
                self._copied[self._number] = event.text
                self.before_each(event.text)  # what comes next may be the commit of them all
            else:
                self._done.append(event.text)
        elif isinstance(event, FilesRewritten):
            self.before_each(f"{self.at}; {event.left} of {event.of} files left")
        elif isinstance(event, ValuesBroughtBack):
            self.brought_back.append(event)
        elif isinstance(event, TablePublishing):
            self.next(f"the one commit of table `{event.table}`")
        elif isinstance(event, TablePublished):
            self._done += self._copied.values()
            self._copied.clear()
        self.on_event(event)

    def _numbered(self, text: str) -> int:
        """The number of a statement that runs, in the plan's order; one that runs again has its own again."""
        places = [at for at, todo in enumerate(self._todo, 1) if todo == text]
        self._place = next((at for at in places if at > self._place), places[0] if places else self._place)
        return self._place

    def next(self, text: str) -> None:
        """What runs from here on."""
        self.at = text
        self.before_each(text)

    def note(self, table: TableName | None, text: str) -> None:
        """Tell of something that people should know."""
        self.on_event(Noted(self.migration.version, table, text))

    def statement(self, text: str, table: TableName | None = None) -> AbstractContextManager[None]:
        """Tell of what is done within as of a statement.

        :param table: the one that it is about.
        """
        return told(self.hear, StatementStarted(self.migration.version, table, text, 1, 1))

    def forget_copies(self) -> None:
        """What ran on a copy came to nothing: there was nothing to commit."""
        self._copied.clear()


def statements(migration: MigrationPlan, catalog: str, project: str) -> tuple[str, ...]:
    """All its statements as text, in order.

    :param catalog: the catalog's name in Spark SQL.
    """
    parts = [*running(migration, catalog, project)]
    asked = [part for part in parts if isinstance(part, RowsPart) and part.when is When.FIRST]
    return (
        *(text for part in asked for text in _texts(part)),
        *(making_text(n) for n in migration.create_namespaces),
        *(text for part in parts[len(asked) :] for text in _texts(part)),
        *(dropping_text(n) for n in migration.drop_namespaces),
    )


def _texts(part: Step | RowsPart) -> Iterator[str]:
    if isinstance(part, Step):
        return map(statement_text, part.statements)
    return (statement.text for statement in part.statements)


def dropping_text(namespace: tuple[str, ...]) -> str:
    """How a namespace that goes is told."""
    return f"drop namespace {format_path(namespace)}"


def making_text(namespace: tuple[str, ...]) -> str:
    """How a namespace that comes is told."""
    return f"create namespace {format_path(namespace)}"
