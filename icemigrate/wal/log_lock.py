"""The lock of a log: one process drains it at a time.

In a local folder it is a lock of the operating system, which ends with the process.  On a remote storage it
is a file in the folder ``lock``: each process writes a file of its own and then lists the folder.  Of two
processes that do so at once, at least one sees the other's file, so that no two can hold the lock.  It needs
no conditional write, which not all storages have.  The holder writes its file again and again; one that was
not written for :data:`LEASE_SECONDS`, by the clock of the storage, belongs to a process that ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from icemigrate.system.process_identity import has_ended, process_identity
from icemigrate.wal.log_folder import LogError, unreadable_log
from icemigrate.wal.storage_path import AnyPath, StoragePath, StoredFile

LEASE_SECONDS = 60.0
"""How long a lock is valid after its holder wrote it."""
_RENEW_SECONDS = 15.0
_LOST_SECONDS = 45.0
"""A holder that could not write its lock for this time stops, before another process can take it over."""
_LATE_SECONDS = 55.0
"""A lock that is written again after this time may have another holder already."""
_POLL_SECONDS = 2.0
_ATTEMPTS = 8
_FOLDER = "lock"


class LogLock:
    """A lock that this process holds, until another one took it over."""

    def require_held(self) -> None:
        """Check that no other process can have the lock.

        :raises LogError: it can.
        """


class _StorageLock(LogLock):
    """A file that a thread writes again and again."""

    def __init__(self, log: StoragePath) -> None:
        self._log, self._path = log, log / _FOLDER / uuid4().hex
        self._renewed, self._is_lost = _now(), False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="icemigrate-log-lock", daemon=True)

    def require_held(self) -> None:
        if self._is_lost or _now() - self._renewed > _LOST_SECONDS:
            raise LogError(
                f"this process lost the lock of the log {self._log}",
                "run the command again: it repeats the batch",
            )

    def acquire(self) -> None:
        """Wait until the holder ended, or shows that it runs.

        :raises LogError: another process holds the lock, or the storage failed.
        """
        seen = dict[StoragePath, float]()
        until = _now() + LEASE_SECONDS
        for attempt in range(_ATTEMPTS):
            while (holders := self._holders(time_s=None)) and _now() < until:
                for one in holders:
                    if seen.setdefault(one.path, one.modified_s) != one.modified_s:
                        raise self._taken()
                time.sleep(_POLL_SECONDS)
            self._write()
            now = next((one.modified_s for one in self._files() if one.path == self._path), None)
            if now is not None and not self._holders(time_s=now):
                self._thread.start()
                return
            self._remove()
            # Two processes that began at once saw each other; by chance one of them is earlier next time.
            time.sleep(random.SystemRandom().uniform(0, 0.2 * (attempt + 1)))
        raise self._taken()

    def release(self) -> None:
        """Remove the file; a failure leaves it for its lease."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_RENEW_SECONDS)
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _holders(self, time_s: float | None) -> list[StoredFile]:
        """The files of other processes that may run.

        Those of processes that ended are removed.

        :param time_s: of the storage, in seconds since 1970; ``None`` for that of this machine.
        """
        now = time.time() if time_s is None else time_s
        holders = []
        for one in self._files():
            if one.path == self._path:
                continue
            # A clock of this machine that is ahead must not end a lease.
            is_old = time_s is not None and now - one.modified_s > LEASE_SECONDS
            if is_old or _is_of_ended_process(one.path):
                with suppress(OSError):
                    one.path.unlink(missing_ok=True)
            elif time_s is not None or now - one.modified_s <= LEASE_SECONDS:
                holders.append(one)
        return holders

    def _files(self) -> list[StoredFile]:
        try:
            return list(self._path.parent.files())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unreadable_log(self._log, error) from error

    def _write(self) -> None:
        began = _now()
        content = {"pid": os.getpid(), "process": process_identity()}
        try:
            self._path.write_bytes(json.dumps(content).encode())
        except OSError as error:
            raise LogError(
                f"the lock of the log {self._log} cannot be written: {error.strerror}",
                "check the right to write there",
            ) from error
        self._renewed = began

    def _renew(self) -> None:
        while not self._ended.wait(_RENEW_SECONDS):
            before = self._renewed
            with suppress(LogError):  # the storage may answer the next time
                # The file is not written where another process removed it.
                if _now() - before <= _LOST_SECONDS and self._is_there():
                    self._write()
                    if _now() - before <= _LATE_SECONDS:
                        continue
                self._is_lost = True
                return

    def _is_there(self) -> bool:
        return any(one.path == self._path for one in self._files())

    def _taken(self) -> LogError:
        return LogError(f"another process drains the log {self._log}", "wait for its end, or stop it")


@contextmanager
def lock_log(folder: AnyPath) -> Iterator[LogLock]:
    """Be the only process that drains a log, until the block ends.

    :raises LogError: another process does, or the folder cannot be read.
    """
    if isinstance(folder, StoragePath):
        _require_folder(folder)
        lock = _StorageLock(folder)
        lock.acquire()
        try:
            yield lock
        finally:
            lock.release()
        return
    with _local_lock(folder):
        yield LogLock()


@contextmanager
def _local_lock(folder: Path) -> Iterator[None]:
    try:
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable_log(folder, error) from error
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogError(
                f"another process drains the log {folder}", "wait for its end, or stop it"
            ) from None
        yield
    finally:
        os.close(number)


def _require_folder(folder: StoragePath) -> None:
    try:
        if folder.is_dir():
            return
    except OSError as error:
        raise unreadable_log(folder, error) from error
    raise LogError(f"the log {folder} does not exist", "give the folder that a writer of the log has")


def _is_of_ended_process(path: StoragePath) -> bool:
    """Whether the holder of a lock is known to have ended: it ran on this machine."""
    try:
        content = json.loads(path.read_bytes())
        return has_ended(int(content["pid"]), str(content["process"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _now() -> float:
    """Seconds of this machine, those of its sleep included."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
