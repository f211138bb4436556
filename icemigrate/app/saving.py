"""A plan to a file and back."""

from __future__ import annotations

import os
from pathlib import Path

from icemigrate.errors import IcemigrateError
from icemigrate.plan import Plan
from icemigrate.plan_file import REMAKE, loads
from icemigrate.render.formats import render
from icemigrate.results import PlanResult


def save_plan(result: PlanResult, path: Path) -> None:
    """Write a plan; a reader never sees half of it.

    :raises IcemigrateError: the file cannot be written.
    """
    write_whole(path, render(result, "json"))


def write_whole(path: Path, text: str) -> None:
    """Write a file, in UTF-8, that nobody ever sees half of.

    Half a character, which a file's name may hold, is written as JSON's strings have it.
    What is no file (``/dev/stderr``, a named pipe) is written to as it is; a link stays one.

    :raises IcemigrateError: the file cannot be written.
    """
    data = text.encode("utf-8", errors="backslashreplace")
    beside = None
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            path.write_bytes(data)
            return
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        beside.write_bytes(data)
        beside.replace(target)
    except OSError as error:
        if beside is not None:
            beside.unlink(missing_ok=True)
        raise IcemigrateError(f"`{path}` cannot be written: {_why(error)}") from error


def saved_plan(path: Path) -> Plan:
    """Read a plan.

    :raises IcemigrateError: the file cannot be read, or is no plan.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        hint = "name a file that was written by: icemigrate plan --out FILE"
        raise IcemigrateError(f"`{path}` cannot be read: {_why(error)}", hint) from error
    except UnicodeDecodeError as error:
        raise IcemigrateError(f"`{path}` is not a saved plan: it is no text in UTF-8", REMAKE) from error
    return loads(text, f"`{path}`")


def _why(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
