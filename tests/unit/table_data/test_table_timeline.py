"""`table history`: schemas, specs, snapshots and tags in time order, with the versions of icemigrate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.catalog.metadata_files import local_path
from icemigrate.errors import ExitCode
from icemigrate.table_data.table_timeline import table_timeline
from tests.support.table_project import ORDERS, TableProject
from tests.support.table_rows import append_rows, foreign_table

RENAME = """\
tables:
  - name: sales.orders
    renames: {customer: client}
    columns: [{name: note, type: string}]
    partition_by: [day(at)]
"""


@pytest.fixture(scope="module")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """Rows, a migration, a tag that is removed, and a rollback."""
    project = TableProject.create(tmp_path_factory.mktemp("renamed"), ORDERS)
    first = append_rows(project, [{"id": 1}])
    foreign_table(project).manage_snapshots().create_tag(first, "loaded").commit()
    append_rows(project, [{"id": 2}])
    project.migrate(2, RENAME)
    foreign_table(project).manage_snapshots().remove_tag("loaded").commit()
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(first), "-y") == ExitCode.OK
    return project


def test_the_life_of_a_table(renamed: TableProject) -> None:
    with renamed.tables() as tables:
        found = table_timeline(tables, "sales.orders")
        (first, _) = [s["snapshot-id"] for s in tables.load("sales.orders").metadata["snapshots"][1:3]]
    events = [(entry.kind, entry.version, entry.text) for entry in found.entries if entry.kind != "snapshot"]
    assert events == [
        ("format", None, "format version 2"),
        ("schema", None, "schema 0 with 4 columns is current"),
        ("spec", None, "spec 0 is current: not partitioned"),
        ("tag", "0001", "tag `icemigrate-sales-0001`"),
        ("branch", None, "branch main"),
        ("tag", None, "tag loaded"),
        ("schema", "0002", "schema 1 is current: client renamed, note added"),
        ("spec", "0002", "spec 1 is current: day(at)"),
        ("tag", "0002", "tag `icemigrate-sales-0002`"),
        ("tag", "0002", "tag `icemigrate-sales-0002-before`"),
        ("tag", None, "tag loaded was removed"),
        ("branch", None, f"branch main was set to snapshot {first}"),
    ]
    assert f"snapshot {first} append +1 row" in [entry.text for entry in found.entries]
    times = [entry.at for entry in found.entries]
    assert times == sorted(times)
    assert not any(entry.is_earlier for entry in found.entries)


def test_the_list_is_bounded(renamed: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert renamed.run("table", "history", "sales.orders", "--limit", "2") == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[-1].endswith("older events are not shown: `--limit 0` shows all.")
    assert renamed.run("table", "history", "sales.orders", "--format", "json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["total"] == len(document["entries"])


def test_where_old_metadata_files_are_gone_the_oldest_one_has_what_came_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = TableProject.create(tmp_path, ORDERS)
    append_rows(project, [{"id": 1}])
    with project.tables() as tables:
        for entry in tables.load("sales.orders").metadata["metadata-log"]:
            path = local_path(entry["metadata-file"])
            assert path is not None
            path.unlink()
    capsys.readouterr()
    assert project.run("table", "history", "sales.orders") == ExitCode.OK
    shown = capsys.readouterr().out
    assert "before 20" in shown
    assert "schema 0 with 4 columns is current" in shown
    assert "older metadata file" in shown
