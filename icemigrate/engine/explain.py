"""From Java's errors to one sentence.

A failed statement arrives as hundreds of lines of stack trace, of which the message of the innermost cause is
what the user can act on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from icemigrate.engine.ended import ended_fault
from icemigrate.errors import EngineError, MetadataError
from icemigrate.frozen import Frozen
from icemigrate.model.json_form import BadMetadata

_ROWS_CAME = re.compile(r"first-row-id.* is behind table next-row-id|add snapshot with sequence number")
"""What servers say of a snapshot that was made before rows of somebody else were committed."""
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
"""A task of Spark tells its stack as a text.  SeaweedFS's table buckets, for one, go by the files' names."""
_NULL_POINTER = "java.lang.NullPointerException"
_NO_SUCH_FIELD = '"org.apache.iceberg.Schema.findField(String)" is null'
"""How Iceberg 1.12 says it (:mod:`icemigrate.model.legality.unread`)."""


class Cause(Frozen):
    """One exception of a chain.

    :param kind: its full class name, e.g. ``org.sqlite.SQLiteException``.
    :param message: its message, or an empty string.
    """

    kind: str
    message: str


def causes(error: BaseException) -> tuple[Cause, ...]:
    """The chain of an error, outermost first: Java's where it came from the JVM, else the error itself."""
    java_error = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    chain: list[Cause] = []
    while java_error is not None and len(chain) < 20:
        chain.append(Cause(java_error.getClass().getName(), java_error.getMessage() or ""))
        java_error = java_error.getCause()
    if chain:
        return tuple(chain)
    return (Cause(f"{type(error).__module__}.{type(error).__qualname__}", str(error)),)


def is_commit_conflict(error: BaseException) -> bool:
    """Whether another writer committed first, so that nothing was written and trying again is safe."""
    return any(c.kind == _COMMIT_CONFLICT or _ROWS_CAME.search(c.message) for c in causes(error))


def is_state_unknown(error: BaseException) -> bool:
    """Whether a commit may or may not have succeeded, so that the table must be read before anything else."""
    return any(cause.kind == _STATE_UNKNOWN for cause in causes(error))


def explain(error: BaseException) -> EngineError:
    """The error as one message: the first line of the innermost cause that has something to say."""
    if isinstance(error, EngineError):
        return error
    if (fault := ended_fault(error)) is not None:
        return fault
    try:
        chain = causes(error)
    except Exception as lost:  # the JVM ends while it is asked why something failed
        fault = ended_fault(lost)
        if fault is None:
            raise
        return fault
    telling = [cause for cause in chain if cause.message.strip()]
    message = first_line(telling[-1].message) if telling else chain[-1].kind
    if is_state_unknown(error):
        return EngineError(
            f"the catalog did not say whether a commit succeeded: {message}",
            "look at the table with `icemigrate status` before anything else",
        )
    if any(cause.kind in _TIMEOUTS or _TIMED_OUT.search(cause.message) for cause in chain):
        return EngineError(
            f"the catalog or the storage did not answer Spark in time: {message}",
            "check that it is up and that this machine reaches it; `timeout` of the environment's catalog "
            "gives it longer",
        )
    if any(cause.kind == _NULL_POINTER and _NO_SUCH_FIELD in cause.message for cause in chain):
        return EngineError(
            "Spark cannot read a column of type variant that the table's newest snapshot does not know",
            "append to the table first: `INSERT INTO … SELECT * FROM … WHERE false` appends no rows",
        )
    if any(_PUFFIN in cause.message and _FORBIDDEN in cause.message for cause in chain):
        return EngineError(
            "the storage admits no `.puffin` files, in which Iceberg keeps the deletion vectors of format "
            f"version 3, wherever rows change by merge-on-read: {message}"
        )
    if is_commit_conflict(error):
        return EngineError(f"the table was changed by somebody else meanwhile: {message}", "plan again")
    return EngineError(message)


@contextmanager
def explained() -> Iterator[None]:
    """Java's and Spark's errors as ours, in one sentence; a bug of ours stays what it is."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        raise explain(error) from error
    except BadMetadata as error:
        raise MetadataError(f"a table's metadata cannot be read: {error}") from error
    except Exception as error:
        fault = ended_fault(error)
        if fault is None:
            raise
        raise fault from error


def start_failure(output: str) -> str | None:
    """Why a JVM ended while it started, read from what it printed; ``None`` where it does not say.

    :param output: all that ``spark-submit`` and the JVM wrote.
    """
    # Ivy's report comes before the exception, and names the jar more plainly than that does.
    for pattern in (
        r"unresolved dependency: (.+?): not found",
        r"^Exception in thread .+?: (.+)$",
        r"^(Error: .+)$",
        r"^(.*(?:Permission denied|No such file or directory).*)$",
        r"(?:ERROR|FATAL) \w+: (.+)$",
    ):
        found = re.search(pattern, output, re.MULTILINE)
        if found and "unresolved" in pattern:
            return f"{found[1].replace('#', ':').replace(';', ':')} could not be fetched"
        if found:
            return found[1].strip()
    return None


def first_line(message: str) -> str:
    """The first line of what Spark says, without what only Spark's own people look up."""
    line = message.strip().splitlines()[0].strip()
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", line)
