"""The lock file of the migrations: read by ``check``, updated by the commands that write migrations.

A project without one is valid, and no finding mentions it: the first ``new`` or ``check --fix`` creates it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from icemigrate.commands.base_commit import contents_at, is_same
from icemigrate.commands.main_branch import list_files
from icemigrate.commands.user_files import write_file
from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.errors import GitError, IcemigrateError, os_error_reason
from icemigrate.files.lock_file import (
    FILE_NAME,
    STALE,
    LockedFile,
    LockLine,
    lock_text,
    read_lock_file,
    stale_lines,
)
from icemigrate.files.migration_folder import (
    ListedMigration,
    LoadedMigrations,
    MigrationListing,
    load_one,
    read_content,
)
from icemigrate.files.parse.source_text import read_text, shown_path
from icemigrate.files.version_number import Version
from icemigrate.files.write.scaffold import new_text
from icemigrate.frozen import replace
from icemigrate.project.project_values import Project
from icemigrate.system.file_reads import open_inside
from icemigrate.vcs.git import open_repository


def lock_file_diagnostics(project: Project, loaded: LoadedMigrations) -> Iterator[Diagnostic]:
    """Errors of the lock file, and warnings of files that are not committed; none where it does not exist."""
    path = project.migrations_dir / FILE_NAME
    if not os.path.lexists(path):
        return
    found = _read(project, path)
    if isinstance(found, Diagnostic):
        yield found
        return
    files = [LockedFile(f.version, f.checksum, f.path) for f in loaded.files]
    progress = _FilesInProgress(project)
    yield from stale_lines(
        found, files, (*loaded.broken, *loaded.doubles), is_in_progress=progress.is_in_progress
    )


class _FilesInProgress:
    """Which files an author still writes; Git is asked once, for the first of them."""

    def __init__(self, project: Project) -> None:
        self.project = project

    @cached_property
    def _committed(self) -> Mapping[str, bytes] | None:
        """The files of the last commit by name; ``None`` where no Git repository is readable."""
        try:
            repository = open_repository(self.project.migrations_dir, self.project.top)
            head = repository.commit("HEAD")
            return {} if head is None else contents_at(repository, head)
        except GitError:
            return None

    def is_in_progress(self, file: LockedFile, line: LockLine) -> bool:
        """Whether the last commit lacks the file, or `new` wrote what the lock file has and what follows is
        not committed.
        """
        committed, path = self._committed, self.project.migrations_dir / Path(file.path).name
        if committed is not None and path.name not in committed:
            return True
        if committed is not None and is_same(path, committed[path.name], self.project.top):
            return False
        listed = ListedMigration(file.version, "", path, file.path, self.project.top)
        template = read_content(listed, new_text("new").encode(), {}).migration
        return template is not None and template.checksum == line.checksum


def planned_file_warnings(
    project: Project, loaded: LoadedMigrations, planned: Collection[str]
) -> Iterator[Diagnostic]:
    """Warnings of a plan whose files differ from the lock file: ``check`` would refuse them.

    :param planned: the versions of the plan.
    """
    paths = {f.path for f in loaded.files if f.version.text in planned}
    for found in lock_file_diagnostics(project, loaded) if paths else ():
        if found.code != STALE or (found.place is not None and found.place.file in paths):
            yield replace(found, severity=Severity.WARNING)


def rewrite_lock_file(project: Project, loaded: LoadedMigrations, *, are_sound: bool) -> Diagnostic | None:
    """Write the lock file from the current files.

    :param are_sound: whether the files and the steps between versions have no error: a file that still needs
        an edit is not recorded.  Findings of rules do not count: they are about effects.
    :returns: a note about the action, or why there was none; ``None`` where the lock file is correct already.
    :raises IcemigrateError: it cannot be read or written.
    """
    path = project.migrations_dir / FILE_NAME
    shown = shown_path(path)
    lines = [(f.version, f.checksum) for f in loaded.files]
    are_all_read = not (loaded.broken or loaded.doubles)
    if are_all_read and _has_text(project, path, lock_text(lines)):
        return None
    if not (are_sound and are_all_read):
        message = "the lock file was not updated, because a migration has an error"
        hint = "fix it, then run `icemigrate check --fix` again"
        return Diagnostic("lock-kept", message, FilePosition(shown), hint, Severity.NOTE)
    _write(project, path, lines)
    number = len(loaded.files)
    message = f"wrote the lock file: {number} migration{'' if number == 1 else 's'}"
    return Diagnostic(
        "lock-written", message, FilePosition(shown), "commit it with the migrations", Severity.NOTE
    )


def update_lock_file(
    project: Project, written: Iterable[str], removed: Iterable[str] = (), *, begins: bool = False
) -> None:
    """Record the files that a command wrote and removed in the lock file.

    Lines of other files stay: ``check`` reports edits of them.  An unreadable lock file is left for ``check``
    too.

    :param written: names of new files.
    :param removed: names of removed files.
    :param begins: whether to create a missing lock file.
    :raises IcemigrateError: it cannot be written, or the folder cannot be read.
    """
    listing = list_files(project)
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
    # A version that is written with other digits gets the text of the file's name.
    kept = {version: checksum for version, checksum in checksums.items() if version not in fresh}
    _write(project, path, sorted((kept | fresh).items()))


def _checksums(project: Project, listing: MigrationListing, names: set[str]) -> dict[Version, str]:
    files = (load_one(file, project.lists).migration for file in listing.files if file.path.name in names)
    return {file.version: file.checksum for file in files if file is not None}


def _read(project: Project, path: Path) -> tuple[LockLine, ...] | Diagnostic:
    source = read_text(path, top=project.top)
    return source if isinstance(source, Diagnostic) else read_lock_file(source)


def _write(project: Project, path: Path, lines: Sequence[tuple[Version, str]]) -> None:
    """Replace the file with a text, atomically, unless it has that text already.

    :raises IcemigrateError: it cannot be read or written.
    """
    text = lock_text(lines)
    if not _has_text(project, path, text):
        write_file(path, text, project.top)


def _has_text(project: Project, path: Path, text: str) -> bool:
    """Whether the file has a text, apart from line breaks, which Git may have converted.

    :raises IcemigrateError: it cannot be read.
    """
    try:
        with open_inside(path, project.top) as stream:
            # A much longer file has other content.
            return stream.read(2 * len(text) + 1).replace(b"\r\n", b"\n") == text.encode()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise IcemigrateError(
            f"`{shown_path(path)}` cannot be read: {os_error_reason(error)}",
            "replace it with a file, or remove it",
        ) from error
