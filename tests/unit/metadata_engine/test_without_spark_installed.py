"""`apply` and `rollback` where PySpark is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = (
    "project: shop\nenvironments: {dev: {catalog: {name: lake, type: sqlite, uri: c.db, warehouse: wh}}}\n"
)
MIGRATIONS = {
    "0001_create": "tables:\n  - name: db.t\n    columns: [{name: id, type: long}, {name: a, type: int}]\n"
    "    partition_by: ['bucket(4, id)']\n",
    "0002_change": "allow: [destructive, incompatible]\ntables:\n  - name: db.t\n    drop_columns: [a]\n"
    "    columns: [{name: b, type: string}]\n",
}
# The libraries of Spark, SQL and REST catalogs cannot be imported, as where they are not installed.
RUN = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pyiceberg", "sqlalchemy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from icemigrate.cli import main
sys.argv = ["icemigrate", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "icemigrate.yaml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "migrations").mkdir()
    for name, text in MIGRATIONS.items():
        (tmp_path / "migrations" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def icemigrate(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_metadata_goes_forward_back_and_forward(folder: Path) -> None:
    for words in (
        ("apply", "--apply-with", "metadata", "-y"),
        ("rollback", "-y"),
        ("apply", "--redo", "0002", "--apply-with", "metadata", "-y"),
        ("rollback", "--to", "0", "-y"),
    ):
        done = icemigrate(folder, *words)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stdout + done.stderr
    assert "2 rolled back" in icemigrate(folder, "status").stdout


def test_what_needs_spark_is_refused_before_a_table_changes(folder: Path) -> None:
    keep = "tables: [{name: db.t, backfill: [{set: {a: '1'}}]}]\n"
    (folder / "migrations" / "0002_change.yaml").write_text(keep, encoding="utf-8")
    done = icemigrate(folder, "apply", "--apply-with", "metadata", "-y")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "migration 0002 needs Spark, which `apply_with: metadata` does not use: `db.t`: " in done.stdout
    assert not (folder / "c.db").exists()
