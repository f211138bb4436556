"""Ctrl-C while Spark is starting ends a command in one line, whenever it comes; so does SIGTERM."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

COMMAND = """
import os
import sys

import py4j.clientserver
import pyspark.java_gateway
from icemigrate.cli import main

moment, number = sys.argv[1], int(sys.argv[2])
sent = []


def strike():
    if not sent:
        sent.append(number)
        os.kill(os.getpid(), number)


class Awaited:
    '''What an answer is read from; the signal comes when the call is with the JVM, before its answer.'''

    def __init__(self, stream):
        self.stream = stream

    def readline(self):
        strike()
        return self.stream.readline()

    def __getattr__(self, name):
        return getattr(self.stream, name)


class Time:
    '''The clock by which PySpark waits for the JVM.'''

    def sleep(self, seconds):
        strike()


send = py4j.clientserver.ClientServerConnection.send_command


def sending(self, command):
    if moment in command and not sent:
        self.stream = Awaited(self.stream)
    return send(self, command)


if moment == "launch":
    pyspark.java_gateway.time = Time()
else:
    py4j.clientserver.ClientServerConnection.send_command = sending
code = main(["apply", "--auto-approve"])
assert sent, "the moment has to come"
sys.exit(code)
"""
MOMENTS = {
    "before the JVM answers": "launch",
    "in the context": "JavaSparkContext",
    "in the session": "sql.classic.SparkSession",
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_ctrl_c_while_spark_is_starting_is_one_line(moment: str, tmp_path: Path) -> None:
    ran = interrupted(tmp_path, moment, signal.SIGINT)
    assert (ran.stderr, ran.returncode) == ("Starting Spark …\n\nInterrupted.\n", 130)


def test_sigterm_while_spark_is_starting_is_one_message(tmp_path: Path) -> None:
    ran = interrupted(tmp_path, "JavaSparkContext", signal.SIGTERM)
    assert ran.stderr == "Starting Spark …\nerror: stopped by SIGTERM\n"
    assert ran.returncode == 143


def interrupted(folder: Path, moment: str, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own that sends itself a signal, at a moment of Spark's start."""
    (folder / "migrations").mkdir()
    text = "tables: [{name: db.t, columns: [{name: id, type: long}]}]\n"
    (folder / "migrations" / "0001_make.yaml").write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND, moment, str(int(number))],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "(1 migration, 1 table)." in ran.stdout
    wait_until_nobody_works_in(folder)
    return ran


def wait_until_nobody_works_in(folder: Path, seconds: float = 30) -> None:
    """See that every process that was started in a folder has ended, the JVM included."""
    deadline = time.monotonic() + seconds
    while left := list(working_in(folder)):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.1)


def working_in(folder: Path) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is somebody else's
            if (process / "cwd").readlink() == folder:
                yield (process / "cmdline").read_text(errors="replace").replace("\0", " ")
