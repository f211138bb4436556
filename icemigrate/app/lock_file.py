"""The lock file beside the migrations: read by ``check``, kept by the commands that write migrations.

A project without one is fine, and nothing is said about it: the first ``new`` or ``check --fix`` begins it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from icemigrate.app.saving import write_file
from icemigrate.declare.files import Listing, Loaded, list_migrations, load_one
from icemigrate.declare.lock_file import (
    FILE_NAME,
    LockedFile,
    LockLine,
    lock_text,
    read_lock,
    stale_lines,
)
from icemigrate.declare.source import read_source, shown_path
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Diagnostic, Place, Severity
from icemigrate.errors import IcemigrateError, why
from icemigrate.files.reading import open_inside
from icemigrate.project.values import Project


def lock_findings(project: Project, loaded: Loaded) -> Iterator[Diagnostic]:
    """What is wrong with the lock file; nothing where there is none."""
    path = project.migrations_dir / FILE_NAME
    if not os.path.lexists(path):
        return
    found = _read(project, path)
    if isinstance(found, Diagnostic):
        yield found
        return
    files = [LockedFile(f.version, f.checksum, f.path) for f in loaded.files]
    yield from stale_lines(found, files, (*loaded.broken, *loaded.doubles))


def fix_lock(project: Project, loaded: Loaded, *, are_sound: bool) -> Diagnostic | None:
    """Write the lock file as the files are now.

    :param are_sound: whether no error was found in the files, nor in a step between two versions: what has to
        be edited yet is not noted.  What rules find is no error here: it is about what a file does.
    :returns: a note of what was done, or why nothing was; ``None`` where the lock file is right already.
    :raises IcemigrateError: it cannot be read or written.
    """
    path = project.migrations_dir / FILE_NAME
    shown = shown_path(path)
    lines = [(f.version, f.checksum) for f in loaded.files]
    are_all_read = not (loaded.broken or loaded.doubles)
    if are_all_read and _says(project, path, lock_text(lines)):
        return None
    if not (are_sound and are_all_read):
        message = "the lock file was not written: migrations have errors, those of rules left aside"
        hint = "mend them, then `icemigrate check --fix` writes it"
        return Diagnostic("lock-kept", message, Place(shown), hint, Severity.NOTE)
    _write(project, path, lines)
    number = len(loaded.files)
    message = f"the lock file is written: {number} migration{'' if number == 1 else 's'}"
    return Diagnostic("lock-written", message, Place(shown), "commit it with the migrations", Severity.NOTE)


def keep_lock(
    project: Project, written: Iterable[str], removed: Iterable[str] = (), *, begins: bool = False
) -> None:
    """Let the lock file know what a command has done to files, and nothing else of them.

    What other files say now is not taken over: that one of them was edited is for ``check`` to tell.  A lock
    file that cannot be read is left for ``check`` too.

    :param written: names of files that are new.
    :param removed: names of files that are gone.
    :param begins: whether to write a lock file where there is none.
    :raises IcemigrateError: it cannot be written, or the folder cannot be read.
    """
    listing = list_migrations(project.migrations_dir, project.top)
    path = project.migrations_dir / FILE_NAME
    if not os.path.lexists(path):
        if not begins:
            return
        checksums = _checksums(project, listing, {file.path.name for file in listing.files})
        if not listing.doubles and len(checksums) == len(listing.files):
            _write(project, path, sorted(checksums.items()))
        return
    lines = _read(project, path)
    if isinstance(lines, Diagnostic):
        return
    there = {file.version for file in listing.files}
    gone = {Version.parse(name.partition("_")[0]) for name in removed} - there
    checksums = {line.version: line.checksum for line in lines if line.version not in gone}
    fresh = _checksums(project, listing, set(written))
    # A version that is written anew, with other digits perhaps, stands as the file's name has it.
    kept = {version: checksum for version, checksum in checksums.items() if version not in fresh}
    _write(project, path, sorted((kept | fresh).items()))


def _checksums(project: Project, listing: Listing, names: set[str]) -> dict[Version, str]:
    files = (load_one(file, project.lists).migration for file in listing.files if file.path.name in names)
    return {file.version: file.checksum for file in files if file is not None}


def _read(project: Project, path: Path) -> tuple[LockLine, ...] | Diagnostic:
    source = read_source(path, top=project.top)
    return source if isinstance(source, Diagnostic) else read_lock(source)


def _write(project: Project, path: Path, lines: Sequence[tuple[Version, str]]) -> None:
    """Write the file as a whole or not at all, where it does not say that already.

    :raises IcemigrateError: it cannot be read or written.
    """
    text = lock_text(lines)
    if not _says(project, path, text):
        write_file(path, text, project.top)


def _says(project: Project, path: Path, text: str) -> bool:
    """Whether the file holds a text, but for line breaks, which Git may have converted.

    :raises IcemigrateError: it cannot be read.
    """
    try:
        with open_inside(path, project.top) as stream:
            # A file that is longer by much holds something else.
            return stream.read(2 * len(text) + 1).replace(b"\r\n", b"\n") == text.encode()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise IcemigrateError(
            f"`{shown_path(path)}` cannot be read: {why(error)}", "put a file in its place, or remove it"
        ) from error
