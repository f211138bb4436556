"""Texts to files that the user or the project names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from icemigrate.errors import IcemigrateError, os_error_reason
from icemigrate.files.parse.source_text import shown_path
from icemigrate.system.file_writes import replace_inside, replace_named, replacing_stream, require_replaceable
from icemigrate.system.repository_boundary import OutsideRepository
from icemigrate.system.reserved_files import ReservedFile

_OF_A_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")
_STANDARD_OUTPUTS = (1, 2)


def write_user_file(path: Path, text: str) -> None:
    """Write a file that the user named, in UTF-8; no reader sees half of it.

    A surrogate character, which a file's name may contain, is written with JSON's escape.

    A file that this process has open already (``/dev/stdout``, ``/dev/fd/3``, the file of its output) is
    appended to. For links and named pipes see :func:`~icemigrate.system.file_writes.replace_named`.

    :raises IcemigrateError: the file cannot be written.
    """
    data = text.encode("utf-8", errors="backslashreplace")
    try:
        if (number := _descriptor(path)) is not None:
            _write_on(number, data)
        else:
            replace_named(path, data)
    except OSError as error:
        raise not_written(path, error) from error


@contextmanager
def user_stream(path: Path) -> Iterator[BinaryIO]:
    """A stream to a file that the user named; see :func:`write_user_file`.

    :raises OSError: the file cannot be written.
    """
    number = _descriptor(path)
    with replacing_stream(path) if number is None else _opened(number) as stream:
        yield stream


def require_writable(path: Path) -> None:
    """Check that :func:`write_user_file` can begin to write a file; nothing is changed.

    :raises IcemigrateError: its folder is missing or read-only, or it is a folder or a link.
    """
    try:
        if _descriptor(path) is None:
            require_replaceable(path)
    except OSError as error:
        raise not_written(path, error) from error


def write_file(path: Path, text: str, top: Path) -> None:
    """Write a file of the repository, in UTF-8; no reader sees half of it.

    :param top: the top of the repository.
    :raises IcemigrateError: the file cannot be written, or is a link.
    """
    try:
        replace_inside(path, text.encode("utf-8", errors="backslashreplace"), top)
    except OSError as error:
        raise not_written(Path(shown_path(path)), error) from error


def not_written(path: Path, error: OSError) -> IcemigrateError:
    """The error of a file that cannot be written."""
    hint = "replace the link with a file" if isinstance(error, OutsideRepository) else None
    if isinstance(error, ReservedFile):
        hint = "give the output another name"
    reason = os_error_reason(error) if error.strerror else str(error)
    return IcemigrateError(f"`{path}` cannot be written: {reason}", hint)


def _descriptor(path: Path) -> int | None:
    """The descriptor under which this process has a file open: its content must not be replaced."""
    named = _OF_A_DESCRIPTOR.fullmatch(str(path))
    if named is not None:
        return int(named[1])
    with suppress(OSError):
        there = path.stat()
        for number in _STANDARD_OUTPUTS:
            with suppress(OSError):
                if os.path.samestat(os.fstat(number), there):
                    return number
    return None


def _write_on(number: int, data: bytes) -> None:
    with _opened(number) as stream:
        stream.write(data)


def _opened(number: int) -> BinaryIO:
    for printed in (sys.stdout, sys.stderr):
        printed.flush()
    return os.fdopen(os.dup(number), "wb")
