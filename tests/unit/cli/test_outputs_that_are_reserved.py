"""No output of a command replaces a file of the project, or a file that the command reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from tests.support.table_project import TableProject, orders

__all__ = ["orders"]
RESERVED = ["icemigrate.yaml", ".icemigrate/catalog.db", "migrations/0001_step.yaml", "data file"]
COMMANDS = {
    "query": ["table", "query", "sales.orders", "--format", "parquet", "-o"],
    "generate": ["generate", "sales.orders", "--rows", "5", "-o"],
    "describe": ["table", "describe", "sales.orders", "--format", "json={}"],
    "insert": ["table", "insert", "sales.orders", "--data", "bad.csv", "--bad-rows"],
    "plan": ["plan", "--out"],
}


def reserved_path(project: TableProject, name: str) -> Path:
    if name == "data file":
        return next((project.folder / ".icemigrate" / "warehouse").rglob("*.parquet"))
    return project.folder / name


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("command", list(COMMANDS))
def test_an_output_replaces_no_file_of_the_project(
    orders: TableProject, command: str, name: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(orders.folder)
    Path("good.csv").write_text("id\n1\n", encoding="utf-8")
    Path("bad.csv").write_text("id\n2\nx\n", encoding="utf-8")
    assert orders.run("table", "insert", "sales.orders", "--data", "good.csv") == ExitCode.OK
    path = reserved_path(orders, name)
    before = path.read_bytes()
    *words, last = COMMANDS[command]
    output = [last.format(path)] if "{}" in last else [last, str(path)]
    assert orders.run(*words, *output) != ExitCode.OK
    assert "it is a file of the project" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert orders.run("table", "query", "sales.orders") == ExitCode.OK


def test_a_refused_output_is_not_written_with_the_error(
    orders: TableProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(orders.folder)
    Path("rows.csv").write_text("id\n1\n", encoding="utf-8")
    command = ["table", "insert", "sales.orders", "--data", "rows.csv", "--format", "json=rows.csv"]
    assert orders.run(*command) == ExitCode.USAGE
    assert Path("rows.csv").read_text(encoding="utf-8") == "id\n1\n"
