"""`table compare`: schemas by field id, files, and rows by key or as a whole."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal

import pytest

from icemigrate.errors import ExitCode, UsageError
from icemigrate.render.formats import render
from icemigrate.results.compare_results import CompareResult
from icemigrate.table_data import column_counts
from icemigrate.table_data.compare_snapshots import compare_snapshots
from tests.support.table_project import ORDERS, TableProject
from tests.support.table_rows import append_rows, foreign_table

RENAME = """\
tables:
  - name: sales.orders
    renames: {customer: client}
    columns: [{name: note, type: string}, {name: amount, type: "decimal(12,2)"}]
"""


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableProject, list[int]]:
    """Three rows; a fourth; after a migration one row changed, one removed, and two new equal ones."""
    project = TableProject.create(tmp_path_factory.mktemp("loads"), ORDERS)
    at = datetime(2026, 11, 27, 20, 37, tzinfo=timezone.utc)
    rows = [
        {"id": number, "customer": name, "amount": Decimal(number), "at": at}
        for number, name in enumerate("abc")
    ]
    ids = [append_rows(project, rows), append_rows(project, [{"id": 3, "customer": "d"}])]
    project.migrate(2, RENAME)
    table = foreign_table(project)
    left = table.scan("id < 2").to_arrow()
    changed = left.set_column(left.schema.get_field_index("client"), "client", [["a", "B"]])
    table.overwrite(changed, "id < 3")
    ids.append(append_rows(project, [{"id": 7, "note": "n"}, {"id": 7, "note": "n"}]))
    return project, ids


def _compare(
    loads: tuple[TableProject, list[int]], before: int, after: int | str, *key: str
) -> CompareResult:
    project, ids = loads
    with project.tables() as tables:
        wanted = after if isinstance(after, str) else ids[after]
        return compare_snapshots(tables, "sales.orders", ids[before], wanted, key=key)


def test_fields_are_compared_by_id(loads: tuple[TableProject, list[int]]) -> None:
    found = _compare(loads, 0, 2)
    assert [(one.field_id, one.change, one.before, one.after) for one in found.fields] == [
        (2, "renamed", "customer", "client"),
        (3, "retyped", "decimal(10,2)", "decimal(12,2)"),
        (5, "added", None, "string"),
    ]
    assert [one.change for one in _compare(loads, 2, 0).fields] == ["renamed", "retyped", "dropped"]
    assert _compare(loads, 0, 1).fields == ()


def test_rows_by_key(loads: tuple[TableProject, list[int]]) -> None:
    rows = _compare(loads, 0, 1, "id").rows
    assert rows is not None
    assert (rows.added, rows.removed, rows.changed, rows.is_whole) == (1, 0, 0, False)
    project, ids = loads
    with project.tables() as tables:
        overwritten = foreign_table(project).snapshot_by_id(ids[2]).parent_snapshot_id
        found = compare_snapshots(tables, "sales.orders", ids[0], overwritten, key=["id"])
    assert found.rows is not None
    assert (found.rows.added, found.rows.removed, found.rows.changed) == (1, 1, 1)
    (changed,) = [sample for sample in found.rows.samples if sample.change == "changed"]
    assert [(v.column, v.before, v.after) for v in changed.values] == [("id", "1", "1"), ("client", "b", "B")]
    counted = {column.column: column for column in found.columns}
    assert (counted["client"].changed, counted["amount"].changed) == (1, 0)
    assert (counted["note"].nulls_before, counted["note"].nulls_after) == (3, 3)


@pytest.mark.parametrize(("most", "method"), [((4, 9), "exact"), ((3, 9), "approximate"), ((1, 3), "none")])
def test_distinct_values_are_counted_by_the_number_of_rows(
    loads: tuple[TableProject, list[int]],
    monkeypatch: pytest.MonkeyPatch,
    most: tuple[int, int],
    method: str,
) -> None:
    monkeypatch.setattr(column_counts, "MOST_EXACT_ROWS", most[0])
    monkeypatch.setattr(column_counts, "MOST_COUNTED_ROWS", most[1])
    found = _compare(loads, 0, 1)
    counted = {column.column: (column.distinct_before, column.distinct_after) for column in found.columns}
    assert found.distinct_values == method
    # DuckDB's estimate is exact for so few values.
    expected = {"id": (3, 4), "customer": (3, 4), "amount": (3, 3), "at": (1, 1)}
    assert counted == (dict.fromkeys(expected, (None, None)) if method == "none" else expected)
    text = render(found)
    assert ("~4" in text, "~ is an estimate" in text) == (method == "approximate",) * 2
    assert ("`--distinct` counts them" in text) == (method == "none")
    project, ids = loads
    with project.tables() as tables:
        wanted = compare_snapshots(tables, "sales.orders", ids[0], ids[1], with_distinct=True)
    assert wanted.distinct_values == ("exact" if method == "exact" else "approximate")


def test_whole_rows_are_compared_as_often_as_they_are_there(loads: tuple[TableProject, list[int]]) -> None:
    found = _compare(loads, 1, 2)
    assert found.rows is not None
    assert (found.rows.added, found.rows.removed, found.rows.changed) == (3, 2, 0)
    assert found.files_kept == 1
    assert found.files_removed.rows == 3
    removed = [sample for sample in found.rows.samples if sample.change == "removed"]
    assert [value.before for value in removed[0].values] == ["1", "b", "1.00", "2026-11-27 20:37:00+00", None]


def test_a_snapshot_and_itself(loads: tuple[TableProject, list[int]]) -> None:
    found = _compare(loads, 2, "main")
    assert found.rows is not None
    assert (found.rows.added, found.rows.removed, found.files_added.data_files) == (0, 0, 0)


@pytest.mark.parametrize(
    ("key", "message", "hint"),
    [
        (("id",), "`--key id` is not unique: 1 key of the second snapshot has several rows", "add a column"),
        (("clint",), "has no column `clint`", "did you mean `client`?"),
        (("a'\"; DROP",), "has no column", "lists the columns"),
    ],
)
def test_a_wrong_key_is_one_error(
    loads: tuple[TableProject, list[int]], key: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as error:
        _compare(loads, 1, 2, *key)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


def test_the_command(loads: tuple[TableProject, list[int]], capsys: pytest.CaptureFixture[str]) -> None:
    project, ids = loads
    capsys.readouterr()
    args = ("table", "compare", "sales.orders", "--from", str(ids[0]))
    assert project.run(*args, "--to", str(ids[1]), "--key", "id") == ExitCode.OK
    shown = capsys.readouterr().out
    assert "Rows by id: 1 added, 0 removed, 0 changed." in shown
    assert "  + id=3, customer=d, amount=null, at=null" in shown
    assert project.run(*args, "--no-rows", "--format", "json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["rows"] is None
    assert document["files_added"]["data_files"] == 3


def test_where_paths_of_files_are_written_otherwise_all_rows_are_read(
    loads: tuple[TableProject, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _compare(loads, 0, 1, "id")
    module = "icemigrate.table_data.compare_snapshots.count_rows"
    monkeypatch.setattr(module, lambda query: [-1, -1])
    found = _compare(loads, 0, 1, "id")
    assert found.rows is not None
    assert expected.rows is not None
    assert (found.rows.is_whole, expected.rows.is_whole) == (True, False)
    assert found.rows.samples == expected.rows.samples
    assert found.columns == expected.columns
