"""Keeps a lock alive while a statement runs for longer than its lease."""

from __future__ import annotations

from threading import Event, Thread

from icemigrate.errors import EngineError, IcemigrateError
from icemigrate.history.lock import QUIET_S, Lock

_PARTS = 4


class Heartbeat:
    """A thread that renews the lock until the block ends; it stops when the lock is lost."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._every_s = min(QUIET_S, lock.mine.lease_s / _PARTS)
        self._done = Event()
        self._thread = Thread(target=self._run, name="icemigrate-heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._every_s):
            try:
                self._lock.beat()
            except EngineError:
                continue  # the catalog did not answer; the lease says how long that may go on
            except IcemigrateError:
                return  # it is lost: the next step of the one who holds it will say so
