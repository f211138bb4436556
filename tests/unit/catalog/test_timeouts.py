"""A catalog that accepts a connection and never answers ends every command with one message, in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from icemigrate.cli import main
from icemigrate.errors import CodeHostError, ExitCode
from icemigrate.system.deadline import DeadlineExceeded, call_with_deadline
from icemigrate.vcs.code_host import JsonApi
from tests.support.stuck_server import HTTP, POSTGRES, WAYS, StuckServer


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["rest", "sql"])
def server(request: pytest.FixtureRequest, way: str, tmp_path: Path) -> Iterator[StuckServer]:
    """A server, and a project in the working directory whose catalog it is."""
    made = StuckServer(way, HTTP if request.param == "rest" else POSTGRES)
    uri = (
        f"http://127.0.0.1:{made.port}"
        if request.param == "rest"
        else f"postgresql://127.0.0.1:{made.port}/c"
    )
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_create.yaml").write_text(
        "namespaces: [db]\ntables:\n  - name: db.t\n    columns: [{name: id, type: long}]\n"
    )
    (tmp_path / "icemigrate.yaml").write_text(
        f"environments:\n  prod:\n    catalog: {{type: {request.param}, uri: '{uri}', timeout: 1s}}\n"
    )
    yield made
    made.close()


@pytest.mark.parametrize("words", ["status", "plan", "apply --auto-approve"])
def test_a_command_ends_with_one_message(
    server: StuckServer,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(words.split())
    said = capsys.readouterr()
    assert code == ExitCode.ERROR, said
    assert "did not answer within 1 s" in said.err
    assert "`timeout` of the environment's catalog" in said.err
    assert "Traceback" not in said.err


def test_doctor_reports_it(
    server: StuckServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["doctor"])
    said = capsys.readouterr()
    assert "did not answer within 1 s" in said.out + said.err


def test_a_code_host_that_does_not_answer_is_an_error(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icemigrate.vcs.code_host._TIMEOUT_S", 1)
    made = StuckServer(way)
    with pytest.raises(CodeHostError, match=r"did not answer within 1 s|does not answer: timed out"):
        JsonApi(f"http://127.0.0.1:{made.port}", ("X", "y"), "hint").call(
            "GET", f"http://127.0.0.1:{made.port}/x"
        )
    made.close()


def test_a_call_in_time_gives_its_result_or_its_own_error() -> None:
    assert call_with_deadline(5, lambda: 7) == 7
    with pytest.raises(KeyError):
        call_with_deadline(5, lambda: {}["x"])
    with pytest.raises(DeadlineExceeded, match=r"no answer within 0\.05 s"):
        call_with_deadline(0.05, Event().wait)
