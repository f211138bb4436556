"""Faults of the world as one exception tree, and the one table of exit codes.

A *fault* is something icemigrate met and cannot go on from: a catalog that does not answer, a
lock that someone holds, a table that is not what the plan was made for.  A *mistake* in a file
is not a fault but a value (see :mod:`icemigrate.diagnostics`); :class:`Mistakes` carries such
values across a call boundary.  Everything else that is raised is a bug.
"""

from __future__ import annotations

from enum import IntEnum

from icemigrate.diagnostics import Diagnostic, once_quoted
from icemigrate.frozen import Frozen
from icemigrate.redaction import redact


class ExitCode(IntEnum):
    """What a process of ``icemigrate`` ends with; the number is the value, the name the meaning."""

    OK = 0
    """Everything asked for was done, or there was nothing to do."""
    ERROR = 1
    """A fault: nothing more was done after it."""
    CHANGES = 2
    """There is something to do (only with ``--detailed-exitcode``)."""
    FINDINGS = 3
    """Mistakes in the files, findings of a check, or a missing ``allow``."""
    CONFLICT = 4
    """A conflict between base, wanted and actual; drift; a stale plan; or an unfinished run."""
    LOCKED = 5
    """Somebody else holds the project's lock."""
    USAGE = 64
    """The command was called wrongly (``EX_USAGE`` of sysexits.h)."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C (128 and the number of ``SIGINT``, as shells have it)."""
    TERMINATED = 143
    """Stopped by ``SIGTERM`` (128 and its number)."""


class IcemigrateError(Exception):
    """Root of all faults.

    :param message: what happened, in one sentence that names the thing it happened to.
    :param hint: what to do about it, in one sentence; shown below the message.
    """

    exit_code: ExitCode = ExitCode.ERROR

    def __init__(self, message: str, hint: str | None = None) -> None:
        message = redact(message)
        super().__init__(once_quoted(message))
        self.message = once_quoted(message)
        self.hint = None if hint is None else redact(once_quoted(hint, message))


def why(error: OSError) -> str:
    """What the system says of a file, a folder or a program, to stand within a sentence."""
    said = error.strerror or type(error).__name__
    return said[:1].lower() + said[1:]


class UsageError(IcemigrateError):
    """The command or the Python API was called wrongly."""

    exit_code = ExitCode.USAGE


class Mistakes(IcemigrateError):
    """The user's files hold mistakes; all of them are in :attr:`diagnostics`.

    :param summary: said of all of them; how many there are where left out.
    """

    exit_code = ExitCode.FINDINGS

    def __init__(self, diagnostics: tuple[Diagnostic, ...], summary: str | None = None) -> None:
        super().__init__(summary or _tally(diagnostics))
        self.diagnostics = diagnostics


def _tally(diagnostics: tuple[Diagnostic, ...]) -> str:
    """How many there are of what: a variable that is not set is no mistake of a file; warnings are none."""
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
    """How an optional dependency is installed; icemigrate is on no package index, which a line could name."""
    return f"in a clone of icemigrate: pip install '.[{extra}]'"


class MissingExtra(IcemigrateError):
    """An optional dependency is not installed; the hint holds the ``pip`` line that installs it."""


class CatalogError(IcemigrateError):
    """The catalog could not be reached, read, or does not do what was asked of it."""


class MetadataError(CatalogError):
    """A table's metadata file is missing, not readable, or not what the specification says."""


class GitError(IcemigrateError):
    """Git cannot say what was asked: there is none, no repository, no such commit, or too little history."""


class CodeHostError(IcemigrateError):
    """The code host could not be asked, or refused.

    :param status: of its answer in HTTP; ``None`` where there was none.
    """

    def __init__(self, message: str, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class HistoryError(IcemigrateError):
    """The project's history cannot be read, or is not this project's."""


class EngineError(IcemigrateError):
    """Java, Spark or a statement that Spark was given failed."""


class CheckFailed(EngineError):
    """A check of a migration does not hold; readers have seen nothing of its rows."""


class Misunderstood(Frozen):
    """What Spark would not run of what a migration does to rows.

    :param table: its declared name.
    :param subject: path of keys as they stand in the table's entry.
    :param what: the data step in words.
    :param why: Spark's own.
    """

    table: str
    subject: tuple[str, ...]
    what: str
    why: str

    def __str__(self) -> str:
        return f"`{self.subject[0]}` of `{self.table}` ({self.what}): {self.why}"


class NotUnderstood(EngineError):
    """Spark would not run what a migration does to rows, as it said before anything was done.

    :param version: of the migration.
    :param found: all that it would not run, at least one.
    """

    hint = "mend the expression in the migration file"

    def __init__(self, version: str, found: tuple[Misunderstood, ...]) -> None:
        super().__init__("\n".join(map(str, found)), f"{type(self).hint}; no table was touched")
        self.version = version
        self.found = found


class HeadMoved(EngineError):
    """Somebody else wrote to a table whose head was asserted; nothing was written."""


class ConflictError(IcemigrateError):
    """Base, wanted and actual differ in a way that icemigrate does not resolve by itself."""

    exit_code = ExitCode.CONFLICT


class StalePlan(ConflictError):
    """The world is no longer what the saved plan was made for."""


class LockHeld(IcemigrateError):
    """Somebody else is applying or rolling back."""

    exit_code = ExitCode.LOCKED


class LockLost(LockHeld):
    """The lock was ours and is not any more: somebody took it away, or its lease ran out."""


class Stopped(IcemigrateError):
    """The user asked to stop, by Ctrl-C."""

    exit_code = ExitCode.INTERRUPTED


class Terminated(Stopped):
    """Whoever runs this process asked it to end, by ``SIGTERM``."""

    exit_code = ExitCode.TERMINATED
