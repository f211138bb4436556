"""A plan to a file and back."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from icemigrate.declare.source import shown_path
from icemigrate.errors import IcemigrateError, why
from icemigrate.files.boundary import OutsideRepository
from icemigrate.files.reading import open_named
from icemigrate.files.writing import replace_inside, replace_named
from icemigrate.plan import Plan
from icemigrate.plan_file import REMAKE, loads
from icemigrate.render.formats import render
from icemigrate.results import PlanResult

_OF_A_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")
_STANDARD_OUTPUTS = (1, 2)


def save_plan(result: PlanResult, path: Path) -> None:
    """Write a plan; a reader never sees half of it.

    :raises IcemigrateError: the file cannot be written.
    """
    write_whole(path, render(result, "json"))


def write_whole(path: Path, text: str) -> None:
    """Write a file that the user named, in UTF-8; no reader sees half of it.

    Half a character, which a file's name may hold, is written as JSON's strings have it.
    What this process has open already (``/dev/stdout``, ``/dev/fd/3``, the file that its output goes to)
    is appended to.  For links and named pipes see :func:`~icemigrate.files.writing.replace_named`.

    :raises IcemigrateError: the file cannot be written.
    """
    data = text.encode("utf-8", errors="backslashreplace")
    try:
        if (number := _descriptor(path)) is not None:
            _write_on(number, data)
        else:
            replace_named(path, data)
    except OSError as error:
        raise _not_written(path, error) from error


def write_file(path: Path, text: str, top: Path) -> None:
    """Write a file of the repository, in UTF-8; no reader sees half of it.

    :param top: the top of the repository.
    :raises IcemigrateError: the file cannot be written, or is a link.
    """
    try:
        replace_inside(path, text.encode("utf-8", errors="backslashreplace"), top)
    except OSError as error:
        raise _not_written(Path(shown_path(path)), error) from error


def _not_written(path: Path, error: OSError) -> IcemigrateError:
    hint = "put a file in the place of the link" if isinstance(error, OutsideRepository) else None
    return IcemigrateError(f"`{path}` cannot be written: {why(error)}", hint)


def _descriptor(path: Path) -> int | None:
    """The number under which this process has a file open: what it holds already is not to be replaced."""
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
    for printed in (sys.stdout, sys.stderr):
        printed.flush()
    with os.fdopen(os.dup(number), "wb") as stream:
        stream.write(data)


def saved_plan(path: Path) -> Plan:
    """Read a plan.

    :raises IcemigrateError: the file cannot be read, or is no plan.
    """
    try:
        with open_named(path) as stream:
            text = stream.read().decode("utf-8")
    except OSError as error:
        hint = "name a file that was written by: icemigrate plan --out FILE"
        if path.name.isdigit():
            hint = (
                f"a version is given by `--to {path}`; a file is one that `icemigrate plan --out FILE` wrote"
            )
        raise IcemigrateError(f"`{path}` cannot be read: {why(error)}", hint) from error
    except UnicodeDecodeError as error:
        raise IcemigrateError(f"`{path}` is not a saved plan: it is no text in UTF-8", REMAKE) from error
    return loads(text, f"`{path}`")
