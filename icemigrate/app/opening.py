"""A project and its files, opened for a use case: every mistake of all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from icemigrate.declare.files import Known, Loaded, load_migrations
from icemigrate.declare.migration import AnyFile, MigrationFile
from icemigrate.diagnostics import Diagnostic, has_errors
from icemigrate.errors import IcemigrateError, Mistakes, UsageError
from icemigrate.history.applied import Applied
from icemigrate.project.reading import load_project
from icemigrate.project.values import Project


def open_project(path: Path | None = None) -> Project:
    """The project of a file or a folder; of the working directory where there is no path.

    :raises UsageError: there is no such file.
    :raises Mistakes: the project file holds mistakes.
    """
    found = load_project(path)
    if found.project is None:
        raise Mistakes(found.diagnostics)
    return found.project


def load_files(project: Project) -> Loaded:
    """All migration files.

    :raises IcemigrateError: the folder cannot be read.
    """
    return load_migrations(project.migrations_dir, project.lists, top=project.top)


def load_unapplied(project: Project, applied: Iterable[Applied]) -> Loaded:
    """All migration files, those left unread that are the very bytes that were applied.

    :raises Mistakes: a file holds one; what is less than a mistake is in the answer.
    :raises IcemigrateError: the folder cannot be read.
    """
    known = {
        a.version.number: Known(a.fingerprint, a.checksum, a.description)
        for a in applied
        if a.standing == "applied" and a.fingerprint
    }
    loaded = load_migrations(project.migrations_dir, project.lists, known, top=project.top)
    as_mistakes(loaded.diagnostics)
    return loaded


@contextmanager
def mistakes_first(project: Project) -> Iterator[None]:
    """Whatever else goes wrong (no such environment, no catalog), mistakes in the files are told before it.

    :raises Mistakes: with all mistakes of all files.
    :raises IcemigrateError: what went wrong, where the files hold none; or their folder cannot be read.
    """
    try:
        yield
    except IcemigrateError:
        as_mistakes(load_files(project).diagnostics)
        raise


def sound_files(project: Project) -> tuple[MigrationFile, ...]:
    """All migration files, none of which has a mistake of its own.

    :raises Mistakes: with all mistakes of all files.
    :raises IcemigrateError: the folder cannot be read.
    """
    loaded = load_files(project)
    if has_errors(loaded.diagnostics):
        raise Mistakes(loaded.diagnostics)
    return loaded.migrations


def known_version(files: Sequence[AnyFile], text: str, option: str) -> int:
    """The number of a version that the user named.

    :raises UsageError: it is none, or no file has it.
    """
    known = {f.version.number: f.version.text for f in files}
    if text.isascii() and text.isdigit() and int(text) in known:
        return int(text)
    hint = f"the files are {', '.join(known.values())}" if known else "there is no migration file yet"
    raise UsageError(f"{option} {text}: there is no migration of this version", hint)


def as_mistakes(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Stop where a diagnostic is an error.

    :raises Mistakes: with all of them.
    """
    if has_errors(diagnostics):
        raise Mistakes(diagnostics)
