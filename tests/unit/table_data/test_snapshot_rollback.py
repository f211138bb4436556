"""`table rollback`: main at another snapshot of its line, and back."""

from __future__ import annotations

import json

import pytest

from icemigrate.commands.table_rollback import plan_table_rollback, table_rollback
from icemigrate.errors import ConflictError, ExitCode
from tests.support.table_project import TableProject, orders
from tests.support.table_rows import append_rows, foreign_table, main_id

__all__ = ["orders"]


def _ids(project: TableProject) -> set[int]:
    with project.tables() as tables:
        return {s["snapshot-id"] for s in tables.load("sales.orders").metadata["snapshots"]}


@pytest.fixture
def line(orders: TableProject) -> tuple[TableProject, list[int]]:
    """Three snapshots in a line; the first one has the tag `loaded`."""
    ids = [append_rows(orders, [{"id": number}]) for number in (1, 2, 3)]
    foreign_table(orders).manage_snapshots().create_tag(ids[0], "loaded").commit()
    return orders, ids


def test_rollback_and_back_keep_every_snapshot(line: tuple[TableProject, list[int]]) -> None:
    project, ids = line
    before = _ids(project)
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(ids[0]), "-y") == ExitCode.OK
    assert main_id(project) == ids[0]
    assert foreign_table(project).scan().to_arrow().num_rows == 1
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(ids[2]), "-y") == ExitCode.OK
    assert main_id(project) == ids[2]
    assert _ids(project) == before


def test_a_tag_names_the_snapshot_and_the_way_back_is_shown(
    line: tuple[TableProject, list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    project, ids = line
    capsys.readouterr()
    assert (
        project.run("table", "rollback", "sales.orders", "--snapshot", "loaded", "--dry-run") == ExitCode.OK
    )
    shown = capsys.readouterr().out
    assert "main goes back 2 snapshots" in shown
    assert f"`icemigrate table rollback sales.orders --snapshot {ids[2]}`" in shown
    assert main_id(project) == ids[2]


def test_the_limits_of_main_stay(line: tuple[TableProject, list[int]]) -> None:
    project, ids = line
    with project.tables() as tables:
        from icemigrate.metadata_engine.table_store import TableCommit

        table = tables.load("sales.orders")
        ref = {**table.metadata["refs"]["main"], "min-snapshots-to-keep": 7}
        update = {"action": "set-snapshot-ref", "ref-name": "main", **ref}
        tables.store.commit([TableCommit(table.name, table.stored, (update,))])
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(ids[1]), "-y") == ExitCode.OK
    with project.tables() as tables:
        main = tables.load("sales.orders").metadata["refs"]["main"]
    assert main == {"type": "branch", "snapshot-id": ids[1], "min-snapshots-to-keep": 7}


@pytest.mark.parametrize(
    ("snapshot", "message", "hint"),
    [
        ("1", "table `sales.orders` has no snapshot 1", "lists its snapshots, tags and branches"),
        ("laoded", "`sales.orders` has no snapshot, tag or branch `laoded`", "did you mean `loaded`?"),
        (
            "2001-02-03",
            "has no snapshot at or before 2001-02-03T00:00:00+00:00",
            "Z` is the time of the first",
        ),
        ("2001-02-03T04:05:06+02:00", "has no snapshot at or before 2001", "Z` is the time of the first"),
        ("2001-02-30", "`2001-02-30` is not a time", "write a day (`2026-01-31`)"),
    ],
)
def test_a_wrong_snapshot_is_one_error_and_changes_nothing(
    line: tuple[TableProject, list[int]],
    capsys: pytest.CaptureFixture[str],
    snapshot: str,
    message: str,
    hint: str,
) -> None:
    project, ids = line
    capsys.readouterr()
    assert project.run("table", "rollback", "sales.orders", "--snapshot", snapshot, "-y") == ExitCode.USAGE
    first, second = capsys.readouterr().err.strip().splitlines()
    assert message in first
    assert hint in second
    assert main_id(project) == ids[2]


def test_a_snapshot_beside_the_line_is_refused_with_the_nearest_ancestor(
    line: tuple[TableProject, list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    project, ids = line
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(ids[0]), "-y") == ExitCode.OK
    beside = append_rows(project, [{"id": 9}])
    capsys.readouterr()
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(ids[2]), "-y") == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert f"snapshot {ids[2]} is neither an ancestor nor a descendant" in shown
    assert f"`--snapshot {ids[0]}` is the newest ancestor of both" in shown
    foreign_table(project).manage_snapshots().create_tag(ids[2], "aside").commit()
    assert project.run("table", "rollback", "sales.orders", "--snapshot", "aside", "-y") == ExitCode.USAGE
    assert f"`aside` is snapshot {ids[2]}, which is neither" in capsys.readouterr().err
    assert main_id(project) == beside


@pytest.mark.parametrize("name", ["previous", "-1", "main~1", "HEAD~", "~1", "main^"])
def test_a_relative_name_is_answered_with_the_id_of_the_snapshot(
    line: tuple[TableProject, list[int]], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    project, ids = line
    assert project.run("table", "rollback", "sales.orders", "--snapshot", name, "-y") == ExitCode.USAGE
    assert f"write the id: `--snapshot {ids[1]}` is the one before" in capsys.readouterr().err
    assert project.run("table", "query", "sales.orders", "--snapshot", "main~2") == ExitCode.USAGE
    assert f"`--snapshot {ids[0]}` is 2 snapshots before the current one" in capsys.readouterr().err


def test_an_approved_rollback_is_shown_once(
    line: tuple[TableProject, list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    project, ids = line
    capsys.readouterr()
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(ids[1]), "-y") == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.count("main ") == 1
    assert f"main went back 1 snapshot, to {ids[1]} (" in shown
    assert f"--snapshot {ids[2]}`" in shown


def test_a_write_after_the_question_is_a_conflict(line: tuple[TableProject, list[int]]) -> None:
    project, ids = line
    plan = plan_table_rollback(project.project, None, "sales.orders", str(ids[0]))
    newest = append_rows(project, [{"id": 4}])
    with pytest.raises(ConflictError, match="moved the main branch"):
        table_rollback(project.project, None, plan)
    assert main_id(project) == newest


def test_the_current_snapshot_is_nothing_to_do(
    line: tuple[TableProject, list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    project, ids = line
    capsys.readouterr()
    args = ("table", "rollback", "sales.orders", "--snapshot", "main", "-y", "--format", "json")
    assert project.run(*args) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert not document["done"]
    assert document["after"]["snapshot_id"] == ids[2]


def test_without_a_terminal_nothing_is_changed(line: tuple[TableProject, list[int]]) -> None:
    project, ids = line
    assert project.run("table", "rollback", "sales.orders", "--snapshot", str(ids[0])) == ExitCode.USAGE
    assert main_id(project) == ids[2]
