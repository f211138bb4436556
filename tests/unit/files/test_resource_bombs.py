"""Files below one megabyte end in a verdict or one clear error, in little time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.resource_bombs import FIXED

ROOT = Path(__file__).parents[3]
RANDOM = 25


def test_no_small_file_takes_all_time_or_memory() -> None:
    """In a process of its own, which forks one with limits for each project."""
    words = [sys.executable, "-m", "tests.support.resource_bombs", "--random", str(RANDOM), "--seed", "1000"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("\n") == len(FIXED) + RANDOM
