"""Whether a run of ``ingest`` works."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock


class RunHealth:
    """The state of a run, for the checks of a service manager.

    A run is live until it ends, and while batches complete or nothing waits.  It is ready from the start of
    its stream.

    :param limit_s: how long entries may wait without a batch that completes, in seconds.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s, self._clock = limit_s, clock
        self._lock = Lock()
        self._progress_s = clock()
        self._is_started = self._is_ended = False

    def start(self) -> None:
        """Record that the stream starts."""
        with self._lock:
            self._is_started, self._progress_s = True, self._clock()

    def progress(self) -> None:
        """Record that a batch is complete, or that nothing waits."""
        with self._lock:
            self._progress_s = self._clock()

    def end(self) -> None:
        """Record that the stream ended."""
        with self._lock:
            self._is_ended = True

    def problem(self) -> str | None:
        """Why the run does not work; ``None`` where it does."""
        with self._lock:
            if self._is_ended:
                return "the stream ended"
            waited_s = self._clock() - self._progress_s
            if waited_s > self._limit_s:
                return f"entries wait, and no batch is complete for {waited_s:.0f} s"
            return None

    def reason_not_ready(self) -> str | None:
        """Why the run drains nothing now; ``None`` where it does."""
        with self._lock:
            is_started = self._is_started
        return self.problem() if is_started else "Spark starts"
