"""Random worlds, commands, kills, pauses and changes of other clients, compared with an independent model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# In CI the seeds are the same each time, as the examples of Hypothesis are.
SAME, FRESH = (60, 0) if os.environ.get("CI") else (50, 10)


def test_every_run_ends_as_the_model_says(tmp_path: Path) -> None:
    """In a process of its own: clients that are killed fill a JVM, and other tests have one too.

    A run that fails prints its seed and the command that repeats it.
    """
    command = [sys.executable, "-m", "tests.crash.model.random_runs", "--seed", "0"]
    ran = subprocess.run(
        [*command, "--runs", str(SAME), "--fresh", str(FRESH)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = ran.stdout + ran.stderr[-3000:]
    assert ran.returncode == 0, said
    summary = json.loads(ran.stdout.splitlines()[-1])
    counts = summary["counts"]
    assert counts["runs"] == SAME + FRESH, said
    assert counts["exit 0"] > counts["runs"], counts
    acts = sum(
        number for kind, number in counts.items() if kind.startswith("foreign ") and " at " not in kind
    )
    assert counts.get("foreign refused", 0) < acts / 5, counts
    for kind in ("kill at a change", "kill at a call", "pause at a change", "take over", "foreign add"):
        assert counts[kind] >= 3, f"too few of `{kind}`: {counts}"
