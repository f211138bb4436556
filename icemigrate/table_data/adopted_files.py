"""The files below a path that `adopt-parquet` takes into a table, and the partition values in their folders.

Names that begin with ``_`` or ``.`` are not data, as for Spark and Hive.  A symbolic link is refused: what it
names can change without the table.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.errors import UsageError, os_error_reason
from icemigrate.frozen import Frozen

CODE = "cannot-adopt"
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_KEY = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_FOREIGN_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders of other table formats, which keep files that their table no longer has."""


class FolderKey(Frozen):
    """A partition value in a folder's name, such as ``day=2026-11-01``.

    :param value: decoded; ``None`` for Hive's null.
    :param is_below: whether the folder is below the path that the user gives.
    """

    name: str
    value: str | None
    is_below: bool


class AdoptedFile(Frozen):
    """A file that a table may adopt.

    :param path: absolute, without symbolic links.
    :param keys: of its folders, from the top.
    :param modified_ns: when it was written last, in nanoseconds.
    """

    path: Path
    keys: tuple[FolderKey, ...]
    size: int
    modified_ns: int

    def problem(self, message: str, hint: str | None = None) -> Diagnostic:
        """A diagnostic of this file."""
        return file_problem(self.path, message, hint)


class FoundFiles(Frozen):
    """What is below a path.

    :param root: the path without symbolic links.
    :param problems: one for each entry that cannot be adopted.
    """

    root: Path
    files: tuple[AdoptedFile, ...]
    problems: tuple[Diagnostic, ...]

    def holds(self, location: str) -> bool:
        """Whether a file at a path of this machine is the root, or below it."""
        return location == str(self.root) or location.startswith(f"{str(self.root).rstrip('/')}/")


def file_problem(path: Path, message: str, hint: str | None = None) -> Diagnostic:
    """A diagnostic of a file or folder."""
    return Diagnostic(CODE, message, FilePosition(str(path)), hint)


def find_files(path: Path) -> FoundFiles:
    """The files of a path: itself, or all files below it.

    :raises UsageError: there is no file at the path, or a folder cannot be read.
    """
    try:
        root = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = os_error_reason(error) if isinstance(error, OSError) else "its symbolic links form a loop"
        raise UsageError(f"`{path}` cannot be read: {reason}", "give a Parquet file or a folder") from error
    above = tuple(_keys(root.parent if root.is_file() else root))
    found = list[AdoptedFile | Diagnostic]()
    try:
        if root.is_dir():
            found += _below(root, above)
        else:
            found.append(_file(root, above))
    except OSError as error:
        raise UsageError(
            f"`{error.filename or root}` cannot be read: {os_error_reason(error)}", "check its permissions"
        ) from error
    if not found:
        raise UsageError(
            f"there is no Parquet file in the folder `{root}`", "give a Parquet file or a folder"
        )
    files = [one for one in found if isinstance(one, AdoptedFile)]
    problems = [one for one in found if isinstance(one, Diagnostic)]
    return FoundFiles(root, tuple(files), (*problems, *_second_names(files)))


def is_unchanged(file: AdoptedFile) -> bool:
    """Whether a file is as it was when it was found."""
    try:
        now = file.path.lstat()
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) == (file.size, file.modified_ns) and stat.S_ISREG(now.st_mode)


def _below(folder: Path, keys: tuple[FolderKey, ...]) -> Iterator[AdoptedFile | Diagnostic]:
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 (names only, in an order that does not depend on the disk)
        path = folder / name
        if name in _FOREIGN_LOGS:
            yield file_problem(
                folder,
                f"it is a table of {_FOREIGN_LOGS[name]}, whose folder also has files of earlier states",
                "export the rows of the table to Parquet first",
            )
        if name.startswith(("_", ".")):
            continue
        if path.is_symlink():
            yield file_problem(path, "it is a symbolic link", "give the path of its target, or copy the file")
        elif path.is_dir():
            yield from _below(path, (*keys, *_key(name, is_below=True)))
        else:
            yield _file(path, keys)


def _file(path: Path, keys: tuple[FolderKey, ...]) -> AdoptedFile | Diagnostic:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return file_problem(path, "it is no regular file", "move it to another folder")
    if any(not character.isprintable() for character in str(path)):
        return file_problem(path, "its path has a character that cannot be printed", "rename it")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return file_problem(path, "its path is not UTF-8", "rename it")
    return AdoptedFile(path, keys, found.st_size, found.st_mtime_ns)


def _second_names(files: list[AdoptedFile]) -> Iterator[Diagnostic]:
    """A problem for each file that is a second name (a hard link) of another one."""
    first = dict[tuple[int, int], Path]()
    for file in files:
        found = file.path.lstat()
        other = first.setdefault((found.st_dev, found.st_ino), file.path)
        if other != file.path:
            yield file.problem(f"it is the same file as {other}", "remove one of the two names")


def _keys(folder: Path) -> Iterator[FolderKey]:
    for part in folder.parts:
        yield from _key(part, is_below=False)


def _key(name: str, *, is_below: bool) -> tuple[FolderKey, ...]:
    match = _KEY.fullmatch(name)
    if match is None:
        return ()
    value = unquote(match[2])
    return (FolderKey(unquote(match[1]), None if value == _HIVE_NULL else value, is_below),)
