"""Wrong paths of the commands of `table`: usage (64) for a file to read, an error (1) for one to write."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from tests.support.table_project import TableProject, orders

__all__ = ["orders"]

READERS = {
    "insert": ["insert", "sales.orders", "--data"],
    "upsert": ["upsert", "sales.orders", "--on", "id", "--data"],
    "create": ["create", "sales.new", "--schema"],
    "bad rows": ["insert", "sales.orders", "--bad-rows", "rows.csv", "--data"],
}
WRITERS = {
    "query": ["query", "sales.orders", "--format", "csv", "-o"],
    "sql": ["sql", "SELECT * FROM sales.orders", "--format", "csv", "-o"],
    "graph": ["snapshots", "sales.orders", "-o"],
    "plot": ["describe", "sales.orders", "-o"],
    "bad rows": ["insert", "sales.orders", "--data", "bad.csv", "--bad-rows"],
}


@pytest.fixture
def folder(orders: TableProject, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(orders.folder)
    Path("rows.csv").write_text("id\n1\n", encoding="utf-8")
    Path("bad.csv").write_text("id\nx\n", encoding="utf-8")
    Path("folder.csv").mkdir()
    Path("folder.yaml").mkdir()
    Path("loop.csv").symlink_to("loop.csv")
    Path("dangling.csv").symlink_to("missing")
    return orders.folder


def error_of(orders: TableProject, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit code, message and hint of a command of `table`."""
    capsys.readouterr()
    code = orders.run("table", *args)
    message, hint = [line for line in capsys.readouterr().err.splitlines() if line][-2:]
    assert message.startswith("error: ")
    return code, message.removeprefix("error: "), hint.strip()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("row.csv", "there is no file `row.csv`", "did you mean `rows.csv`?"),
        ("x/y/z.csv", "there is no file `x/y/z.csv`", "check the path: it begins in the current folder"),
        ("rows.csv/a.csv", "there is no file `rows.csv/a.csv`", "check the path: it begins in the current"),
        ("dangling.csv", "`dangling.csv` is a link that leads to no file", "name another file"),
        (
            "loop.csv",
            "the file `loop.csv` cannot be read: too many levels of symbolic links",
            "check the path",
        ),
        (
            "n" * 300 + ".csv",
            f"the file `{'n' * 300}.csv` cannot be read: file name too long",
            "check the path",
        ),
        ("folder.csv", "`folder.csv` is a folder", "name its files, for example `folder.csv/*.parquet`"),
    ],
)
def test_a_file_to_read_that_is_none_is_wrong_usage(
    orders: TableProject,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    reader: str,
    path: str,
    message: str,
    hint: str,
) -> None:
    code, found, advice = error_of(orders, capsys, *READERS[reader], path)
    assert (code, found) == (ExitCode.USAGE, message)
    assert advice.startswith(hint) or "did you mean" in advice


@pytest.mark.parametrize("path", ["missing.yaml", "missing.json", "folder.yaml", "n" * 300 + ".yaml"])
def test_a_schema_file_that_is_none_is_wrong_usage(
    orders: TableProject, folder: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    code, found, advice = error_of(orders, capsys, *READERS["create"], path)
    assert code == ExitCode.USAGE
    assert f"`{path}`" in found
    assert advice


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_the_user_may_not_read_is_wrong_usage(
    orders: TableProject,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    reader: str,
) -> None:
    """A double: tests may run as root, who reads every file."""
    stat = os.stat

    def refuse(path: object, **options: object) -> os.stat_result:
        if "secret" in os.fspath(path) if isinstance(path, (str, Path)) else False:
            raise PermissionError(13, "Permission denied")
        return stat(path, **options)  # type: ignore[arg-type, call-overload, no-any-return]

    monkeypatch.setattr(os, "stat", refuse)
    code, found, advice = error_of(orders, capsys, *READERS[reader], "secret/rows.csv")
    assert (code, found) == (
        ExitCode.USAGE,
        "the file `secret/rows.csv` cannot be read: permission denied",
    )
    assert advice == "run the command as a user who may read it"


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("path", ["missing/x.svg", "folder.csv", "rows.csv/x.svg", "n" * 300 + ".svg"])
def test_a_file_that_cannot_be_written_is_an_error(
    orders: TableProject, folder: Path, capsys: pytest.CaptureFixture[str], writer: str, path: str
) -> None:
    if path == "folder.csv" and writer in ("graph", "plot"):
        path = "folder.svg"
        Path(path).mkdir()
    capsys.readouterr()
    code = orders.run("table", *WRITERS[writer], path)
    shown = capsys.readouterr().err
    assert code == ExitCode.ERROR, shown
    assert f"`{path}` cannot be written: " in shown


def test_the_json_document_has_the_exit_code(
    orders: TableProject, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert orders.run("table", *READERS["insert"], "row.csv", "--format", "json") == ExitCode.USAGE
    document = json.loads(capsys.readouterr().out)
    assert (document["exit_code"], document["error"]) == (64, "UsageError")
