"""Clients that are killed, paused, overtaken and continued at the steps that a scenario names."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread

from tests.crash.model.scenario import Blow
from tests.crash.world import Ended, World, ended


def conduct(
    world: World,
    args: tuple[str, ...],
    blows: tuple[Blow, ...],
    on_blow: Callable[[Blow], None],
    apply_with: str,
) -> tuple[Ended, list[Blow]]:
    """Run a command, and do to it what the scenario says.

    :param on_blow: is called while the process waits (of kind `foreign`) or is stopped (`pause`).
    :returns: how it ended, and the blows that it met.
    """
    if not blows:
        return world.run(*args, apply_with=apply_with), []
    folder = Path(mkdtemp(prefix="conductor"))
    path = folder / "socket"
    met: list[Blow] = []
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        listener.listen(8)
        process, order = world.start(*args, conductor=path, apply_with=apply_with)
        assert process.pid is not None
        lines = Thread(target=_listen, args=(listener, process.pid, blows, on_blow, met), daemon=True)
        lines.start()
        end = ended(process, order)
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        lines.join()
    path.unlink()
    folder.rmdir()
    return end, met


def _listen(
    listener: socket.socket,
    pid: int,
    blows: tuple[Blow, ...],
    on_blow: Callable[[Blow], None],
    met: list[Blow],
) -> None:
    """Answer each thread of the client on a line of its own."""
    threads = []
    with suppress(OSError):
        while True:
            line, _ = listener.accept()
            threads.append(Thread(target=_answer, args=(line, pid, blows, on_blow, met), daemon=True))
            threads[-1].start()
    for thread in threads:
        thread.join()


def _answer(
    line: socket.socket,
    pid: int,
    blows: tuple[Blow, ...],
    on_blow: Callable[[Blow], None],
    met: list[Blow],
) -> None:
    with suppress(OSError), closing(line), line.makefile("r") as events:  # the client may be gone
        wanted = [str(blow.at) for blow in blows if blow.by == "call"]
        line.sendall(" ".join(wanted or ["0"]).encode())
        for event in events:
            kind, number = event.split()
            for blow in blows:
                if (blow.by, blow.at) == (kind, int(number)) and blow not in met:
                    met.append(blow)
                    _strike(pid, blow, on_blow)
            line.sendall(b".")


def _strike(pid: int, blow: Blow, on_blow: Callable[[Blow], None]) -> None:
    if blow.kind == "kill":
        os.kill(pid, signal.SIGKILL)
    elif blow.kind == "pause":
        os.kill(pid, signal.SIGSTOP)
        try:
            on_blow(blow)
        finally:
            os.kill(pid, signal.SIGCONT)
    else:
        on_blow(blow)
