"""One session of `icemigrate shell` on a real Spark, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAKE = "tables: [{name: db.t, columns: [{name: a, type: int}, {name: b, type: int}]}]\n"
DROP = "allow: [destructive db.t.b]\nbecause: x\ntables: [{name: db.t, drop_columns: [b]}]\n"
SCRIPT = """
plan --to 0001
apply --to 0001 --auto-approve
INSERT INTO local.db.t
VALUES (1, 2);
SELECT b + 40 AS before FROM db.t;
apply --auto-approve
SELECT b FROM db.t;
SELECT count(*) AS without, 'a' AS a FROM db.t;
rollback --auto-approve
SELECT b + 60 AS after FROM db.t;
plan --rehearse --redo 0002
"""


def test_a_session_plans_applies_queries_and_rolls_back_with_one_spark(tmp_path: Path) -> None:
    (tmp_path / "migrations").mkdir()
    (tmp_path / "icemigrate.yaml").write_text(
        "project: market\nenvironments: {local: {catalog: {type: sqlite}}}\n", encoding="utf-8"
    )
    for name, text in (("0001_make", MAKE), ("0002_drop", DROP)):
        (tmp_path / "migrations" / f"{name}.yaml").write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "icemigrate.cli", "shell", "--keep-going"],
        cwd=tmp_path,
        input=SCRIPT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    for text in ("|    42|", "|      1|  a|", "|   62|", "Rolled back 1 migration in local"):
        assert text in ran.stdout, (ran.stdout, ran.stderr)
    assert ran.stderr.count("Starting Spark") == 1, ran.stderr
    # The dropped column alone fails: every statement reads the table as it is.
    assert ran.stderr.count("error: ") == 1, ran.stderr
    assert "`b` cannot be resolved" in ran.stderr
    assert "all statements would succeed" in ran.stderr
