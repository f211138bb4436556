"""The command line in a process of its own that may be hit on its way; a JVM that it uses outlives it.

Where it is hit is counted in changes of the catalog, as the database itself tells them: between two of them
the world is the same whenever a process ends.  Nothing in the product knows of this.
"""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

# Whoever is forked from here has imported it all.
import pyarrow  # type: ignore[import-untyped]  # noqa: F401
import pyiceberg.catalog.sql  # noqa: F401
import pyspark.sql
from py4j.clientserver import JavaClient

import icemigrate.cli.apply
import icemigrate.cli.plan
import icemigrate.cli.rollback
import icemigrate.cli.unlock
import icemigrate.commands.apply
import icemigrate.commands.rollback
import icemigrate.execution
import icemigrate.execution.fencing
import icemigrate.render.formats
import icemigrate.render.progress_text
import icemigrate.spark.publish_atomic
import icemigrate.spark.session
import icemigrate.spark.spark_engine
from icemigrate.cli import main
from icemigrate.cli.invocation import InvocationOptions
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.sqlite_store import SqliteDatabase

if TYPE_CHECKING:
    from threading import Barrier

    from icemigrate.project import Project
    from icemigrate.project.project_values import ApplyWith

_CALLS = (
    (JavaClient, "send_command"),
    *((SqliteDatabase, "read"), (SqliteDatabase, "write")),
    *((TableFiles, "write"), (TableFiles, "delete")),
)
"""What an engine does to a catalog goes through one of these."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where the JVM listens."""

    port: int
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Blow:
    """What happens to the process on its way.

    :param after: the number of changes of the catalog that it has seen by then; 0 for the first call to an
        engine's catalog.
    :param signal: that it sends to itself, unless there is a command.
    :param command: of the shell, run once.
    :param at_lease: count looks at the lock right before a change instead of changes: the blow comes behind
        the look, and before the change.
    """

    after: int
    signal: signal.Signals = signal.SIGKILL
    command: str = ""
    at_lease: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """What a client shall do.

    :param folder: of the project; ``out``, ``err`` and ``code`` are made beside it under ``name``.
    :param database: of the catalog.
    :param conductor: a Unix socket that gets a line for each change of the catalog and each call
        (``change 3``, ``call 17``); the process goes on when a byte comes back.  A call is one to the JVM, or
        one to the catalog or the files of tables in Python.
    :param apply_with: what commits metadata: ``spark``, ``auto`` or ``metadata``.
    """

    folder: Path
    database: Path
    gateway: Gateway
    args: tuple[str, ...]
    name: str = "client"
    environment: Mapping[str, str] = field(default_factory=dict)
    blow: Blow | None = None
    conductor: Path | None = None
    apply_with: str = "spark"

    @property
    def out(self) -> Path:
        """What it wrote to standard output."""
        return self.folder / f"{self.name}.out"

    @property
    def code(self) -> Path:
        """The exit code that it ends with, where it comes so far."""
        return self.folder / f"{self.name}.code"

    @property
    def err(self) -> Path:
        """What it wrote to standard error."""
        return self.folder / f"{self.name}.err"


def run(order: Order, barrier: Barrier | None = None) -> None:
    """Do it, and end with its exit code."""
    os.chdir(order.folder)
    os.environ.update(order.environment)
    # As a shell starts a program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for stream, path in ((1, order.out), (2, order.err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _apply_with(order.apply_with)
    if order.apply_with == "spark":
        _attach(order.gateway)
    else:
        _attach_late(order.gateway, is_allowed=order.apply_with == "auto" or "maintain" in order.args)
    if barrier is not None:
        barrier.wait()
    if order.blow is not None and order.blow.at_lease:
        _watch_lease(_striking(order.blow))
    elif order.blow is not None:
        _watch(order.database, _striking(order.blow))
    if order.conductor is not None:
        report = _reporting(order.conductor)
        _watch(order.database, lambda n: report("change", n), lambda n: report("call", n))
    code = main(order.args)
    sys.stdout.flush()
    sys.stderr.flush()
    order.code.write_text(str(int(code)), encoding="utf-8")
    os._exit(code)


