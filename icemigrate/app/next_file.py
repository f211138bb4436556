"""Where the next migration file goes: its name, what editors read of it, and the lock file that notes it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime, timezone

from icemigrate.app.lock_file import keep_lock
from icemigrate.declare.files import list_migrations
from icemigrate.declare.scaffold import new_file_name, remove, write_new
from icemigrate.declare.source import shown_path
from icemigrate.declare.version import Version
from icemigrate.errors import IcemigrateError
from icemigrate.project.values import Project


def schema_path(project: Project) -> str:
    """Where the schema of a migration file is, as seen from one."""
    return os.path.relpath(project.root / "schemas" / "migration.schema.json", project.migrations_dir)


def header(project: Project) -> str:
    """The comment from which an editor knows the schema."""
    return f"yaml-language-server: $schema={schema_path(project)}"


def next_name(project: Project, words: str, taken: Iterable[Version] = ()) -> str:
    """The name of the next file.

    :param words: what it is made of, behind the number.
    :param taken: versions that it comes behind, beside those of the files that are there.
    :raises UsageError: the words give no name.
    :raises IcemigrateError: the folder cannot be read.
    """
    folder = project.migrations_dir
    there = [f.version for f in list_migrations(folder, project.top).files] if folder.exists() else []
    return new_file_name(words, [*there, *taken], datetime.now(timezone.utc))


def put(project: Project, name: str, text: str, *, begins_lock: bool = True) -> str:
    """Write a file that is not there yet, and note it in the lock file.

    :param begins_lock: whether a lock file is begun where there is none.
    :returns: its path, as the user would type it.
    :raises UsageError: the file exists.
    :raises IcemigrateError: it cannot be written.
    """
    (path,) = write_new(project.migrations_dir, {name: text}, project.top)
    try:
        keep_lock(project, [name], begins=begins_lock)
    except IcemigrateError:
        remove([path], project.top)
        raise
    return shown_path(path)
