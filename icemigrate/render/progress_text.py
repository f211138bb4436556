"""The progress of a plan as text, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TextIO

from icemigrate.diagnostics import format_count
from icemigrate.events import (
    Event,
    FilesRewritten,
    MigrationRecorded,
    MigrationStarted,
    NoteAdded,
    SparkStarted,
    StatementFinished,
    StatementStarted,
    TablePublished,
    UndoFinished,
    UndoStarted,
)
from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact_secrets
from icemigrate.render import display
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.system.activity import hidden_activity

_WIDEST = 100


@dataclass(slots=True)
class ProgressWriter:
    """Writes one line for each statement: its text when it begins, its duration when it ends."""

    stream: TextIO
    style: TerminalStyle
    _is_open: bool = False
    _has_done: bool = False
    _is_copied: bool = False
    _number: str = ""

    def __call__(self, event: Event) -> None:
        """Write an event; events of no interest to a user are skipped."""
        if isinstance(event, SparkStarted):
            self._line(
                self.style.dim(f"Spark started in {display.elapsed_text(round(event.elapsed * 1000))}")
            )
        elif isinstance(event, MigrationStarted):
            self._has_done = self._is_copied = False
            number = self.style.dim(f"({event.number} of {event.of})")
            self._line(
                f"{self.style.bold(f'{event.version}  {display.one_line(event.description)}')} {number}"
            )
        elif isinstance(event, StatementStarted):
            self._number = f"[{event.number}/{event.of}]"
            on_copy = " (on a copy)" if event.on_copy else ""
            self._is_copied |= event.on_copy
            where = f"{event.table}{on_copy}: " if event.table else ""
            self._write(f"  {_cut(f'{self._number} {where}{event.text}')} ")
            self._is_open = self._has_done = True
        elif isinstance(event, StatementFinished):
            # A line that was written meanwhile has ended that of the statement.
            again = "" if self._is_open else f"  {self._number} "
            self._write(again + self.style.dim(display.elapsed_text(round(event.elapsed * 1000))) + "\n")
            self._is_open = False
        elif isinstance(event, TablePublished) and self._is_copied:
            self._is_copied = False  # a commit of the marker alone is none that a user waits for
            took = self.style.dim(display.elapsed_text(round(event.elapsed * 1000)))
            what = f"{event.table}: all of it is" if event.tables == 1 else f"{event.tables} tables are"
            self._line(f"  {what} published in one commit {took}")
        elif isinstance(event, FilesRewritten):
            of = format_count(event.of, "file")
            self._line(self.style.dim(f"  {event.table}: {event.remaining:,} of {of} to rewrite"))
        elif isinstance(event, UndoStarted):
            self._line(f"  {self.style.bad('failed')}, undoing it: {_cut(event.reason)}")
        elif isinstance(event, UndoFinished):
            self._line(f"  {self.style.good('undone')}: no table was changed by {event.version}")
        elif isinstance(event, NoteAdded):
            where = f"{event.table}: " if event.table else ""
            self._line(self.style.dim(f"  note: {display.one_line(where + event.text)}"))
        elif isinstance(event, MigrationRecorded):
            verb = "done in" if self._has_done else "recorded in"
            self._line(f"  {self.style.good(verb)} {display.elapsed_text(round(event.elapsed * 1000))}")

    def close(self) -> None:
        """End a line that a failure left open."""
        if self._is_open:
            self._write("\n")
            self._is_open = False

    def _line(self, text: str) -> None:
        self.close()
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        shown = escaped_lines(redact_secrets(text), painted=self.style.colour)
        is_whole = shown.endswith("\n")
        with hidden_activity(0 if is_whole else len(shown), None if is_whole else self.close):
            self.stream.write(shown)
            self.stream.flush()


def _cut(text: str) -> str:
    line = display.one_line(text)
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
