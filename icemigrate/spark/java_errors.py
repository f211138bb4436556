"""Errors of Java, Spark and an exited JVM as one sentence, and retries after commit conflicts.

Py4J raises ``Py4JNetworkError``, a plain ``Py4JError`` ("Answer from Java side is empty"), or the error of
the socket.  PySpark and code that reads an answer raise what an empty answer leads to (``TypeError``,
``AttributeError``, ``AssertionError`` …).  A JVM that is going down may still answer that Spark was stopped.
So the process itself, or the port that it listens on, is asked.

A failed statement arrives as hundreds of lines of stack trace, of which the message of the innermost cause is
what the user can act on.
"""

from __future__ import annotations

import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from icemigrate.errors import EngineError, IcemigrateError, MetadataError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.spark.task_errors import carried_error
from icemigrate.system.process import DEBUG_VARIABLE

_GOING_DOWN_S = 3.0
"""How long a JVM that gave no answer may take until its process has ended."""
_STOPPED = ("stopped SparkContext", "SparkContext was shut down", "SparkContext has been shutdown")


def jvm_exit_error(error: BaseException) -> EngineError | None:
    """The error for an exception that the end of the JVM caused; ``None`` for other exceptions."""
    if "py4j" not in sys.modules or isinstance(error, IcemigrateError):
        return None
    if _is_lost(error) or not _is_alive(waits=_is_unanswered(error)):
        return EngineError("Spark's JVM exited", f"set {DEBUG_VARIABLE}=1 to see its output")
    if _is_stopped(error):
        return EngineError("Spark stopped while the command was running", "run the command again")
    return None


@contextmanager
def convert_jvm_exit_errors() -> Iterator[None]:
    """A block in which any exception caused by the end of the JVM is raised as :class:`EngineError`."""
    try:
        yield
    except Exception as error:
        fault = jvm_exit_error(error)
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
    with suppress(Exception):  # a Java error reads its text from the JVM
        text = str(error)
    return any(words in text for words in _STOPPED)


def _is_alive(waits: bool) -> bool:
    """Whether the JVM runs, as far as the process and the port show.

    :param waits: whether its process may be about to end.
    """
    pyspark = sys.modules.get("pyspark")
    gateway = None if pyspark is None else pyspark.SparkContext._gateway
    if gateway is None:
        return True  # no JVM was started
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


NEWER_ROWS = re.compile(r"first-row-id.* is behind table next-row-id|add snapshot with sequence number")
"""Messages of servers about a snapshot that was created before another writer committed rows."""
_COMMIT_CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException"
_STATE_UNKNOWN = "org.apache.iceberg.exceptions.CommitStateUnknownException"
_TIMEOUTS = frozenset(
    {
        "java.net.SocketTimeoutException",
        "java.net.http.HttpTimeoutException",
        "java.sql.SQLTimeoutException",
        "org.apache.hc.client5.http.ConnectTimeoutException",
    }
)
_TIMED_OUT = re.compile(r"^(?:Read|Connection|connect)\b[\w ]* timed out|due to statement timeout", re.I)
_PUFFIN, _FORBIDDEN = "org.apache.iceberg.puffin.PuffinWriter", "Status Code: 403"
"""The stack of a Spark task is a text.  SeaweedFS's table buckets, for one, check the names of files."""
_NULL_POINTER = "java.lang.NullPointerException"
_NO_SUCH_FIELD = '"org.apache.iceberg.Schema.findField(String)" is null'
"""Iceberg 1.12's message (:mod:`icemigrate.iceberg.validation.table_rules`)."""


_PYTHON_ERROR = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+((?:\w+\.)*\w+)(?:: (.+))?$", re.M
)
"""The end of a stack of Python in a Spark task: the class of the error, and the first line of its text."""


class JavaCause(Frozen):
    """One exception of a chain.

    :param kind: its full class name, e.g. ``org.sqlite.SQLiteException``.
    :param message: its message, or an empty string.
    """

    kind: str
    message: str


def cause_chain(error: BaseException) -> tuple[JavaCause, ...]:
    """The chain of an exception, outermost first: Java's where it came from a JVM, otherwise the exception
    itself.
    """
    java_error = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    chain: list[JavaCause] = []
    while java_error is not None and len(chain) < 20:
        chain.append(JavaCause(java_error.getClass().getName(), java_error.getMessage() or ""))
        java_error = java_error.getCause()
    chain = chain or list(_causes_on_server(error))
    if chain:
        return tuple(chain)
    return (JavaCause(f"{type(error).__module__}.{type(error).__qualname__}", str(error)),)


_SERVER_CAUSE = re.compile(r"^(?:Caused by: )?((?:[a-z_]\w*\.)+[A-Z][\w$]*)(?:: (.*))?$", re.M)


def _causes_on_server(error: BaseException) -> Iterator[JavaCause]:
    """The chain of an exception of Spark Connect, from the stack trace of the server."""
    message, trace = getattr(error, "_message", None), getattr(error, "_stacktrace", None)
    for at, found in enumerate(_SERVER_CAUSE.finditer(trace or "")):
        yield JavaCause(found[1], str(message) if at == 0 and message else found[2] or "")


def is_commit_conflict(error: BaseException) -> bool:
    """Whether another writer committed first, so that nothing was written and a retry is safe."""
    return any(c.kind == _COMMIT_CONFLICT or NEWER_ROWS.search(c.message) for c in cause_chain(error))


