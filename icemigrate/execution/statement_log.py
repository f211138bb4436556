"""The statements and notes of a run: announced, numbered as in the plan, and reported where one fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from icemigrate.events import (
    Event,
    FilesRewritten,
    NoteAdded,
    StatementFinished,
    StatementStarted,
    TablePublished,
    TablePublishing,
    ValuesRestored,
)
from icemigrate.execution.failures import FailureReport
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import ALTER_VERSION, RECONCILE_VERSION, MigrationPlan, Plan
from icemigrate.planning.stages import PlannedStatement, Stage
from icemigrate.spark.statement_events import announce_statement


class _Ran(Frozen):
    """A statement that ran; its number is 0 if the plan does not have it."""

    number: int
    text: str


@dataclass(slots=True)
class StatementLog:
    """The statements of one migration that ran.

    :param stages: the stages of the migration.
    :param on_event: called with every event.
    :param before_each: called before every statement and commit with its text; may raise.
    :param is_redo: whether it is applied again after a rollback.
    :param current: the text of the statement that runs.
    :param restored_values: values that refills have restored.
    """

    migration: MigrationPlan
    stages: Sequence[Stage]
    on_event: Callable[[Event], None]
    before_each: Callable[[str], None]
    is_redo: bool
    current: str = ""
    restored_values: list[ValuesRestored] = field(default_factory=list)
    _planned: Mapping[int, PlannedStatement] = field(init=False)
    _done: list[_Ran] = field(default_factory=list)
    _copied: dict[int, _Ran] = field(default_factory=dict)
    _number: int = 0
    _shown_number: int = 0

    def __post_init__(self) -> None:
        self._planned = {s.number: s for stage in self.stages for s in stage.statements()}

    @property
    def done(self) -> tuple[str, ...]:
        """The statements that ran, in order."""
        return tuple(ran.text for ran in self._done)

    def report(self) -> FailureReport:
        """The progress as a report."""
        ran = {self._number, *(one.number for one in self._done), *self._copied}
        # Each dropped table of a migration has this statement; after the first one, it has no effect.
        repeated = {text for text in self.done if text.startswith("CREATE NAMESPACE IF NOT EXISTS ")}
        return FailureReport(
            self.migration.version,
            self.migration.direction,
            self.done,
            self.current,
            tuple(s.text for n, s in self._planned.items() if n not in ran and s.text not in repeated),
            f"apply --redo {self.migration.version}" if self.is_redo else self.migration.direction.value,
            on_copy=tuple(ran.text for ran in self._copied.values()),
            failed_statement=self._planned.get(self._number),
        )

    def record_event(self, event: Event) -> None:
        """Record an event, and pass it on.

        The number of a statement is that of :class:`~icemigrate.planning.stages.PlannedStatement`; 0 if the
        plan does not have it, and then the event that is passed on repeats the number before.
        """
        if isinstance(event, StatementStarted):
            number = event.number
            # A statement that runs again on a copy, and those after it, are not counted twice.
            if self._copied and number <= next(reversed(self._copied)):
                self._copied = {n: ran for n, ran in self._copied.items() if n < number}
            self.start(event.text, number)
            self._shown_number = number or self._shown_number
            event = replace(event, number=self._shown_number, of=len(self._planned))
        elif isinstance(event, StatementFinished):
            ran = _Ran(self._number, event.text)
            if event.on_copy:
                self._copied[self._number] = ran
                self.before_each(event.text)  # the next event may be the commit of them all
            else:
                self._done.append(ran)
        elif isinstance(event, FilesRewritten):
            self.before_each(f"{self.current}; {event.remaining} of {event.of} files left")
        elif isinstance(event, ValuesRestored):
            self.restored_values.append(event)
        elif isinstance(event, TablePublishing):
            self.start(f"the commit of table `{event.table}`")
        elif isinstance(event, TablePublished):
            self._done += self._copied.values()
            self._copied.clear()
        self.on_event(event)

    def publisher_listener(self, first: int) -> Callable[[Event], None]:
        """The listener for a publisher, which numbers statements within the steps that it is given.

        :param first: the number of the first statement of these steps within the migration.
        """

        def listen(event: Event) -> None:
            if isinstance(event, StatementStarted):
                event = replace(event, number=first - 1 + event.number)
            self.record_event(event)

        return listen

    def start(self, text: str, number: int = 0) -> None:
        """Set what runs now, and report it.

        :param number: of a planned statement; 0 for anything else.
        """
        self.note_current(text, number)
        self.before_each(text)

    def note_current(self, text: str, number: int = 0) -> None:
        """Set what runs now, without a report."""
        self.current, self._number = text, number

    def note(self, table: TableName | None, text: str) -> None:
        """Announce a note."""
        self.on_event(NoteAdded(self.migration.version, table, text))

    def statement(
        self, text: str, table: TableName | None = None, number: int = 0
    ) -> AbstractContextManager[None]:
        """A block in which a statement runs.

        :param table: its name in the catalog; ``None`` for a namespace.
        :param number: see :meth:`start`.
        """
        return announce_statement(
            self.record_event, StatementStarted(self.migration.version, table, text, number, 1)
        )

    def forget_copies(self) -> None:
        """Remove statements that ran on a copy: there was no difference to commit."""
        self._copied.clear()


@dataclass(slots=True)
class NoteCollector:
    """Passes events on, and collects the notes among them.

    :param pass_on: called with every event.
    """

    pass_on: Callable[[Event], None]
    _heard: list[str] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Hear of an event."""
        if isinstance(event, NoteAdded):
            self._heard.append(_line(event.version, event.table, event.text))
        self.pass_on(event)

    @property
    def collected(self) -> tuple[str, ...]:
        """The collected notes."""
        return tuple(self._heard)


def plan_note_lines(plan: Plan) -> tuple[str, ...]:
    """The notes of a plan, each with its version and table."""
    tables = ((m.version, t) for m in plan.migrations for t in m.tables)
    return tuple(_line(version, table.name, note) for version, table in tables for note in table.notes)


def _line(version: str, table: TableName | None, text: str) -> str:
    # A plan without versions has none that users know.
    of = (None if version in (RECONCILE_VERSION, ALTER_VERSION) else version, table)
    return ": ".join([*(str(part) for part in of if part), text])
