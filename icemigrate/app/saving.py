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
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(render(result, "json"), encoding="utf-8")
        beside.replace(path)
    except OSError as error:
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
