"""Name, header and lock-file line of the next migration file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime, timezone

from icemigrate.commands.lock_file_checks import update_lock_file
from icemigrate.errors import IcemigrateError
from icemigrate.files.migration_folder import list_migrations
from icemigrate.files.parse.source_text import shown_path
from icemigrate.files.version_number import Version
from icemigrate.files.write.scaffold import new_file_name, remove_files, write_new
from icemigrate.project.project_values import Project


def schema_path(project: Project) -> str:
    """Where the schema of a migration file is, as seen from one."""
    return os.path.relpath(project.root / "schemas" / "migration.schema.json", project.migrations_dir)


def schema_header(project: Project) -> str:
    """The comment that names the schema for editors."""
    return f"yaml-language-server: $schema={schema_path(project)}"


def next_name(project: Project, words: str, taken: Iterable[Version] = ()) -> str:
    """The name of the next file.

    :param words: the words after the number.
    :param taken: versions before it, beside those of the existing files.
    :raises UsageError: the words have no character that a file name can have.
    :raises IcemigrateError: the folder cannot be read.
    """
    folder = project.migrations_dir
    there = [f.version for f in list_migrations(folder, project.top).files] if folder.exists() else []
    return new_file_name(words, [*there, *taken], datetime.now(timezone.utc))


def write_next_file(project: Project, name: str, text: str, *, begins_lock: bool = True) -> str:
    """Write a new file, and add it to the lock file.

    :param begins_lock: whether to create a missing lock file.
    :returns: its path, as the user would type it.
    :raises UsageError: the file exists.
    :raises IcemigrateError: it cannot be written.
    """
    (path,) = write_new(project.migrations_dir, {name: text}, project.top)
    try:
        update_lock_file(project, [name], begins=begins_lock)
    except IcemigrateError:
        remove_files([path], project.top)
        raise
    return shown_path(path)
