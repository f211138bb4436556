"""The lock file: version and checksum of each migration in order, and a chain over them.

It is plain text with one line for each file; the last word of a line depends on the line before.  Branches
that add migrations at the same time change the same line, so git reports a conflict and a person decides
their order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.files.checksum import short_checksum
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen

FILE_NAME = "icemigrate.lock"
FIX = "run `icemigrate check --fix` and commit the lock file with the migrations"
STALE = "lock-stale"
"""Diagnostic code of a lock file that differs from the migration files."""
_HEADER = "# Written by icemigrate and committed with the migrations; `icemigrate check --fix` renews it.\n"
_LINE = re.compile(r"([0-9]{1,18}) ([0-9a-f]{64}) ([0-9a-f]{16})")
_MARKER = re.compile(r"<{7}|\|{7}|={7}|>{7}")


class LockedFile(Frozen):
    """The line of one migration in the lock file, read or to be written.

    :param path: of the file, as shown to the user.
    """

    version: Version
    checksum: str
    path: str


class LockLine(Frozen):
    """A line of a lock file."""

    version: Version
    checksum: str
    chain: str
    place: FilePosition


def lock_text(files: Iterable[tuple[Version, str]]) -> str:
    """The content of a lock file.

    :param files: versions and checksums, in the order of the versions.
    """
    lines, chain = [_HEADER], ""
    for version, checksum in files:
        chain = _chained(chain, version, checksum)
        lines.append(f"{version} {checksum} {chain}\n")
    return "".join(lines)


def read_lock_file(source: SourceText) -> tuple[LockLine, ...] | Diagnostic:
    """Read the lines of a lock file, or the diagnostic that explains why it cannot be read.

    A broken chain is such a diagnostic: another program than icemigrate joined or edited the lines.
    """
    lines: list[LockLine] = []
    written = source.text.split("\n")
    for number, text in enumerate(written, start=1):
        place = FilePosition(source.path, number)
        if _MARKER.match(text):
            return _conflict(place)
        if text.startswith("#") or not text.strip():
            continue
        found = _LINE.fullmatch(text.rstrip())
        if found is None:
            # A conflict marker further down explains more than the first invalid line.
            marker = next((n for n, t in enumerate(written, start=1) if _MARKER.match(t)), None)
            return _conflict(FilePosition(source.path, marker)) if marker else _garbage(place)
        version, checksum, chain = found.groups()
        lines.append(LockLine(Version.parse(version), checksum, chain, place))
    return _broken_chain(lines) or tuple(lines)


def stale_lines(
    lines: Sequence[LockLine],
    files: Sequence[LockedFile],
    unknown: Iterable[Version] = (),
    *,
    is_in_progress: Callable[[LockedFile, LockLine], bool] = lambda file, line: False,
) -> Iterator[Diagnostic]:
    """The differences between a lock file and the migration files, one diagnostic for each file.

    :param unknown: versions whose files are ambiguous or cannot be read; these get no diagnostic here.
    :param is_in_progress: whether an author still writes a file; called for a file that has changed, whose
        diagnostic is a warning then.
    """
    locked = {line.version: line for line in lines}
    silent = set(unknown)
    for file in files:
        line = locked.get(file.version)
        if file.version in silent:
            continue
        if line is None:
            message = f"the lock file does not contain {file.version}"
            yield Diagnostic(STALE, message, FilePosition(file.path), FIX)
        elif line.checksum != file.checksum and is_in_progress(file, line):
            yield Diagnostic(
                STALE,
                f"the lock file has the checksum of an earlier content of {file.version}",
                FilePosition(file.path),
                "run `icemigrate check --fix` when the file is ready",
                Severity.WARNING,
            )
        elif line.checksum != file.checksum:
            yield Diagnostic(
                STALE,
                f"{file.version} has changed since the lock file was written: "
                f"checksum {short_checksum(file.checksum)} here, {short_checksum(line.checksum)} there",
                FilePosition(file.path),
                "if you edited it on purpose, run `icemigrate check --fix` and commit both files; if "
                "`icemigrate status` shows it as `edited`, another content is applied: restore the file and "
                "write a new migration",
            )
    known = {file.version for file in files} | silent
    for line in lines:
        if line.version not in known:
            message = f"the lock file contains {line.version}, but there is no such migration"
            yield Diagnostic(STALE, message, line.place, f"restore the file, or {FIX}")


def _chained(before: str, version: Version, checksum: str) -> str:
    return hashlib.sha256(f"{before} {version.number} {checksum}".encode()).hexdigest()[:16]


def _broken_chain(lines: Sequence[LockLine]) -> Diagnostic | None:
    chain, last = "", -1
    for line in lines:
        chain = _chained(chain, line.version, line.checksum)
        if chain != line.chain or line.version.number <= last:
            message = f"the lock file's line of {line.version} does not match the line above"
            return Diagnostic("lock-chain", message, line.place, FIX)
        last = line.version.number
    return None


def _conflict(place: FilePosition) -> Diagnostic:
    return Diagnostic(
        "lock-conflict",
        "the lock file has an unresolved merge: two branches added migrations at the same time",
        place,
        "check the order of the new files (`icemigrate rebase` renumbers them), "
        "then run `icemigrate check --fix` to rewrite the lock file",
    )


def _garbage(place: FilePosition) -> Diagnostic:
    return Diagnostic("lock-unreadable", "this is not a line of a lock file", place, FIX)
