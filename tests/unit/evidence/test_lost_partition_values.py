"""What restores partition values needs Spark, and planning refuses it before a table is reached."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from icemigrate.catalog import CatalogSettings
from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.snapshot_files import append_snapshot
from icemigrate.metadata_engine.sqlite_store import open_sqlite_store
from icemigrate.metadata_engine.table_store import TableCommit
from icemigrate.project import Project, open_project

TABLE = TableName.parse("db.t")
MAKE = """
tables:
  - name: db.t
    columns: [{name: id, type: long}, {name: region, type: string}]
    partition_by: ["TRANSFORM"]
  - name: db.other
    columns: [{name: id, type: long}]
"""
DROP = """
allow: [destructive, incompatible, irreversible]
tables:
  - name: db.t
    drop_columns: [region]
    partition_by: []
  - name: db.other
    columns: [{name: more, type: long}]
"""

RESTORE = """
tables:
  - {name: db.t, restore_columns: [region]}
  - {name: db.other, columns: [{name: last, type: long}]}
"""


def dropped(folder: Path, transform: str, *, has_rows: bool) -> Project:
    """A project that has dropped a column by which a table is partitioned."""
    (folder / "migrations").mkdir()
    (folder / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    write(folder, "0001_make", MAKE.replace("TRANSFORM", transform))
    project = dataclasses.replace(open_project(folder), apply_with="metadata")
    apply(project, plan(project).plan)
    if has_rows:
        _commit_to_main(folder)
    write(folder, "0002_drop", DROP)
    apply(project, plan(project).plan)
    return project


def write(folder: Path, name: str, text: str) -> None:
    (folder / "migrations" / f"{name}.yaml").write_text(text, encoding="utf-8")


def _commit_to_main(folder: Path) -> None:
    home = folder / ".icemigrate"
    settings = CatalogSettings("local", "sqlite", str(home / "catalog.db"), f"{home}/warehouse")
    store = open_sqlite_store(settings)
    table = store.load(TABLE)
    assert table is not None
    added = append_snapshot(table.json, store.files, {}, parent_id=None, now_ms=table.json["last-updated-ms"])
    number = added.json["snapshot-id"]
    updates = (
        {"action": "add-snapshot", "snapshot": added.json},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
    )
    store.commit([TableCommit(TABLE, table, updates)])
    store.close()


@pytest.mark.parametrize(
    ("transform", "has_rows", "is_lost"),
    [("region", True, True), ("region", False, False), ("bucket(4, region)", True, False)],
)
def test_a_migration_that_restores_partition_values_is_refused_while_it_is_planned(
    tmp_path: Path, transform: str, has_rows: bool, is_lost: bool
) -> None:
    project = dropped(tmp_path, transform, has_rows=has_rows)
    write(tmp_path, "0003_restore", RESTORE)
    result = plan(project)
    found = [d.message for d in result.diagnostics if d.code == "needs-spark"]
    part = "`db.t`: restore the partition values of a column"
    refusal = f"migration 0003 needs Spark, which `apply_with: metadata` does not use: {part}"
    assert found == ([refusal] if is_lost else [])
    assert result.ready is not is_lost
    assert [one.reason for one in result.table_by_table] == ([part] if is_lost else [])


def test_a_rollback_that_restores_partition_values_is_refused_while_it_is_planned(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"reading files of table `db\.t` needs Spark"):
        plan_rollback(dropped(tmp_path, "region", has_rows=True))
