"""What happens while a plan runs, line by line, for a person who waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TextIO

from icemigrate.events import (
    Event,
    FilesRewritten,
    LockAwaited,
    LockTakenOver,
    MigrationRecorded,
    MigrationStarted,
    Noted,
    StatementFinished,
    StatementStarted,
    UndoFinished,
    UndoStarted,
)
from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact
from icemigrate.render import words
from icemigrate.render.style import Style

_WIDEST = 100


@dataclass(slots=True)
class Progress:
    """Writes one line for each statement: what it is when it begins, how long it took when it ends."""

    stream: TextIO
    style: Style
    _is_open: bool = False
    _has_done: bool = False
    _number: str = ""

    def __call__(self, event: Event) -> None:
        """Tell of an event; those that say nothing to a person who waits are passed over."""
        if isinstance(event, MigrationStarted):
            self._has_done = False
            number = self.style.dim(f"({event.number} of {event.of})")
            self._line(f"{self.style.bold(f'{event.version}  {words.one_line(event.description)}')} {number}")
        elif isinstance(event, StatementStarted):
            self._number = f"[{event.number}/{event.of}]"
            where = f"{event.table}: " if event.table else ""
            self._write(f"  {_cut(f'{self._number} {where}{event.text}')} ")
            self._is_open = self._has_done = True
        elif isinstance(event, StatementFinished):
            # What was told meanwhile has ended the statement's line.
            again = "" if self._is_open else f"  {self._number} "
            self._write(again + self.style.dim(words.duration(round(event.elapsed * 1000))) + "\n")
            self._is_open = False
        elif isinstance(event, FilesRewritten):
            of = words.count(event.of, "file")
            self._line(self.style.dim(f"  {event.table}: {event.left} of {of} to rewrite"))
        elif isinstance(event, LockAwaited):
            self._line(f"Waiting for the lock, which is held by {words.one_line(event.holder)} …")
        elif isinstance(event, LockTakenOver):
            self._line(f"Took the lock over: nothing was heard any more of {words.one_line(event.holder)}.")
        elif isinstance(event, UndoStarted):
            self._line(f"  {self.style.bad('failed')}, what was done is undone: {_cut(event.reason)}")
        elif isinstance(event, UndoFinished):
            self._line(f"  {self.style.good('undone')}, every table is as it was before")
        elif isinstance(event, Noted):
            where = f"{event.table}: " if event.table else ""
            self._line(self.style.dim(f"  note: {words.one_line(where + event.text)}"))
        elif isinstance(event, MigrationRecorded):
            told = "done in" if self._has_done else "recorded in"
            self._line(f"  {self.style.good(told)} {words.duration(round(event.elapsed * 1000))}")

    def close(self) -> None:
        """End a line that a failure left open."""
        if self._is_open:
            self._write("\n")
            self._is_open = False

    def _line(self, text: str) -> None:
        self.close()
        self._write(text + "\n")

    def _write(self, text: str) -> None:
        self.stream.write(escaped_lines(redact(text), painted=self.style.colour))
        self.stream.flush()


def _cut(text: str) -> str:
    line = words.one_line(text)
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