def _attach(gateway: Gateway) -> None:
    """Make the JVM's running Spark the one of this process."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.secret
    java = launch_gateway()  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=java)
    context = java.jvm.org.apache.spark.SparkContext.getOrCreate()
    running = java.jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(context)
    SparkContext(gateway=java, jsc=running, conf=SparkConf(_jconf=running.getConf()))


def _apply_with(chosen: str) -> None:
    """Commit so in every command: some have an option, the others read the project file."""
    os.environ["ICEMIGRATE_APPLY_WITH"] = chosen
    open_project = InvocationOptions.open_project

    def opened(self: InvocationOptions) -> Project:
        return replace(open_project(self), apply_with=cast("ApplyWith", chosen))

    InvocationOptions.open_project = opened  # type: ignore[method-assign]


def _attach_late(gateway: Gateway, *, is_allowed: bool) -> None:
    """Make the JVM's running Spark the one of this process when Spark starts."""
    start_spark = icemigrate.spark.session.start_spark

    def start(settings: Any) -> Any:
        assert is_allowed, "`apply_with: metadata` starts Spark"
        if pyspark.SparkContext._active_spark_context is None:
            _attach(gateway)
        return start_spark(settings)

    icemigrate.spark.session.start_spark = start


def _striking(blow: Blow) -> Callable[[int], None]:
    def strike(changes: int) -> None:
        if changes != blow.after:
            return
        if blow.command:
            subprocess.run(blow.command, shell=True, check=False)
        else:
            os.kill(os.getpid(), blow.signal)

    return strike


def _watch_lease(on_look: Callable[[int], None]) -> None:
    """Count the looks at the lock that the guard of commits and statements takes.

    :param on_look: given how many there were, behind each.
    """
    guard_of = icemigrate.execution.fencing._guard
    looks = 0

    def counting(*args: Any) -> Any:
        guard = guard_of(*args)

        def require() -> None:
            nonlocal looks
            guard.require()
            looks += 1
            on_look(looks)

        return type(guard)(guard.project, guard.history, guard.epoch, require, guard.run)

    icemigrate.execution.fencing._guard = counting


def _reporting(conductor: Path) -> Callable[[str, int], None]:
    def connection() -> tuple[socket.socket, set[int]]:
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(conductor))
        return line, {int(number) for number in line.recv(4096).split()}

    own = threading.local()
    _, wanted = connection()

    def report(kind: str, number: int) -> None:
        if kind == "change" or number in wanted:
            # While one thread waits for its answer the others go on, as those that renew the lock do.
            if not hasattr(own, "line"):
                own.line, _ = connection()
            own.line.sendall(f"{kind} {number}\n".encode())
            own.line.recv(1)

    return report


def _watch(
    database: Path, on_change: Callable[[int], None], on_call: Callable[[int], None] = lambda number: None
) -> None:
    """Look at the catalog after every call, from whatever thread.

    :param on_change: gets the number of changes so far, at the first call and when there was one.
    :param on_call: gets the number of calls so far, after each.
    """
    connection = sqlite3.connect(database, timeout=60, check_same_thread=False)
    mutex = threading.RLock()

    def version() -> int:
        return int(connection.execute("PRAGMA data_version").fetchone()[0])

    seen, changes, calls = version(), -1, 0

    def watched(act: Callable[..., Any]) -> Callable[..., Any]:
        def act_and_look(*args: Any, **named: Any) -> Any:
            nonlocal seen, changes, calls
            answer = act(*args, **named)
            with mutex:
                now, calls, number = version(), calls + 1, calls + 1
                change = now != seen or changes < 0
                if change:
                    seen, changes = now, changes + 1
                at = changes
            if change:
                on_change(at)
            on_call(number)
            return answer

        return act_and_look

    for owner, name in _CALLS:
        setattr(owner, name, watched(getattr(owner, name)))
