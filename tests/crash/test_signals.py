"""Ctrl-C and SIGTERM at every step end in one message, the lock given back and nothing half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode
from tests.crash.client import Blow
from tests.crash.stage import Copies, Stage
from tests.crash.walking import At
from tests.support.table_project import ORDERS, TableProject

_CODES = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_anything_is_done(copies: Copies, number: signal.Signals) -> None:
    stage = copies("project")
    end = stage.world.hit("apply", blow=Blow(0, number))
    assert end.code == _CODES[number], end
    assert "Traceback" not in end.err
    assert end.err.splitlines()[-1] in ("Interrupted.", "error: stopped by SIGTERM")
    assert stage.world.rows() == stage.pending


def test_a_signal_on_the_way_of_an_apply(walk: Callable[[At], int]) -> None:
    def at(stage: Stage, number: int) -> bool:
        world, sent = stage.world, (signal.SIGINT, signal.SIGTERM)[number % 2]
        world.restore(stage.pending)
        end = world.hit("apply", blow=Blow(number, sent))
        assert stage.is_at_rest, end
        if end.code == 0:
            stage.is_done()
            return False
        assert end.code == _CODES[sent], end
        assert end.is_one_message, end
        assert world.facts(trash=False) == stage.before, end
        assert world.standings() == {"0001": "applied"}
        return True

    assert walk(at) >= 6


ROWS_IN_FILE = 100_000
SIGNALLED = Path(__file__).with_name("signalled_command.py")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """A project with a table of rows, and a file of more."""
    project = TableProject.create(tmp_path_factory.mktemp("signalled"), ORDERS)
    lines = (f"{number},{number:060},1.5\n" for number in range(ROWS_IN_FILE))
    (project.folder / "rows.csv").write_text("id,customer,amount\n" + "".join(lines), encoding="utf-8")
    assert project.run("table", "insert", "sales.orders", "--data", str(project.folder / "rows.csv")) == 0
    return project


def files_and_snapshots(project: TableProject) -> tuple[set[Path], int]:
    files = {path for path in project.folder.rglob("*") if path.suffix in (".parquet", ".avro")}
    with project.tables() as tables:
        return files, len(tables.load("sales.orders").metadata["snapshots"])


@pytest.mark.parametrize("stage", ["statement", "data file", "manifest", "commit"])
@pytest.mark.parametrize(
    ("change", "number"),
    [
        ("insert", signal.SIGINT),
        ("insert", signal.SIGTERM),
        ("update", signal.SIGINT),
        ("upsert", signal.SIGINT),
    ],
)
def test_a_signal_during_a_change_of_rows_leaves_the_table_as_it_was(
    loaded: TableProject, change: str, stage: str, number: signal.Signals
) -> None:
    options = {
        "insert": ["--data", "rows.csv"],
        "update": ["--set", "amount=amount + 1", "--where", "id >= 0"],
        "upsert": ["--data", "new.csv", "--on", "id"],
    }
    (loaded.folder / "new.csv").write_text("id,customer\n1,x\n-1,y\n", encoding="utf-8")
    before = files_and_snapshots(loaded)
    command = ["table", change, "sales.orders", *options[change]]
    ended = subprocess.run(
        [sys.executable, str(SIGNALLED), stage, str(int(number)), *command],
        cwd=loaded.folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert "struck" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "bug" not in ended.stderr
    after = files_and_snapshots(loaded)
    if stage == "commit":  # the change is complete
        assert ended.returncode == ExitCode.OK, ended.stderr
        assert after[1] == before[1] + 1
    else:
        assert ended.returncode == _CODES[number], ended.stderr
        assert after == before
        assert ended.stdout == ""
