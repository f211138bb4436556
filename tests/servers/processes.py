"""Processes that a test run starts and that never outlive it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

START_SECONDS = 150.0
"""How long a server may take until it answers; most take two or three seconds, Trino half a minute."""
_STOP_SECONDS = 15.0


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on.

    They are held together until all are known, so that no two are the same; another program could take one
    before the server does, which then says so in its log.
    """
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


@contextmanager
def running(
    command: Sequence[str | Path],
    log: Path,
    answers: Callable[[], bool],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[int]:
    """The process id of a server, from its first answer until the block ends, however it ends.

    :param answers: whether it serves by now; what it raises while nothing listens counts as no.
    :param log: where it writes; its end is shown when it does not start.
    :param stop_signal: ends it in order; after fifteen seconds its whole group is killed.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*_dying_with_us(), *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )
    try:
        _wait(process, answers, log)
        yield process.pid
    finally:
        _end(process, stop_signal)


def run_to_end(command: Sequence[str | Path], folder: Path, seconds: float) -> None:
    """Run a program that ends by itself.

    :raises RuntimeError: it failed; with what it wrote.
    """
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command!r} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def as_user(name: str) -> list[str]:
    """The words that run a command as another user, for a server that refuses to run as root."""
    program = shutil.which("setpriv")
    assert program is not None, "`setpriv` of the Debian package util-linux is needed to leave root"
    return [program, f"--reuid={name}", f"--regid={name}", "--init-groups"]


def _dying_with_us() -> list[str]:
    # A killed test run can tidy nothing up: on Linux the kernel ends its servers.
    program = shutil.which("setpriv") if sys.platform == "linux" else None
    return [program, "--pdeathsig=KILL"] if program else []


def _wait(process: subprocess.Popen[bytes], answers: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError):
            if answers():
                return
        time.sleep(0.1)
    what = "ended" if process.poll() is not None else f"did not answer within {START_SECONDS:.0f} s"
    told = log.read_text(encoding="utf-8", errors="replace")[-3000:]
    raise RuntimeError(f"{process.args!r} {what}; it wrote:\n{told}")


def _end(process: subprocess.Popen[bytes], stop_signal: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(stop_signal)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_STOP_SECONDS)