def is_state_unknown(error: BaseException) -> bool:
    """Whether a commit may or may not have succeeded, so that the table must be read first."""
    return any(cause.kind == _STATE_UNKNOWN for cause in cause_chain(error))


def to_engine_error(error: BaseException) -> EngineError:
    """The exception as one message: the first line of the innermost cause with a useful text."""
    if isinstance(error, EngineError):
        return error
    if (fault := jvm_exit_error(error)) is not None:
        return fault
    try:
        chain = cause_chain(error)
    except Exception as lost:  # the JVM ends while the reason for a failure is read from it
        fault = jvm_exit_error(lost)
        if fault is None:
            raise
        return fault
    if (in_task := _python_task_error(chain)) is not None:
        return in_task
    described = [cause for cause in chain if cause.message.strip()]
    message = spark_error_summary(described[-1].message) if described else chain[-1].kind
    if is_state_unknown(error):
        return EngineError(
            f"the catalog did not report whether the commit succeeded: {message}",
            "check the table with `icemigrate status` before you do anything else",
        )
    if any(cause.kind in _TIMEOUTS or _TIMED_OUT.search(cause.message) for cause in chain):
        return EngineError(
            f"the catalog or the storage did not respond to Spark in time: {message}",
            "check that it is running and reachable from this machine; or raise `timeout` of the "
            "environment's catalog",
        )
    if any(cause.kind == _NULL_POINTER and _NO_SUCH_FIELD in cause.message for cause in chain):
        return EngineError(
            "Spark cannot read a variant column that is not in the schema of the table's newest snapshot",
            "append zero rows to the table first: `INSERT INTO … SELECT * FROM … WHERE false`",
        )
    if any(_PUFFIN in cause.message and _FORBIDDEN in cause.message for cause in chain):
        return EngineError(
            "the storage rejects `.puffin` files, in which Iceberg stores the deletion vectors that "
            f"merge-on-read writes in format version 3: {message}"
        )
    if is_commit_conflict(error):
        return EngineError(f"another writer changed the table: {message}", "plan again")
    return EngineError(message)


def _python_task_error(chain: Sequence[JavaCause]) -> EngineError | None:
    """The error that Python code of a Spark task raised; ``None`` where the chain has none."""
    for cause in reversed(chain):
        if cause.kind.endswith("PythonException") and (found := _PYTHON_ERROR.findall(cause.message)):
            kind, text = found[-1]
            is_own = kind.startswith("icemigrate.") and text
            message = text if is_own else f"a task of Spark failed: {kind.rpartition('.')[2]}: {text}"
            return EngineError(message, "remove the cause, and run the command again")
    return None


def _error_of_task(error: BaseException) -> IcemigrateError | None:
    """The error that a task carried; ``None`` where there is none."""
    with suppress(Exception):  # the JVM may end while its text is read
        found = (carried_error(cause.message) for cause in cause_chain(error))
        return next((one for one in found if one is not None), None) or carried_error(str(error))
    return None


def _java_errors() -> tuple[type[Exception], ...]:
    """The classes of errors of Java, Spark and the connection; PySpark is not imported for them."""
    if "py4j" not in sys.modules:
        return (OSError,)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (Py4JError, PySparkException, OSError)


@contextmanager
def convert_java_errors() -> Iterator[None]:
    """Convert errors of Java and Spark to :class:`EngineError`, in one sentence; our own bugs stay as they
    are, and so do our own errors in tasks (:mod:`icemigrate.spark.task_errors`).
    """
    try:
        yield
    except _java_errors() as error:
        raise (_error_of_task(error) or to_engine_error(error)) from error
    except BadMetadata as error:
        raise MetadataError(f"cannot read a table's metadata: {error}") from error
    except Exception as error:
        fault = jvm_exit_error(error)
        if fault is None:
            raise
        raise fault from error


def start_failure(output: str) -> str | None:
    """Why a JVM ended while it started, from its output; ``None`` where that does not show it.

    :param output: the output of ``spark-submit`` and the JVM.
    """
    for pattern in (
        r"^Exception in thread .+?: (.+)$",
        r"^(Error: .+)$",
        r"^(.*(?:Permission denied|No such file or directory).*)$",
        r"(?:ERROR|FATAL) \w+: (.+)$",
    ):
        found = re.search(pattern, output, re.MULTILINE)
        if found:
            return found[1].strip()
    return None


def spark_error_summary(message: str) -> str:
    """The first line of Spark's message, without codes for Spark's developers."""
    line = message.strip().splitlines()[0].strip()
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", line)


TRIES = 20
"""The maximum number of attempts of a commit: two busy writers rarely interfere five times in a row."""

_Result = TypeVar("_Result")


def retry_on_conflict(
    act: Callable[[], _Result],
    longest_pause_s: float = 0,
    is_conflict: Callable[[BaseException], bool] = is_commit_conflict,
) -> _Result:
    """Retry an operation until no other writer commits between its read and its own commit.

    :param longest_pause_s: maximum random pause before the next attempt.
    :param is_conflict: whether an error is that of a commit which another one preceded.
    :raises Exception: an error of another kind, or that of the last attempt.
    """
    for _ in range(TRIES - 1):
        try:
            return act()
        except Exception as error:  # identified by its Java cause
            if not is_conflict(error):
                raise
        time.sleep(random.uniform(0, longest_pause_s))  # noqa: S311 (nothing secret)
    return act()
