"""A project and its files, opened for a use case: every mistake of all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from icemigrate.commands.list_templates import with_named_values
from icemigrate.commands.main_branch import version_order
from icemigrate.diagnostics import Diagnostic, has_errors
from icemigrate.errors import IcemigrateError, Mistakes, UsageError
from icemigrate.files.migration_folder import AppliedFile, LoadedMigrations, load_migrations
from icemigrate.files.read.migration_file import AnyFile, MigrationFile
from icemigrate.files.version_number import number_of
from icemigrate.history.recorded_versions import AppliedVersion, VersionState
from icemigrate.project.project_values import Project


def load_files(
    project: Project,
    *,
    is_expansion_limited: bool = True,
    target: str | None = None,
    names: Sequence[str] = (),
) -> LoadedMigrations:
    """All migration files.

    :param target: the target branch of the change, if known.
    :param is_expansion_limited: see :func:`load_migrations`.
    :param names: of tables that a user names, which can be those of templates.
    :raises IcemigrateError: the folder cannot be read.
    """

    def load(project: Project) -> LoadedMigrations:
        return load_migrations(
            project.migrations_dir,
            project.lists,
            top=project.top,
            is_expansion_limited=is_expansion_limited,
            order=version_order(project, target),
        )

    loaded = load(project)
    named = with_named_values(project, loaded.migrations, names)
    return loaded if named is project else load(named)


def load_unapplied(project: Project, applied: Iterable[AppliedVersion]) -> LoadedMigrations:
    """All migration files; those with the bytes that were applied are not parsed.

    :raises Mistakes: a file has an error; warnings are in the result.
    :raises IcemigrateError: the folder cannot be read.
    """
    known = {
        a.version.number: AppliedFile(a.fingerprint, a.checksum, a.description)
        for a in applied
        if a.state is VersionState.APPLIED and a.fingerprint
    }
    loaded = load_migrations(
        project.migrations_dir, project.lists, known, top=project.top, order=version_order(project)
    )
    raise_if_errors(loaded.diagnostics)
    return loaded


@contextmanager
def file_errors_first(project: Project) -> Iterator[None]:
    """A block in which errors of the files replace other errors (no such environment, no catalog).

    :raises Mistakes: with all errors of all files.
    :raises IcemigrateError: the original error, where the files have none; or their folder cannot be read.
    """
    try:
        yield
    except IcemigrateError:
        raise_if_errors(load_files(project).diagnostics)
        raise


def load_valid_files(
    project: Project, *, is_expansion_limited: bool = True, names: Sequence[str] = ()
) -> tuple[MigrationFile, ...]:
    """All migration files, which must be valid.

    :param is_expansion_limited: see :func:`load_migrations`.
    :param names: see :func:`load_files`.
    :raises Mistakes: with all errors of all files.
    :raises IcemigrateError: the folder cannot be read.
    """
    loaded = load_files(project, is_expansion_limited=is_expansion_limited, names=names)
    if has_errors(loaded.diagnostics):
        raise Mistakes(loaded.diagnostics)
    return loaded.migrations


def known_version(files: Sequence[AnyFile], text: str, option: str) -> int:
    """The number of a version that the user named.

    :raises UsageError: it is none, or no file has it.
    """
    known = {f.version.number: f.version.text for f in files}
    number = number_of(text)
    if number in known:
        return number
    hint = f"known versions: {', '.join(known.values())}" if known else "there are no migration files yet"
    raise UsageError(f"{option} {text}: no migration has this version", hint)


def raise_if_errors(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Stop where a diagnostic is an error.

    :raises Mistakes: with all of them.
    """
    if has_errors(diagnostics):
        raise Mistakes(diagnostics)
