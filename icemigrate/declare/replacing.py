"""Squashed files: which files one stands for, and what of it can be checked without a catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from icemigrate.declare.checksum import short
from icemigrate.declare.migration import AnyFile, MigrationFile, Replaces
from icemigrate.diagnostics import Diagnostic


def digest(checksums: Iterable[str]) -> str:
    """SHA-256 in hex over the checksums of files, in the order of their versions."""
    return hashlib.sha256("\n".join(checksums).encode()).hexdigest()


def covers(replaces: Replaces, file: AnyFile) -> bool:
    """Whether a version lies in the range of a squash."""
    return replaces.first <= file.version <= replaces.last


def replaced_by(files: Sequence[AnyFile]) -> dict[int, MigrationFile]:
    """Versions of files that lie in the range of a squash, the squash itself left out; with that squash."""
    found: dict[int, MigrationFile] = {}
    for squash in _squashes(files):
        assert squash.replaces is not None
        for file in files:
            if file is not squash and covers(squash.replaces, file):
                found.setdefault(file.version.number, squash)
    return found


def squash_mistakes(files: Sequence[AnyFile]) -> tuple[Diagnostic, ...]:
    """What is wrong with squashes by the files alone.

    Ranges that overlap, a range that does not end at the file's own version, a digest that is not the one of
    the versions that are listed, and files that a squash stands for and that are there all the same.
    """
    return tuple(_mistakes(files))


def _mistakes(files: Sequence[AnyFile]) -> Iterator[Diagnostic]:
    squashes = list(_squashes(files))
    for squash in squashes:
        yield from _own(squash)
    for file in files:
        for squash in squashes:
            replaces = squash.replaces
            assert replaces is not None
            if file is not squash and covers(replaces, file):
                yield _overlap(file, squash, replaces) or _left(file, squash, replaces)


def _squashes(files: Iterable[AnyFile]) -> Iterator[MigrationFile]:
    return (f for f in files if isinstance(f, MigrationFile) and f.replaces is not None)


def _own(squash: MigrationFile) -> Iterator[Diagnostic]:
    replaces = squash.replaces
    assert replaces is not None
    if replaces.last != squash.version:
        yield Diagnostic(
            "squash-range",
            f"the squash stands for versions up to {replaces.last}, its own version is {squash.version}",
            replaces.place,
            "a squash has the version of the last file that it stands for",
        )
    if not replaces.versions:
        return
    numbers = [version.number for version, _ in replaces.versions]
    # Where a squash was squashed, the list begins with it, above the first version.
    if numbers[0] < replaces.first.number or numbers[-1] != replaces.last.number:
        yield Diagnostic(
            "squash-range",
            f"the versions listed are not those from {replaces.first} to {replaces.last}",
            replaces.place,
            "bring the file back as `squash` wrote it",
        )
    if digest(checksum for _, checksum in replaces.versions) != replaces.digest:
        yield Diagnostic(
            "squash-digest",
            "the digest is not the one of the files listed",
            replaces.place,
            "bring the file back as `squash` wrote it",
        )


def _left(file: AnyFile, squash: MigrationFile, replaces: Replaces) -> Diagnostic:
    """A file that a squash stands for, and that is there all the same."""
    known = {version.number: checksum for version, checksum in replaces.versions}
    range_ = f"{replaces.first} to {replaces.last}"
    was = known.get(file.version.number)
    if was is None and known:
        return Diagnostic(
            "replaced-file",
            f"{file.version} is not one of the files that `{squash.path}` stands for ({range_})",
            file.place,
            f"it came late: `icemigrate rebase {file.version}` renumbers it",
        )
    if was is not None and was != file.checksum:
        return Diagnostic(
            "squash-digest",
            f"{file.version} says something else than what `{squash.path}` stands for: "
            f"checksum {short(file.checksum)} here, {short(was)} there",
            file.place,
            "write what is new into a new migration, and remove this file",
        )
    return Diagnostic(
        "replaced-file",
        f"{file.version} is replaced by `{squash.path}`, which stands for {range_}",
        file.place,
        "remove this file; version control keeps it",
    )


def _overlap(file: AnyFile, squash: MigrationFile, replaces: Replaces) -> Diagnostic | None:
    """An earlier squash of which a later one stands for a part alone."""
    if not isinstance(file, MigrationFile) or file.replaces is None or file.replaces.first >= replaces.first:
        return None
    return Diagnostic(
        "squash-range",
        f"`{squash.path}` stands for {replaces.first} to {replaces.last}, "
        f"and this file for {file.replaces.first} to {file.replaces.last}: no version may be in two",
        file.replaces.place,
        "squash again, from files that are whole",
    )
