"""The files below a path that `adopt-parquet` takes into a table, and the partition values in their folders.

Names that begin with ``_`` or ``.`` are not data, as for Spark and Hive.  A symbolic link is refused: what it
names can change without the table.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.errors import UsageError, os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.locations import normalize_location
from icemigrate.wal.storage_path import AnyPath, StoragePath, StoredFile, open_path

CODE = "cannot-adopt"
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_KEY = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_NOT_IN_URLS = "?#"
"""Characters that end the path of a URL for DuckDB and PyIceberg."""
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

    :param path: absolute, without symbolic links, or on a storage.
    :param keys: of its folders, from the top.
    :param modified_ns: when it was written last, in nanoseconds.
    """

    path: AnyPath
    keys: tuple[FolderKey, ...]
    size: int
    modified_ns: int

    def problem(self, message: str, hint: str | None = None) -> Diagnostic:
        """A diagnostic of this file."""
        return file_problem(self.path, message, hint)


class FoundFiles(Frozen):
    """What is below a path.

    :param root: the path without symbolic links, or on a storage.
    :param problems: one for each entry that cannot be adopted.
    """

    root: AnyPath
    files: tuple[AdoptedFile, ...]
    problems: tuple[Diagnostic, ...]

    def holds(self, location: str) -> bool:
        """Whether a file is the root, or below it.

        :param location: in the spelling of :func:`~icemigrate.iceberg.locations.normalize_location`.
        """
        return location == str(self.root) or location.startswith(f"{str(self.root).rstrip('/')}/")


def file_problem(path: AnyPath | str, message: str, hint: str | None = None) -> Diagnostic:
    """A diagnostic of a file or folder."""
    return Diagnostic(CODE, message, FilePosition(str(path)), hint)


def open_adopted(text: str, settings: Mapping[str, str]) -> AnyPath:
    """The path that a user gives, in the spelling that manifests have.

    :param settings: how to sign in to a storage, by PyIceberg's keys.
    :raises UsageError: it is a URL that cannot be used.
    """
    found = open_path(text, settings)
    return replace(found, url=normalize_location(found.url)) if isinstance(found, StoragePath) else found


def adopted_root(path: AnyPath) -> AnyPath:
    """The path as an adoption has it; its files may be gone."""
    return path if isinstance(path, StoragePath) else Path(os.path.realpath(path))


@contextmanager
def open_parquet(path: AnyPath) -> Iterator[Any]:
    """What pyarrow reads parts of a file from: a stream of a storage, which is closed, or the path.

    :raises OSError: a file on a storage cannot be opened.
    """
    if not isinstance(path, StoragePath):
        yield path
        return
    with path.open_file() as stream:
        yield stream


def find_files(path: AnyPath) -> FoundFiles:
    """The files of a path: itself, or all files below it.

    :raises UsageError: there is no file at the path, or a folder cannot be read.
    """
    if isinstance(path, StoragePath):
        return _find_stored(path)
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
        raise _no_file(root)
    files = [one for one in found if isinstance(one, AdoptedFile)]
    problems = [one for one in found if isinstance(one, Diagnostic)]
    return FoundFiles(root, tuple(files), (*problems, *_second_names(files)))


def _no_file(root: AnyPath) -> UsageError:
    return UsageError(f"there is no Parquet file in the folder `{root}`", "give a Parquet file or a folder")


def _find_stored(root: StoragePath) -> FoundFiles:
    """The files of a path on a storage."""
    above = tuple(_keys(PurePosixPath(root.url.partition("://")[2])))
    try:
        if root.is_dir():
            stored = sorted(root.files(is_recursive=True), key=lambda one: one.path)
        else:
            stored, above = [root.file()], tuple(_keys(PurePosixPath(root.parent.url.partition("://")[2])))
    except OSError as error:
        raise UsageError(
            f"`{root}` cannot be read: {os_error_reason(error)}",
            "check the URL, and the `storage` of the environment",
        ) from error
    found, logs = list[AdoptedFile | Diagnostic](), set[str]()
    for one in stored:
        parts = PurePosixPath(str(one.path).removeprefix(str(root)).strip("/")).parts
        if (log := next((part for part in parts if part in _FOREIGN_LOGS), None)) is not None:
            folder = str(one.path).partition(f"/{log}")[0]
            if folder not in logs:
                logs.add(folder)
                found.append(_foreign_table(folder, log))
        elif not any(part.startswith(("_", ".")) for part in parts):
            keys = (key for part in parts[:-1] for key in _key(part, is_below=True))
            found.append(_stored_file(one, (*above, *keys)))
    if not found:
        raise _no_file(root)
    files = tuple(one for one in found if isinstance(one, AdoptedFile))
    return FoundFiles(root, files, tuple(one for one in found if isinstance(one, Diagnostic)))


def _stored_file(file: StoredFile, keys: tuple[FolderKey, ...]) -> AdoptedFile | Diagnostic:
    name = str(file.path)
    if (bad := next((character for character in name if character in _NOT_IN_URLS), None)) is not None:
        return file_problem(name, f"for readers, `{bad}` ends the path of a URL", "rename it")
    if not name.isprintable():
        return file_problem(name, "its path has a character that cannot be printed", "rename it")
    return AdoptedFile(file.path, keys, file.size, round(file.modified_s * 1e9))


def is_unchanged(file: AdoptedFile) -> bool:
    """Whether a file is as it was when it was found."""
    if isinstance(file.path, StoragePath):
        try:
            found = file.path.file()
        except OSError:
            return False
        return (found.size, round(found.modified_s * 1e9)) == (file.size, file.modified_ns)
    try:
        now = file.path.lstat()
    except OSError:
        return False
    return (now.st_size, now.st_mtime_ns) == (file.size, file.modified_ns) and stat.S_ISREG(now.st_mode)


def _below(folder: Path, keys: tuple[FolderKey, ...]) -> Iterator[AdoptedFile | Diagnostic]:
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 (names only, in an order that does not depend on the disk)
        path = folder / name
        if name in _FOREIGN_LOGS:
            yield _foreign_table(folder, name)
        if name.startswith(("_", ".")):
            continue
        if path.is_symlink():
            yield file_problem(path, "it is a symbolic link", "give the path of its target, or copy the file")
        elif path.is_dir():
            yield from _below(path, (*keys, *_key(name, is_below=True)))
        else:
            yield _file(path, keys)


def _foreign_table(folder: AnyPath | str, log: str) -> Diagnostic:
    return file_problem(
        folder,
        f"it is a table of {_FOREIGN_LOGS[log]}, whose folder also has files of earlier states",
        "export the rows of the table to Parquet first",
    )


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
    first = dict[tuple[int, int], AnyPath]()
    for file in files:
        assert isinstance(file.path, Path), "they are of this machine"
        found = file.path.lstat()
        other = first.setdefault((found.st_dev, found.st_ino), file.path)
        if other != file.path:
            yield file.problem(f"it is the same file as {other}", "remove one of the two names")


def _keys(folder: PurePath) -> Iterator[FolderKey]:
    for part in folder.parts:
        yield from _key(part, is_below=False)


def _key(name: str, *, is_below: bool) -> tuple[FolderKey, ...]:
    match = _KEY.fullmatch(name)
    if match is None:
        return ()
    value = unquote(match[2])
    return (FolderKey(unquote(match[1]), None if value == _HIVE_NULL else value, is_below),)
