"""Whether Spark's JVM has ended: one answer for every exception that its end may show itself by.

Py4J raises ``Py4JNetworkError``, a plain ``Py4JError`` ("Answer from Java side is empty"), or the error of
the socket.  PySpark and code that reads an answer raise what an empty answer leads to (``TypeError``,
``AttributeError``, ``AssertionError`` …).  A JVM that is going down may still answer that Spark was stopped.
So the process itself, or the port that it listens on, is asked.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from icemigrate.debugging import DEBUG_VARIABLE
from icemigrate.errors import EngineError, IcemigrateError

_GOING_DOWN_S = 3.0
"""How long a JVM that gave no answer may take until its process has ended."""
_STOPPED = ("stopped SparkContext", "SparkContext was shut down", "SparkContext has been shutdown")


def ended_fault(error: BaseException) -> EngineError | None:
    """The fault that an error is, where it comes from the end of the JVM; ``None`` where it does not."""
    if "py4j" not in sys.modules or isinstance(error, IcemigrateError):
        return None
    if _is_lost(error) or not _is_alive(waits=_is_unanswered(error)):
        return EngineError("Spark's JVM has ended", f"{DEBUG_VARIABLE}=1 shows what it prints")
    if _is_stopped(error):
        return EngineError("Spark was stopped while it was needed", "run the command again")
    return None


@contextmanager
def faults_of_jvm() -> Iterator[None]:
    """A block in which whatever the end of the JVM leads to is raised as :class:`EngineError`."""
    try:
        yield
    except Exception as error:
        fault = ended_fault(error)
        if fault is None:
            raise
        raise fault from error


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _is_lost(error: BaseException) -> bool:
    """Whether the connection to the JVM was refused or broke off."""
    return isinstance(error, ConnectionError) or any(
        type(one).__name__ == "Py4JNetworkError" for one in _chain(error)
    )


def _is_unanswered(error: BaseException) -> bool:
    return any(type(one).__name__ == "Py4JError" for one in _chain(error))


def _is_stopped(error: BaseException) -> bool:
    text = ""
    with suppress(Exception):  # an error of Java asks the JVM for its text
        text = str(error)
    return any(words in text for words in _STOPPED)


def _is_alive(waits: bool) -> bool:
    """Whether the JVM runs, as far as anything tells.

    :param waits: whether its process may be about to end.
    """
    pyspark = sys.modules.get("pyspark")
    gateway = None if pyspark is None else pyspark.SparkContext._gateway
    if gateway is None:
        return True  # there is none that could have ended
    process = getattr(gateway, "proc", None)
    if process is None:
        return _listens(gateway)
    if waits:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_GOING_DOWN_S)
    return process.poll() is None


def _listens(gateway: Any) -> bool:
    parameters = gateway.gateway_parameters
    try:
        with socket.create_connection((parameters.address, parameters.port), timeout=_GOING_DOWN_S):
            return True
    except OSError:
        return False
