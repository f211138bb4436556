"""Servers that outlive the command that starts them; each has a log and a file with its process id."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from infra.lake import HOST, InfraError

START_SECONDS = 90.0
"""The longest wait for a server's first answer."""
_STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Server:
    """One server of the lake.

    :param port: the port of 127.0.0.1 that it listens on.
    :param port_variable: the environment variable that chooses another port.
    :param answers: whether it serves requests now; an :class:`OSError` counts as no.
    :param stop_signal: asks it to end.
    """

    name: str
    folder: Path
    port: int
    port_variable: str
    command: Sequence[str | Path]
    answers: Callable[[], bool]
    environment: Mapping[str, str]
    stop_signal: signal.Signals = signal.SIGTERM

    @property
    def log(self) -> Path:
        """The file that it writes its output to."""
        return self.folder / f"{self.name}.log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def is_running(self) -> bool:
        """Whether the process that :meth:`start` started is alive."""
        return self._pid() is not None

    def start(self) -> bool:
        """Start it and wait until it answers; `False` where it runs already.

        :raises InfraError: its port is taken, it ended, or it did not answer in time.
        """
        if self.is_running():
            return False
        if _is_taken(self.port):
            hint = f"stop that program, or choose another port: make init-infra {self.port_variable}=…"
            raise InfraError(
                f"another program listens on {HOST}:{self.port}, the port of {self.name}; {hint}"
            )
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [str(word) for word in self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                cwd=self.folder,
                start_new_session=True,
            )
        identity = {"pid": process.pid, "started": _start_time(process.pid)}
        self._pid_file.write_text(json.dumps(identity), encoding="utf-8")
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and process.poll() is None:
            with suppress(OSError):
                if self.answers():
                    return True
            time.sleep(0.1)
        problem = (
            "ended at once" if process.poll() is not None else f"did not answer in {START_SECONDS:.0f} s"
        )
        self.stop()
        written = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise InfraError(f"{self.name} {problem}; the end of its log {self.log}:\n{written}")

    def stop(self) -> bool:
        """Stop it; `False` where it does not run."""
        pid = self._pid()
        if pid is not None:
            _signal(pid, self.stop_signal)
            end = time.monotonic() + _STOP_SECONDS
            while time.monotonic() < end and self._pid() is not None:
                time.sleep(0.1)
            _signal(pid, signal.SIGKILL)
        self._pid_file.unlink(missing_ok=True)
        return pid is not None

    def _pid(self) -> int | None:
        # The start time tells the server from a later process with the same id.
        try:
            found = json.loads(self._pid_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        pid = int(found["pid"])
        with suppress(ChildProcessError):  # a server that this process started and that has ended
            os.waitpid(pid, os.WNOHANG)
        return pid if found["started"] and _start_time(pid) == found["started"] else None


def as_user(name: str) -> list[str]:
    """The words before a command that run it as another user, for a server that refuses to run as root.

    :raises InfraError: the program `setpriv` is missing.
    """
    program = shutil.which("setpriv")
    if program is None:
        raise InfraError("`setpriv` is missing: sudo apt-get install util-linux")
    return [program, f"--reuid={name}", f"--regid={name}", "--init-groups"]


def run_to_end(command: Sequence[str | Path], folder: Path, seconds: float) -> None:
    """Run a program and wait for its end.

    :raises InfraError: it failed; with the end of its output.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise InfraError(f"{words[0]} did not end within {seconds:.0f} s") from None
    if done.returncode != 0:
        raise InfraError(f"{words[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex((HOST, port)) == 0


def _start_time(pid: int) -> str:
    done = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout.strip()


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
