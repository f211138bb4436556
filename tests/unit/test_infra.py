"""`make init-infra` on a lake whose migrations were rolled back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra import __main__ as infra
from infra.lake import lake


@pytest.mark.parametrize(
    ("states", "codes", "applies", "result"),
    [
        (["pending", "pending"], [0], [[]], 0),
        (["applied"], [0], [[]], 0),
        (["applied", "held", "held"], [0, 0], [["--redo", "all"], []], 0),
        (["held", "pending"], [3], [["--redo", "all"]], 3),
    ],
)
def test_migrations_that_were_rolled_back_are_applied_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    states: list[str],
    codes: list[int],
    applies: list[list[str]],
    result: int,
) -> None:
    document = json.dumps({"migrations": [{"state": state} for state in states]})
    answers, found = iter(codes), list[list[str]]()

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if "status" in command:
            return subprocess.CompletedProcess(command, 0, document)
        found.append(command[command.index("--auto-approve") + 1 :])
        return subprocess.CompletedProcess(command, next(answers))

    monkeypatch.setattr(subprocess, "run", run)
    assert infra.apply_migrations(lake(tmp_path, {})) == result
    assert found == applies
