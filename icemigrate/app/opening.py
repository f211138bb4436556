"""A project and its files, opened for a use case: every mistake of all of them at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from icemigrate.app.mapping import Names, catalog_settings
from icemigrate.catalog import open_catalog
from icemigrate.catalog.port import Catalog
from icemigrate.declare.files import Loaded, load_migrations
from icemigrate.declare.migration import MigrationFile
from icemigrate.diagnostics import Diagnostic, has_errors
from icemigrate.errors import HistoryError, Mistakes, UsageError
from icemigrate.history.properties import History
from icemigrate.history.read import read
from icemigrate.model.names import BadName, TableName
from icemigrate.project import Environment, Project, choose_environment, load_project


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
    return load_migrations(project.migrations_dir, project.lists)


def sound_files(project: Project) -> tuple[MigrationFile, ...]:
    """All migration files, none of which has a mistake of its own.

    :raises Mistakes: with all mistakes of all files.
    :raises IcemigrateError: the folder cannot be read.
    """
    loaded = load_files(project)
    if has_errors(loaded.diagnostics):
        raise Mistakes(loaded.diagnostics)
    return loaded.migrations


@dataclass(frozen=True, slots=True)
class Opened:
    """A project in one environment, with its catalog open for reading."""

    project: Project
    environment: Environment
    catalog: Catalog
    names: Names

    @property
    def history_name(self) -> TableName:
        """The history table's name.

        :raises HistoryError: the project file names it wrongly.
        """
        try:
            return TableName.parse(self.project.history)
        except BadName as error:
            raise HistoryError(f"`history:` in the project file: {error}") from error

    def history(self) -> History:
        """What the history says; empty before the first apply.

        :raises HistoryError: it cannot be used.
        """
        found = read(self.catalog, self.history_name, self.project.name)
        return History(self.project.name) if found is None else found


@contextmanager
def opened(project: Project, environment: str | None) -> Iterator[Opened]:
    """The project in an environment, until the block ends.

    :param environment: ``None`` for the project's default.
    :raises UsageError: there is no such environment.
    :raises Mistakes: variables that it names are missing.
    :raises CatalogError: there is no such catalog.
    """
    chosen = choose_environment(project, environment, dict(os.environ))
    catalog = open_catalog(catalog_settings(chosen))
    try:
        yield Opened(project, chosen, catalog, Names(chosen))
    finally:
        catalog.close()


def known_version(files: tuple[MigrationFile, ...], text: str, option: str) -> int:
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
