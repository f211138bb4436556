"""Processes that a test kills while they drain a log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SECONDS_OF_A_RUN = 600
"""How long a run may take until its first batch, on a busy machine."""


def start_process(*arguments: str) -> subprocess.Popen[str]:
    """A process of Python in a group of its own; its output is kept."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill_process(process: subprocess.Popen[str], *, is_whole_group: bool) -> None:
    """Kill a process alone, so that its JVM notices it, or all processes that it started at once."""
    with suppress(ProcessLookupError):
        if is_whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def output_of(process: subprocess.Popen[str]) -> str:
    """What a process wrote until it ended."""
    return process.stdout.read() if process.stdout is not None else ""


def wait_for_batch(batches: Callable[[], Collection[str]], ingest: subprocess.Popen[str]) -> bool:
    """Whether a batch begins while the process runs.

    :param batches: the names of the batches that the checkpoint has.
    """
    end, before = time.monotonic() + _SECONDS_OF_A_RUN, batches()
    while time.monotonic() < end and ingest.poll() is None:
        if batches() != before:
            return True
        time.sleep(0.1)
    return False
