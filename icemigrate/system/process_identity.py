"""Whether a process still runs: its machine, its namespace and its start are compared, not only its number.

A process number alone proves nothing.  Another process may have it by now; on another machine or in another
container it belongs to another process.  So a process is named by the boot of its machine, its namespace of
processes, and the time at which it started, as Linux shows them in ``/proc``.  Elsewhere nothing is known.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_PROC = Path("/proc")
_GONE = frozenset({"Z", "X"})
"""States of a process that ended and whose parent did not ask for its outcome yet (``proc_pid_stat(5)``)."""


def process_identity(pid: int | None = None, proc: Path = _PROC) -> str:
    """The identity of a process among all processes; empty where the system does not show it.

    :param pid: the process; by default this one.
    """
    place, found = _place(proc), _state(os.getpid() if pid is None else pid, proc)
    return "" if place is None or found is None else f"{place} {found[1]}"


def has_ended(pid: int, identity: str, proc: Path = _PROC) -> bool:
    """Whether a process is known to have ended; false where that is unknown.

    :param identity: the result of :func:`process_identity` in that process.
    """
    place, _, start = identity.rpartition(" ")
    if not start or place != _place(proc):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it runs and belongs to another user
    found = _state(pid, proc)
    return found is not None and (found[0] in _GONE or found[1] != start)


def seconds_since_start(proc: Path = _PROC) -> float:
    """The age of this process; 0 where the system does not show it."""
    found = _state(os.getpid(), proc)
    if found is None or not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(found[1]) / os.sysconf("SC_CLK_TCK")


def _place(proc: Path) -> str | None:
    """The boot of this machine and this process's namespace of processes."""
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {(proc / 'self/ns/pid').readlink()}"
    except (OSError, ValueError):
        return None


def _state(pid: int, proc: Path) -> tuple[str, str] | None:
    """The state of a process and its start, in ticks since the boot."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in brackets, which may hold blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else None
