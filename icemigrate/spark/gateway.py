"""The JVM that Spark runs in: launched, silenced, interrupted safely, and ended.

:func:`pyspark.java_gateway.launch_gateway` launches it, for three reasons: its output can be kept away from
    the user's terminal and read when it fails, it gets the Java that was found, and the catalog's secrets are
    sent over the socket and not as its command line, which all users can read.

An exception from a signal handler interrupts the call that Python waits for.  Its answer is then read as that
of the next call, which PySpark makes at once in its clean-up; and Spark's context stays half created, so that
no other one can be created.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any, TypeAlias

from icemigrate.spark.find_java import JavaInstallation
from icemigrate.spark.jars import spark_home
from icemigrate.system.process import is_debugging, search_path

# Settings that the JVM needs before it runs, so they must be on its command line.
_LAUNCH_KEYS = ("spark.master", "spark.driver.", "spark.jars", "spark.submit.", "spark.local.dir")


class _JvmArguments(dict[str, Any]):
    """Arguments of ``Popen``, to which PySpark adds its own: a JVM that only this process ends.

    It ends when its standard input does.  A signal to all processes of a service or a terminal would end it
    in the middle of what this process still completes.  Java ignores a signal that is ignored at its start.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        def before_java() -> None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            value()

        super().__setitem__(name, before_java if name == "preexec_fn" else value)


def launch_jvm(
    conf: Mapping[str, str], found: JavaInstallation, is_local: bool, output: IO[bytes] | None
) -> Any:
    """Launch the JVM; returns Py4J's gateway to it.

    :param conf: all of Spark's settings; the JVM gets those that it needs before it runs.
    :param output: see :func:`output_of_jvm`.
    """
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    needed = SparkConf(loadDefaults=False)
    for key, value in conf.items():
        if key.startswith(_LAUNCH_KEYS):
            needed.set(key, value)
    # Standard output belongs to icemigrate: output of the JVM goes to standard error at most.
    streams = _JvmArguments({"stdout": output or 2, "stderr": output or 2, "start_new_session": True})
    ours = {
        "JAVA_HOME": str(found.home),
        "SPARK_LOCAL_IP": "127.0.0.1" if is_local else None,
        # PySpark uses the folder above the working directory as Spark's own if it has `bin/spark-submit`.
        "SPARK_HOME": spark_home(os.environ),
        # Spark and Hadoop start `bash`, `chmod` and others by their names.
        "PATH": search_path(),
    }
    with _environment(**ours):
        try:
            return launch_gateway(conf=needed, popen_kwargs=streams)  # type: ignore[no-untyped-call]
        except BaseException as stopped:
            _end_awaited(stopped)
            raise


def _end_awaited(stopped: BaseException) -> None:
    """End the JVM that PySpark was waiting for.

    PySpark removes the folder in which the JVM reports its port, and the JVM would wait for ever.  Only the
    interrupted call knows the process.
    """
    for frame, _ in traceback.walk_tb(stopped.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            process.kill()


@contextmanager
def _environment(**values: str | None) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update({key: value for key, value in values.items() if value is not None})
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


_LOOKED_UP_EACH_TIME = ("PythonUtils", "py4j.reflection.TypeUtil")


def cache_lookups(view: Any) -> None:
    """Keep what PySpark looks up for each statement and, a dozen times, for each error of Java.

    Py4J asks the JVM about each part of a name whenever it is written, and the JVM looks for a class of that
    name in all jars.  A table that does not exist is such an error.

    :param view: Py4J's view of the JVM; it gets the parts of the names as attributes.
    """
    for name in _LOOKED_UP_EACH_TIME:
        at = view
        for part in name.split("."):
            found = getattr(at, part)
            setattr(at, part, found)
            at = found


def stop_jvm(seconds: float = 30) -> None:
    """End the JVM, if there is one: PySpark would reuse it, and its class path, for the next context."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    end_jvm(gateway, seconds)
    SparkContext._gateway = None
    SparkContext._jvm = None


def end_jvm(gateway: Any, seconds: float = 30) -> None:
    """End the JVM of a gateway."""
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        process.wait(timeout=seconds)


def is_alive() -> bool:
    """Whether the JVM of PySpark's gateway runs; one that another process started counts as running."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is None or process.poll() is None


def discard_jvm() -> None:
    """End the JVM in any state, and clear PySpark's references to it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with suppress(Exception):
        stop_jvm()
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


@contextmanager
def output_of_jvm() -> Iterator[IO[bytes] | None]:
    """Where the JVM writes: a file without a name, or the terminal (``None``) while debugging."""
    if is_debugging():
        yield None
    else:
        # The JVM still writes to it after it is closed here; it is gone when the JVM is.
        with tempfile.TemporaryFile() as output:
            yield output


def text_of(output: IO[bytes] | None) -> str:
    """The output of the JVM up to now."""
    if output is None:
        return ""
    output.seek(0)
    return output.read().decode("utf-8", errors="replace")


def silence_logging() -> None:
    """Keep PySpark from logging errors that are reported anyway.

    PySpark 4 also logs every failed statement to standard error, with the JVM's whole stack trace; and Py4J
    logs every call that Ctrl-C or the JVM's end interrupted, with Python's, in part through the root logger.
    """
    if not is_debugging():
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


_Handler: TypeAlias = "Callable[[int, FrameType | None], Any]"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class DeferredSignals:
    """Signals that are recorded and delivered later.

    :param end: makes the pending call fail soon, so that Ctrl-C does not wait for it.
    :param handlers: of the deferred signals, from before.
    :param heard: the signal that arrived, if any.
    """

    end: Callable[[], object]
    handlers: dict[int, _Handler] = field(default_factory=dict)
    heard: int | None = None

    def hold(self) -> None:
        """Defer signals; called again after other code has set a handler."""
        for number in self.handlers:
            signal.signal(number, self._note)

    def let_go(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def deliver(self) -> None:
        """Call the handler of the signal that arrived, which usually raises."""
        if self.heard is not None:
            self.handlers[self.heard](self.heard, None)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.heard = number
        self.end()


@contextmanager
def defer_signals(end: Callable[[], object]) -> Iterator[DeferredSignals]:
    """A block in which signals are deferred; they are delivered after it, however it ended.

    The previous handlers are active again then, and not the one that PySpark sets for Ctrl-C, which calls the
    JVM in the middle of another call.  Signals without a handler in Python, or that are ignored, stay as they
    are; they arrive in the main thread only.

    :param end: see :class:`DeferredSignals`.
    """
    held = DeferredSignals(end)
    if threading.current_thread() is threading.main_thread():
        found = ((number, signal.getsignal(number)) for number in _SIGNALS)
        held.handlers = {number: handler for number, handler in found if callable(handler)}
    held.hold()
    try:
        yield held
    finally:
        held.let_go()
        held.deliver()
