"""Structured log lines of `ingest`, with hostile names and texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.cli import main
from icemigrate.cli.ingest import _show_batch
from icemigrate.cli.invocation import InvocationOptions
from icemigrate.commands import ingest as ingest_command
from icemigrate.errors import ExitCode
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_result import BatchResult
from icemigrate.pipeline.table_retries import TableOutcomes
from tests.support.table_project import TableProject

HOSTILE = 'a\n{"level": "info"}\x1b[2J\u202ex ' + "y" * 5000


def lines(text: str) -> list[dict[str, object]]:
    assert text.isascii()
    return [json.loads(line) for line in text.splitlines()]


def test_a_batch_and_each_new_problem_have_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    failed = TableBatch(HOSTILE, HOSTILE, "logs", 3, 0, problem="password=hunter22 " + HOSTILE)
    done = TableBatch("o.acme_logs", "acme", "logs", 2, 5)
    settings = InvocationOptions(log_format="json")
    batch = BatchResult(7, (failed, done), 3, TableOutcomes((failed,), (done,)))
    _show_batch(settings, True, batch)
    found = lines(capsys.readouterr().err)
    assert [(one["level"], one["event"], one["batch"]) for one in found] == [
        ("info", "batch", 7),
        ("warning", "table_failed", 7),
        ("info", "table_recovered", 7),
    ]
    assert (found[0]["entries"], found[0]["rows"], found[0]["deferred"]) == (2, 5, 3)
    assert len(str(found[1]["tenant"])) == 2000
    assert "hunter22" not in str(found[1]["problem"])
    assert found[2]["tenant"] == "acme"
    _show_batch(InvocationOptions(log_format="json", quiet=True), True, batch)
    assert [one["event"] for one in lines(capsys.readouterr().err)] == ["table_failed"]
    _show_batch(InvocationOptions(), True, batch)
    text = capsys.readouterr().err
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_many_problems_of_one_batch_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    failed = tuple(TableBatch("t", f"t{number}", "logs", 1, 0, problem="x") for number in range(1500))
    _show_batch(
        InvocationOptions(log_format="json"), True, BatchResult(1, failed, 1500, TableOutcomes(failed))
    )
    found = lines(capsys.readouterr().err)
    assert (len(found), found[-1]["event"], found[-1]["tables"]) == (1002, "more_tables", 500)


def test_all_lines_of_a_run_are_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = TableProject.create(
        tmp_path, "tables: [{name: o.acme_logs, columns: [{name: body, type: string}]}]\n"
    )
    log = tmp_path / "log"
    log.mkdir()

    def fail(*_arguments: object) -> int:
        from icemigrate.errors import EngineError

        raise EngineError("the storage\nfails", "run the command again")

    def start(_environment: object, _none: object, before_start: object, *_more: object) -> object:
        before_start()  # type: ignore[operator]
        return type("Engine", (), {"session": None})()

    monkeypatch.setattr(ingest_command, "engine_of", start)
    monkeypatch.setattr(ingest_command, "ingest", fail)
    arguments = ["ingest", str(log), "--table", "logs=o.${tenant}_logs", "--project", str(project.folder)]
    capsys.readouterr()
    assert main([*arguments, "--log-format", "json", "--metrics-address", "0"]) == ExitCode.ERROR
    shown = capsys.readouterr()
    assert shown.out == ""
    found = lines(shown.err)
    assert [one["event"] for one in found] == ["progress", "progress", "failed"]
    assert str(found[0]["message"]).startswith("Metrics: http://127.0.0.1:")
    assert found[1]["message"] == "Starting Spark …"
    assert (found[2]["level"], found[2]["hint"]) == ("error", "run the command again")

    assert main([*arguments, "--metrics-address", "nowhere"]) == ExitCode.USAGE
    assert "`nowhere` is not the address of a server" in capsys.readouterr().err
