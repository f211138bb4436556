"""The exceptions of icemigrate, and its exit codes.

An error in a file is a value (:mod:`icemigrate.diagnostics`); :class:`Mistakes` carries such values across a
call boundary.  Any exception that is not an :class:`IcemigrateError` is a bug.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from icemigrate.diagnostics import Diagnostic, once_quoted
from icemigrate.frozen import Frozen
from icemigrate.redaction import redact_secrets


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    """The command did everything, or there was nothing to do."""
    ERROR = 1
    """An error: the command stopped there, for example because a file could not be written; or some tables
    could not be read, and all others were."""
    CHANGES = 2
    """There is something to apply or to roll back (only with ``--detailed-exitcode``)."""
    FINDINGS = 3
    """The files have errors, a consent (``allow``) is missing, or an action was refused as unsafe."""
    CONFLICT = 4
    """A conflict between recorded, declared and current state; drift; a stale plan; an unfinished run."""
    LOCKED = 5
    """Another process holds the project's lock."""
    USAGE = 64
    """Wrong command-line arguments, also a file to read that is missing, a folder, or not readable
    (``EX_USAGE`` of sysexits.h)."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C (128 plus the number of ``SIGINT``)."""
    TERMINATED = 143
    """Stopped by ``SIGTERM`` (128 plus its number)."""


class IcemigrateError(Exception):
    """Base class of all errors.

    :param message: what is wrong, and where, in one sentence.
    :param hint: what to do, in one sentence; shown below the message.
    """

    exit_code: ExitCode = ExitCode.ERROR

    def __init__(self, message: str, hint: str | None = None) -> None:
        message = redact_secrets(message)
        super().__init__(once_quoted(message))
        self.message = once_quoted(message)
        self.hint = None if hint is None else redact_secrets(once_quoted(hint, message))


def os_error_reason(error: OSError) -> str:
    """The operating system's reason, in lower case, for use within a sentence."""
    reason = error.strerror or type(error).__name__
    return reason[:1].lower() + reason[1:]


class UsageError(IcemigrateError):
    """The command or the Python API was called wrongly."""

    exit_code = ExitCode.USAGE


class Mistakes(IcemigrateError):
    """The user's files have errors; all of them are in :attr:`diagnostics`.

    :param summary: one line; by default the number of errors.
    """

    exit_code = ExitCode.FINDINGS

    def __init__(self, diagnostics: tuple[Diagnostic, ...], summary: str | None = None) -> None:
        super().__init__(summary or _tally(diagnostics))
        self.diagnostics = diagnostics


def _tally(diagnostics: tuple[Diagnostic, ...]) -> str:
    """The numbers of errors and of unset variables."""
    errors = [d.code for d in diagnostics if d.severity.value == "error"]
    unset = errors.count("missing-variable")
    wrong = len(errors) - unset
    parts = []
    if wrong or not unset:
        parts.append(f"{wrong} mistake{'' if wrong == 1 else 's'} in the project's files")
    if unset:
        parts.append(f"{unset} environment variable{' is' if unset == 1 else 's are'} not set")
    return ", and ".join(parts)


def extra_hint(extra: str) -> str:
    """The command that installs an optional dependency; icemigrate is on no package index."""
    return f"in a clone of icemigrate: pip install '.[{extra}]'"


class MissingExtra(IcemigrateError):
    """An optional dependency is not installed; the hint holds the ``pip`` line that installs it."""


class CatalogError(IcemigrateError):
    """The catalog cannot be reached or read, or refuses a request."""


class MetadataError(CatalogError):
    """A table's metadata file is missing, not readable, or not what the specification says."""


class GitError(IcemigrateError):
    """Git, the repository or the commit is missing, or the clone is too shallow."""


class CodeHostError(IcemigrateError):
    """The code host cannot be reached, or refused a request.

    :param status: the HTTP status; ``None`` where there was no answer.
    """

    def __init__(self, message: str, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class HistoryError(IcemigrateError):
    """The history cannot be read, or belongs to another project."""


class EngineError(IcemigrateError):
    """Java, Spark or a statement failed."""


def spark_condition(message: str) -> str | None:
    """The error condition that begins a message of Spark, such as ``DIVIDE_BY_ZERO``; ``None`` without one.

    Spark writes it in brackets (https://spark.apache.org/docs/latest/sql-error-conditions.html).
    """
    found = _CONDITION.match(message)
    return None if found is None else found[1]


_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]*)\]")


class CheckFailed(EngineError):
    """A check of a migration failed; its rows were not published.

    :param rows: the result of its query.
    """

    def __init__(self, message: str, hint: str | None = None, rows: Sequence[Sequence[object]] = ()) -> None:
        super().__init__(message, hint)
        self.rows = rows


class RefusedDataStep(Frozen):
    """A data step that Spark refuses.

    :param table: its declared name.
    :param subject: the path of keys in the table's entry.
    :param what: the data step in words.
    :param why: Spark's message.
    """

    table: str
    subject: tuple[str, ...]
    what: str
    why: str

    def __str__(self) -> str:
        return f"`{self.subject[0]}` of `{self.table}` ({self.what}): {self.why}"


class NotUnderstood(EngineError):
    """Spark refuses data steps of a migration; nothing was changed.

    :param refused_steps: at least one.
    """

    hint = "fix the expression in the migration file"

    def __init__(self, version: str, found: tuple[RefusedDataStep, ...]) -> None:
        super().__init__("\n".join(map(str, found)), f"{type(self).hint}; no table was changed")
        self.version = version
        self.refused_steps = found


class HeadMoved(EngineError):
    """Another client wrote to a table whose head was asserted; nothing was written."""


class ConflictError(IcemigrateError):
    """Recorded, declared and current state conflict.

    :ivar redo_first: rolled-back versions that the hint suggests to redo first.
    """

    exit_code = ExitCode.CONFLICT
    redo_first: tuple[str, ...] = ()


class StalePlan(ConflictError):
    """Files, history or tables changed after the plan was made."""


class LockHeld(IcemigrateError):
    """Another process holds the lock."""

    exit_code = ExitCode.LOCKED


class LockLost(LockHeld):
    """This process lost the lock: another took it over, or its lease ran out."""


class Stopped(IcemigrateError):
    """Stopped by Ctrl-C."""

    exit_code = ExitCode.INTERRUPTED


class Terminated(Stopped):
    """Stopped by ``SIGTERM``."""

    exit_code = ExitCode.TERMINATED
