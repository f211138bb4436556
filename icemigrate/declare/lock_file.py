"""The lock file: version and checksum of each migration in order, and a chain over them.

Plain text, a line for each file; the last word of a line depends on the line before.  Branches that add
migrations at the same time change the same place of it, so git reports a conflict, which is the point: their
order has to be decided by a person.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from icemigrate.declare.checksum import short
from icemigrate.declare.source import Source
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Diagnostic, Place
from icemigrate.frozen import Frozen

FILE_NAME = "icemigrate.lock"
FIX = "`icemigrate check --fix` renews it; commit it with the migrations"
STALE = "lock-stale"
"""Code of what says that the lock file and a file differ."""
_HEADER = "# Written by icemigrate and committed with the migrations; `icemigrate check --fix` renews it.\n"
_LINE = re.compile(r"([0-9]{1,18}) ([0-9a-f]{64}) ([0-9a-f]{16})")
_MARKER = re.compile(r"<{7}|\|{7}|={7}|>{7}")


class LockedFile(Frozen):
    """A migration as the lock file knows it, or would.

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
    place: Place


def lock_text(files: Iterable[tuple[Version, str]]) -> str:
    """A whole lock file.

    :param files: version and checksum, in the order of the versions.
    """
    lines, chain = [_HEADER], ""
    for version, checksum in files:
        chain = _chained(chain, version, checksum)
        lines.append(f"{version} {checksum} {chain}\n")
    return "".join(lines)


def read_lock(source: Source) -> tuple[LockLine, ...] | Diagnostic:
    """The lines of a lock file, or what keeps it from being read as one.

    A chain that is broken counts as that: the lines were joined or edited by something else than icemigrate.
    """
    lines: list[LockLine] = []
    written = source.text.split("\n")
    for number, text in enumerate(written, start=1):
        place = Place(source.path, number)
        if _MARKER.match(text):
            return _conflict(place)
        if text.startswith("#") or not text.strip():
            continue
        found = _LINE.fullmatch(text.rstrip())
        if found is None:
            # A marker further down says more than the first odd line does.
            marker = next((n for n, t in enumerate(written, start=1) if _MARKER.match(t)), None)
            return _conflict(Place(source.path, marker)) if marker else _garbage(place)
        version, checksum, chain = found.groups()
        lines.append(LockLine(Version.parse(version), checksum, chain, place))
    return _broken_chain(lines) or tuple(lines)


def stale_lines(
    lines: Sequence[LockLine], files: Sequence[LockedFile], unknown: Iterable[Version] = ()
) -> Iterator[Diagnostic]:
    """What a lock file says otherwise than the files do, one finding for each file.

    :param unknown: versions whose files cannot be told apart or read, so that nothing is said of them.
    """
    locked = {line.version: line for line in lines}
    silent = set(unknown)
    for file in files:
        line = locked.get(file.version)
        if file.version in silent:
            continue
        if line is None:
            message = f"the lock file does not have {file.version} yet"
            yield Diagnostic(STALE, message, Place(file.path), FIX)
        elif line.checksum != file.checksum:
            yield Diagnostic(
                STALE,
                f"{file.version} says something else than when the lock file was written: "
                f"checksum {short(file.checksum)} here, {short(line.checksum)} there",
                Place(file.path),
                "if you edited it on purpose, or mended it after `rollback`: `icemigrate check --fix` notes "
                "what it says now, commit both; if it is applied somewhere and not rolled back there: bring "
                "it back as it was, and write what is new into a new one",
            )
    known = {file.version for file in files} | silent
    for line in lines:
        if line.version not in known:
            message = f"the lock file has {line.version}, and there is no such migration"
            yield Diagnostic(STALE, message, line.place, f"bring the file back, or {FIX}")


def _chained(before: str, version: Version, checksum: str) -> str:
    return hashlib.sha256(f"{before} {version.number} {checksum}".encode()).hexdigest()[:16]


def _broken_chain(lines: Sequence[LockLine]) -> Diagnostic | None:
    chain, last = "", -1
    for line in lines:
        chain = _chained(chain, line.version, line.checksum)
        if chain != line.chain or line.version.number <= last:
            message = f"the lock file's line of {line.version} does not follow from the one above"
            return Diagnostic("lock-chain", message, line.place, FIX)
        last = line.version.number
    return None


def _conflict(place: Place) -> Diagnostic:
    return Diagnostic(
        "lock-conflict",
        "the lock file holds a merge that is not resolved: two branches added migrations at the same time",
        place,
        "see that the new files are in the right order (`icemigrate rebase` renumbers), "
        "then `icemigrate check --fix` writes the lock file anew",
    )


def _garbage(place: Place) -> Diagnostic:
    return Diagnostic("lock-unreadable", "this is no line of a lock file", place, FIX)
