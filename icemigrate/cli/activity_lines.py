"""Shows what a command waits for on standard error: a spinner on a terminal, a line now and then elsewhere.

Own lines instead of rich, whose import takes 55 ms of CPU time, half of what a whole ``plan`` takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from threading import Condition, RLock, Thread
from typing import TYPE_CHECKING, TextIO

from icemigrate.hidden_characters import escaped_lines
from icemigrate.redaction import redact_secrets
from icemigrate.system.activity import Activity

if TYPE_CHECKING:
    from icemigrate.cli.invocation import InvocationOptions

SPINNER_DELAY_S, SPINNER_TICK_S = 0.3, 0.1
LINE_DELAY_S, LINE_INTERVAL_S = 3.0, 5.0
"""Without a terminal: an activity is shown after the first time, and no line sooner than the second after
another one."""
_IDLE_TICKS = 10
_LEAST_COLUMNS = 10
_ERASE = "\x1b[K"
_SAVE, _RESTORE = "\x1b7", "\x1b8"


def is_live(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


class ActivityLines:
    """See :class:`~icemigrate.system.activity.ActivityDisplay`.

    The cursor stays visible and where the next text begins, so an interrupt leaves at most one line to erase.

    :param live: whether the stream is a terminal.
    :param options: with ``--quiet`` or structured log lines nothing is shown, with ``--verbose`` also the
        duration of each activity.
    """

    def __init__(self, stream: TextIO, options: InvocationOptions, *, live: bool) -> None:
        self._stream, self._options, self._live = stream, options, live
        self._mutex = RLock()
        self._changed = Condition(self._mutex)
        self._activities: list[Activity] = []
        self._thread: Thread | None = None
        self._is_idle, self._is_closed = True, False
        self._is_drawn = False
        self._column = 0
        self._end_line: Callable[[], None] | None = None
        self._last_line, self._last_text = -LINE_INTERVAL_S, ""
        is_unicode = (getattr(stream, "encoding", None) or "").lower().startswith("utf")
        self._frames = cycle("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if is_unicode else "|/-\\")

    def begin(self, activity: Activity) -> None:
        """See :class:`~icemigrate.system.activity.ActivityDisplay`."""
        if self._options.quiet or self._options.log_format != "text":
            return
        with self._mutex:
            self._activities.append(activity)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="icemigrate-activities", daemon=True)
                self._thread.start()
            elif self._is_idle:
                self._changed.notify()

    def end(self, activity: Activity) -> None:
        """See :class:`~icemigrate.system.activity.ActivityDisplay`."""
        with self._mutex:
            if activity not in self._activities:
                return
            self._activities.remove(activity)
            self._erase()
        took = time.monotonic() - activity.began
        if self._options.verbose and took >= SPINNER_DELAY_S:
            text = activity.describe()
            with self._mutex:
                self._write_line(f"{text}: {took:.1f} s")

    @contextmanager
    def hidden(self, column: int, end_line: Callable[[], None] | None) -> Iterator[None]:
        """See :class:`~icemigrate.system.activity.ActivityDisplay`."""
        with self._mutex:
            self._erase()
            yield
            self._column, self._end_line = column, end_line

    def close(self) -> None:
        """Erase what is drawn, and end the thread; nothing is drawn any more."""
        with self._mutex:
            self._is_closed = True
            self._activities.clear()
            self._erase()
            self._changed.notify()

    def show(self, now: float) -> None:
        """Draw the spinner, or write the line that is due.

        :param now: on the monotonic clock.
        """
        with self._mutex:
            shown = self._activities[-1] if self._activities else None
        if shown is None or not self._is_due(shown, now):
            return
        text = shown.describe()  # not under the mutex: it may wait for a JVM
        with self._mutex:
            if not self._activities or self._activities[-1] is not shown:
                return
            if self._live:
                self._draw(text, now - shown.began)
            elif text != self._last_text:
                self._last_line, self._last_text = now, text
                self._write_line(f"{text} …")

    def _is_due(self, shown: Activity, now: float) -> bool:
        lasted = now - shown.began
        if self._live:
            return lasted >= SPINNER_DELAY_S
        return not shown.is_announced and lasted >= LINE_DELAY_S and now - self._last_line >= LINE_INTERVAL_S

    def _run(self) -> None:
        idle = 0
        tick = SPINNER_TICK_S if self._live else 1.0
        while True:
            with self._mutex:
                idle = 0 if self._activities else idle + 1
                self._is_idle = idle > _IDLE_TICKS
                self._changed.wait(None if self._is_idle else tick)
                if self._is_closed:
                    return
                if not self._activities:
                    continue
            with suppress(Exception):  # a description may ask a JVM that ends just now
                self.show(time.monotonic())

    def _draw(self, text: str, lasted: float) -> None:
        room = self._columns() - self._column - 1
        seconds = f" ({lasted:.0f} s)" if lasted >= 1 else ""
        line = f"{next(self._frames)} {'' if self._column else text}{seconds}"
        if room < _LEAST_COLUMNS:
            return
        self._write(f"{_SAVE}{_clean(line)[:room]}{_ERASE}{_RESTORE}")
        self._is_drawn = True

    def _erase(self) -> None:
        if self._is_drawn:
            self._write(_ERASE)
            self._is_drawn = False

    def _write_line(self, text: str) -> None:
        if self._end_line is not None:
            self._end_line()
        self._write(f"{_clean(text)}\n")

    def _write(self, text: str) -> None:
        # A closed or broken stream must not end the command.
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError, AttributeError):
            return 80


def _clean(text: str) -> str:
    return escaped_lines(redact_secrets(" ".join(text.split())))
