"""Spark's JVM is killed in the middle of a statement: the command says so, and the next one goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from icemigrate.errors import ExitCode
from tests.crash.stage import Stage
from tests.crash.world import Ended, World

_SECONDS = 240.0
_TOP = Path(__file__).parents[2]


def killed_in(world: World, statement: str, command: str) -> Ended:
    """Run a command whose JVM is killed in the middle of a statement."""
    args = [str(world.folder), statement, command, "--apply-with", "spark", "--auto-approve"]
    ended = subprocess.run(
        [sys.executable, "-m", "tests.crash.dying_jvm", *args],
        cwd=_TOP,
        env={**os.environ, **world.environment, "ICEMIGRATE_LOCK_LEASE": "10"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def test_a_jvm_that_is_killed_in_a_statement_of_apply_and_of_rollback(stage: Stage, tmp_path: Path) -> None:
    stage = stage.copied(tmp_path / "world", "atomic")
    world = stage.world
    for command, statement, way in (
        (
            "apply",
            "ADD COLUMN",
            "`icemigrate apply` continues, `icemigrate rollback` undoes it",
        ),
        ("rollback", "RENAME TO", "`icemigrate rollback` continues"),
    ):
        end = killed_in(world, statement, command)
        assert end.code == ExitCode.ERROR, end
        assert end.is_one_message, end
        assert "error: Spark's JVM exited" in end.err, end
        assert "migration 0002 stopped at: " in end.err, end
        assert way in " ".join(end.err.split()), end
        assert not (world.folder / "answered").exists(), "it was killed in the middle of the statement"
        assert world.standings()["0002"] == "interrupted"
        world.done(command)
        (stage.is_done if command == "apply" else stage.is_undone)()
        assert stage.is_at_rest
