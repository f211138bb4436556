"""A plan to a file and back."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from icemigrate.declare.source import open_regular
from icemigrate.errors import IcemigrateError, why
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
    """Write a file, in UTF-8, that nobody ever sees half of.

    Half a character, which a file's name may hold, is written as JSON's strings have it.
    What is no file (a named pipe) is written to as it is; a link stays one.  What this process has open
    already (``/dev/stdout``, ``/dev/fd/3``, the file that its output goes to) keeps what stands in it.

    :raises IcemigrateError: the file cannot be written.
    """
    data = text.encode("utf-8", errors="backslashreplace")
    beside = None
    try:
        if (number := _descriptor(path)) is not None:
            _write_on(number, data)
            return
        target = path.resolve()
        if target.exists() and not target.is_file():
            path.write_bytes(data)
            return
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        beside.write_bytes(data)
        beside.replace(target)
    except OSError as error:
        if beside is not None:
            with suppress(OSError):  # on a disk that is read-only even what is not there cannot be removed
                beside.unlink(missing_ok=True)
        raise IcemigrateError(f"`{path}` cannot be written: {why(error)}") from error


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
        with open_regular(path) as stream:
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
