"""A plan to a file and back."""

from __future__ import annotations

from pathlib import Path

from icemigrate.commands.user_files import write_user_file
from icemigrate.errors import IcemigrateError, UsageError, os_error_reason
from icemigrate.planning.plan import Plan
from icemigrate.planning.plan_file import parse_plan_file
from icemigrate.render.formats import render
from icemigrate.results.command_results import PlanResult
from icemigrate.system.file_reads import open_named


def save_plan(result: PlanResult, path: Path) -> None:
    """Write a plan; a reader never sees half of it.

    :raises IcemigrateError: the file cannot be written.
    """
    write_user_file(path, render(result, "json"))


def load_saved_plan(path: Path) -> Plan:
    """Read a plan.

    :raises UsageError: there is no such file, or it is not a plan.
    :raises StalePlan: it was edited or damaged since it was saved.
    :raises IcemigrateError: the file cannot be read.
    """
    try:
        with open_named(path) as stream:
            text = stream.read().decode("utf-8")
    except OSError as error:
        is_wrong = isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError))
        kind = UsageError if is_wrong or path.is_dir() else IcemigrateError
        raise kind(f"`{path}` cannot be read: {os_error_reason(error)}", _meant(path)) from error
    except UnicodeDecodeError as error:
        message = f"`{path}` is not a saved plan: it is not UTF-8 text"
        raise UsageError(message, _meant(path)) from error
    try:
        return parse_plan_file(text, f"`{path}`")
    except UsageError as error:
        raise UsageError(error.message, _meant(path)) from error


def _meant(path: Path) -> str:
    """A hint about a file that is not a plan."""
    a_file = "`icemigrate plan --out FILE` writes a plan file"
    if path.name.isascii() and path.name.isdigit():
        return f"pass a version as `--to {path}`; {a_file}"
    version = path.name.partition("_")[0]
    if path.suffix in (".yaml", ".yml", ".sql") and version.isascii() and version.isdigit():
        return f"`icemigrate apply --to {version}` applies the migrations up to this version; {a_file}"
    return "pass a file that `icemigrate plan --out FILE` wrote"
