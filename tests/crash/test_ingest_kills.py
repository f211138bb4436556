"""`ingest` and a writer of its log, killed at random moments; see `tests/crash/ingest_kills.py`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tests.crash.ingest_kills import kill_and_count


def test_each_acknowledged_entry_is_in_a_table_exactly_once(tmp_path: Path) -> None:
    seed = 0 if os.environ.get("CI") else secrets.randbelow(1 << 32)
    counts, kills = kill_and_count(tmp_path, 3, seed)
    assert kills == {"ingest": 3, "writer": 3}
    assert [count for count in counts if not count.is_right] == [], f"seed {seed}"
    assert sum(count.acknowledged for count in counts) > 100
