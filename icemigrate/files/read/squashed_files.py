"""Squashes: the files that one replaces, and checks that need no catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from icemigrate.diagnostics import Diagnostic
from icemigrate.files.checksum import short_checksum
from icemigrate.files.read.migration_file import AnyFile, MigrationFile, ReplacesEntry


def checksums_digest(checksums: Iterable[str]) -> str:
    """SHA-256 in hex over the checksums of files, in the order of their versions."""
    return hashlib.sha256("\n".join(checksums).encode()).hexdigest()


def is_in_squash_range(replaces: ReplacesEntry, file: AnyFile) -> bool:
    """Whether a squash replaces a version."""
    return replaces.first <= file.version <= replaces.last


def replaced_by(files: Sequence[AnyFile]) -> dict[int, MigrationFile]:
    """Versions of files that a squash replaces, each with the squash."""
    found: dict[int, MigrationFile] = {}
    for squash in _squashes(files):
        assert squash.replaces is not None
        for file in files:
            if file is not squash and is_in_squash_range(squash.replaces, file):
                found.setdefault(file.version.number, squash)
    return found


def squash_mistakes(files: Sequence[AnyFile]) -> tuple[Diagnostic, ...]:
    """Errors of squashes that the files alone show.

    These are overlapping ranges, a range that does not end at the file's own version, a digest that does not
    match the listed versions, and replaced files that still exist.
    """
    return tuple(_mistakes(files))


def _mistakes(files: Sequence[AnyFile]) -> Iterator[Diagnostic]:
    squashes = list(_squashes(files))
    for squash in squashes:
        yield from _check_squash(squash)
    for file in files:
        for squash in squashes:
            replaces = squash.replaces
            assert replaces is not None
            if file is not squash and is_in_squash_range(replaces, file):
                yield _overlap(file, squash, replaces) or _replaced_file_diagnostic(file, squash, replaces)


def _squashes(files: Iterable[AnyFile]) -> Iterator[MigrationFile]:
    return (f for f in files if isinstance(f, MigrationFile) and f.replaces is not None)


def _check_squash(squash: MigrationFile) -> Iterator[Diagnostic]:
    replaces = squash.replaces
    assert replaces is not None
    if replaces.last != squash.version:
        yield Diagnostic(
            "squash-range",
            f"the squash replaces versions up to {replaces.last}, but its own version is {squash.version}",
            replaces.place,
            "a squash has the version of the last file that it replaces",
        )
    if not replaces.versions:
        return
    numbers = [version.number for version, _ in replaces.versions]
    # A squash of a squash lists the older squash first, above the first version.
    if numbers[0] < replaces.first.number or numbers[-1] != replaces.last.number:
        yield Diagnostic(
            "squash-range",
            f"the versions listed are not those from {replaces.first} to {replaces.last}",
            replaces.place,
            "restore the file that `squash` wrote",
        )
    if checksums_digest(checksum for _, checksum in replaces.versions) != replaces.digest:
        yield Diagnostic(
            "squash-digest",
            "the digest does not match the listed files",
            replaces.place,
            "restore the file that `squash` wrote",
        )


def _replaced_file_diagnostic(file: AnyFile, squash: MigrationFile, replaces: ReplacesEntry) -> Diagnostic:
    """The error of a replaced file that still exists."""
    known = {version.number: checksum for version, checksum in replaces.versions}
    range_ = f"{replaces.first} to {replaces.last}"
    was = known.get(file.version.number)
    if was is None and known:
        return Diagnostic(
            "replaced-file",
            f"{file.version} is not one of the files that `{squash.path}` replaces ({range_})",
            file.place,
            f"run `icemigrate rebase {file.version}` to renumber it",
        )
    if was is not None and was != file.checksum:
        return Diagnostic(
            "squash-digest",
            f"{file.version} differs from the file that `{squash.path}` replaces: "
            f"checksum {short_checksum(file.checksum)} here, {short_checksum(was)} there",
            file.place,
            "move the new content to a new migration, and remove this file",
        )
    return Diagnostic(
        "replaced-file",
        f"`{squash.path}`, which replaces {range_}, already contains {file.version}",
        file.place,
        "remove this file; it stays in version control",
    )


def _overlap(file: AnyFile, squash: MigrationFile, replaces: ReplacesEntry) -> Diagnostic | None:
    """An earlier squash that a later one replaces only in part."""
    if not isinstance(file, MigrationFile) or file.replaces is None or file.replaces.first >= replaces.first:
        return None
    return Diagnostic(
        "squash-range",
        f"`{squash.path}` replaces {replaces.first} to {replaces.last}, "
        f"and this file for {file.replaces.first} to {file.replaces.last}: no version may be in two",
        file.replaces.place,
        "squash again from the original files",
    )
