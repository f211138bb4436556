"""Existing Parquet files as data files of a table: what fits, what is refused, and the way back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icemigrate.errors import ExitCode
from icemigrate.frozen import replace
from icemigrate.table_data.live_files import EQUALITY_DELETES, POSITION_DELETES, LiveFile, LiveFileReader
from icemigrate.table_data.query_tables import query_table
from tests.support.table_project import TableProject

VISITS = """\
tables:
  - name: web.visits
    columns:
      - {name: id, type: long, required: true}
      - {name: region, type: string}
      - {name: at, type: timestamptz}
      - {name: amount, type: "decimal(10,2)"}
      - {name: tags, type: "list<string>"}
    partition_by: [region, day(at)]
"""
AT = pa.timestamp("us", "UTC")


def rows(count: int = 3, day: int = 1, **columns: Any) -> pa.Table:
    """Rows of one day, without the column of the folders."""
    found = {
        "id": pa.array(range(count), pa.int32()),  # a promotion: the table has longs
        "at": pa.array([datetime(2026, 11, day, hour, tzinfo=timezone.utc) for hour in range(count)], AT),
        "tags": pa.array([["a"]] * count),
        **columns,
    }
    return pa.table({name: values for name, values in found.items() if values is not None})


def write(path: Path, table: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def read(project: TableProject, *columns: str) -> list[dict[str, Any]]:
    with project.tables() as tables:
        return query_table(tables, "web.visits", columns=columns).to_pylist()


def properties(project: TableProject) -> dict[str, str]:
    with project.tables() as tables:
        found: dict[str, str] = tables.load("web.visits").metadata["properties"]
    return found


@pytest.fixture
def visits(tmp_path: Path) -> TableProject:
    """A project with the empty table `web.visits`."""
    (tmp_path / "project").mkdir()
    return TableProject.create(tmp_path / "project", VISITS)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two days of one region, one of a region with a hostile name, and names that are no data."""
    folder = tmp_path / "files"
    write(folder / "region=eu/day=2026-11-01/a b#c?.parquet", rows(3))
    write(folder / "region=eu/day=2026-11-02/part'0", rows(4, 2))
    write(folder / "region=a%2Fb/[x].parquet", rows(2, 3))
    (folder / "_SUCCESS").touch()
    return folder


def adopt(project: TableProject, path: Path, *options: str) -> int:
    return project.run("adopt-parquet", str(path), "--into", "web.visits", *options)


def test_rows_of_hive_folders_are_read_and_files_stay(
    visits: TableProject, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    assert adopt(visits, files, "--dry-run") == ExitCode.OK
    assert "Would adopt 3 files with 9 rows" in capsys.readouterr().out
    assert read(visits) == []
    assert adopt(visits, files) == ExitCode.OK
    assert "Adopted 3 files with 9 rows" in capsys.readouterr().out
    found = read(visits, "region", "at")
    assert sorted({(row["region"], row["at"].day) for row in found}) == [("a/b", 3), ("eu", 1), ("eu", 2)]
    assert len(found) == 9
    assert adopt(visits, files) == ExitCode.OK  # again: no file twice
    assert "No file" in capsys.readouterr().out
    assert len(read(visits)) == 9
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


def test_drift_knows_the_manual_change_and_the_history_has_it(
    visits: TableProject, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adopt(visits, files)
    capsys.readouterr()
    visits.run("drift")
    shown = capsys.readouterr().out
    assert "gc.enabled" in shown
    assert "manual change" in shown
    visits.run("history")
    assert "adopt 3 Parquet files with 9 rows" in capsys.readouterr().out


def test_no_command_deletes_files_that_the_table_does_not_own(visits: TableProject, files: Path) -> None:
    adopt(visits, files)
    adopt(visits, files, "--undo")
    assert visits.run("table", "expire", "web.visits", "--days", "0", "--auto-approve") == ExitCode.ERROR
    assert len([path for path in files.rglob("*") if path.is_file()]) == 4


def test_owned_files_are_deleted_like_those_of_the_table(visits: TableProject, files: Path) -> None:
    adopt(visits, files, "--take-ownership")
    assert "gc.enabled" not in properties(visits)
    adopt(visits, files, "--undo")
    assert visits.run("table", "expire", "web.visits", "--days", "0", "--auto-approve") == ExitCode.OK
    assert [path.name for path in files.rglob("*") if path.is_file()] == ["_SUCCESS"]


def test_an_undo_keeps_the_rows_that_came_later(visits: TableProject, files: Path, tmp_path: Path) -> None:
    adopt(visits, files)
    later = write(tmp_path / "later.parquet", rows(1, 9, id=pa.array([77]), region=pa.array(["us"])))
    assert visits.run("table", "insert", "web.visits", "--data", str(later)) == ExitCode.OK
    assert adopt(visits, files, "--undo") == ExitCode.OK
    assert [row["id"] for row in read(visits, "id")] == [77]
    assert adopt(visits, files, "--undo") == ExitCode.USAGE  # once
    assert adopt(visits, files) == ExitCode.OK
    assert len(read(visits)) == 10


def test_an_undo_is_refused_once_other_files_have_the_rows(
    visits: TableProject, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adopt(visits, files)
    visits.run("table", "update", "web.visits", "--set", "amount=1", "--where", "id = 0 AND region = 'a/b'")
    capsys.readouterr()
    assert adopt(visits, files, "--undo") == ExitCode.FINDINGS
    shown = capsys.readouterr().err
    assert "[x].parquet" in shown
    assert "other files may have its rows" in shown
    assert len(read(visits)) == 9
    assert adopt(visits, files) == ExitCode.FINDINGS  # and the replaced file is not adopted a second time
    assert "until snapshot" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "later", "partition", "refused"),
    [
        (POSITION_DELETES, 0, "same", True),
        (EQUALITY_DELETES, 1, "same", True),
        (EQUALITY_DELETES, 1, "none", True),
        (POSITION_DELETES, 1, "other", False),
        (POSITION_DELETES, -1, "same", False),
    ],
)
def test_an_undo_is_refused_once_delete_files_have_rows(
    visits: TableProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: int,
    later: int,
    partition: str,
    refused: bool,
) -> None:
    """Spark's merge-on-read writes delete files, and the updated rows to new files."""
    folder = tmp_path / "files"
    write(folder / "region=eu/a.parquet", rows(3))
    adopt(visits, folder)
    capsys.readouterr()
    real = LiveFileReader.of

    def with_delete(reader: LiveFileReader, snapshot: Any, **options: Any) -> Iterator[LiveFile]:
        for file in real(reader, snapshot, **options):
            assert file.sequence is not None
            values = {"same": file.partition, "none": {}, "other": dict.fromkeys(file.partition, "x")}
            yield replace(
                file,
                path="/deletes.parquet",
                content=content,
                sequence=file.sequence + later,
                partition=values[partition],
            )
            yield file

    monkeypatch.setattr(LiveFileReader, "of", with_delete)
    assert adopt(visits, folder, "--undo", "--dry-run") == (ExitCode.FINDINGS if refused else ExitCode.OK)
    assert ("a delete file is for its partition" in capsys.readouterr().err) is refused


def test_a_rollback_to_a_snapshot_undoes_it_too(visits: TableProject, files: Path, tmp_path: Path) -> None:
    write(tmp_path / "first.parquet", rows(1, region=pa.array(["us"])))
    visits.run("table", "insert", "web.visits", "--data", str(tmp_path / "first.parquet"))
    with visits.tables() as tables:
        first = tables.load("web.visits").metadata["current-snapshot-id"]
    adopt(visits, files)
    options = ("--snapshot", str(first), "--auto-approve")
    assert visits.run("table", "rollback", "web.visits", *options) == ExitCode.OK
    assert len(read(visits)) == 1
    assert adopt(visits, files) == ExitCode.OK
    assert len(read(visits)) == 10


def _make(folder: Path, case: str) -> None:
    path = folder / "region=eu/x.parquet"
    many = pa.array([datetime(2026, 11, day, tzinfo=timezone.utc) for day in (1, 2, 3)], AT)
    tables: dict[str, pa.Table] = {
        "type": rows(at=pa.array(["2026-11-01"] * 3)),
        "zone": rows(at=pa.array([datetime(2026, 11, 1)] * 3, pa.timestamp("us"))),
        "precision": rows(amount=pa.array([1, 2, 3], pa.decimal128(10, 3))),
        "extra": rows(color=pa.array(["red"] * 3)),
        "case": rows(id=None, ID=pa.array([1, 2, 3])),
        "nulls": rows(id=pa.array([1, None, 3])),
        "several days": rows(at=many),
        "no day": rows(at=pa.array([None, *many.to_pylist()[:1] * 2], AT)),
        "nested": rows(tags=pa.array([[1]] * 3)),
    }
    write(path, tables.get(case, rows()))
    if case == "ids":
        schema = pa.schema([field.with_metadata({"PARQUET:field_id": "3"}) for field in rows(0).schema])
        write(path, rows(0).cast(schema))
    if case == "day folder":
        write(folder / "region=eu/day=2026-11-05/y.parquet", rows())
    if case == "unknown folder":
        write(folder / "region=eu/color=red/y.parquet", rows())
    if case == "other format":
        (folder / "region=eu/notes.txt").write_text("hello", encoding="utf-8")
    if case == "symbolic link":
        (folder / "region=eu/y.parquet").symlink_to(path)
    if case == "hard link":
        os.link(path, folder / "region=eu/y.parquet")
    if case == "pipe":
        os.mkfifo(folder / "region=eu/pipe")
    if case == "control character":
        write(folder / "region=eu/a\nb.parquet", rows())
    if case == "Delta Lake":
        (folder / "_delta_log").mkdir()


CASES = {
    "type": "column `at` has the type `string`, and in the table `timestamptz`",
    "zone": "column `at` has the type `timestamp`, and in the table `timestamptz`",
    "precision": "column `amount` has the type `decimal(10,3)`, and in the table `decimal(10,2)`",
    "extra": "column `color` is not in the table",
    "case": "it lacks column `id`, which the table requires",
    "nulls": "column `id` has nulls, and the table requires a value",
    "several days": "values from 2026-11-01",
    "no day": "column `at` has nulls and values",
    "nested": "column `tags.element` has the type `long`, and in the table `string`",
    "ids": "column `id` has field id 3, and in the table 1",
    "day folder": "its folder has `day=2026-11-05`, and its values are those of 2026-11-01",
    "unknown folder": "its folder has `color=red`, and the table has no such column",
    "other format": "it cannot be read as Parquet",
    "symbolic link": "it is a symbolic link",
    "hard link": "it is the same file as",
    "pipe": "it is no regular file",
    "control character": "its path has a character that cannot be printed",
    "Delta Lake": "it is a table of Delta Lake",
}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """A project whose table no case may change."""
    return TableProject.create(tmp_path_factory.mktemp("unchanged"), VISITS)


@pytest.mark.parametrize("case", CASES)
def test_files_that_do_not_fit_are_refused_and_named(
    unchanged: TableProject, tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _make(tmp_path, case)
    assert adopt(unchanged, tmp_path) == ExitCode.FINDINGS
    shown = capsys.readouterr().err
    assert CASES[case] in shown
    assert str(tmp_path) in shown
    assert read(unchanged) == []
    assert "gc.enabled" not in properties(unchanged)


def test_decimals_of_partitions_keep_all_digits(visits: TableProject, tmp_path: Path) -> None:
    columns = '[{name: id, type: long}, {name: amount, type: "decimal(38,2)"}]'
    partitions = '["truncate(10, amount)"]'
    visits.migrate(2, f"tables: [{{name: web.amounts, columns: {columns}, partition_by: {partitions}}}]\n")
    amount = Decimal("123456789012345678901234567890123456.78")
    table = pa.table({"id": [1], "amount": pa.array([amount], pa.decimal128(38, 2))})
    path = write(tmp_path / "amounts/a.parquet", table)
    assert visits.run("adopt-parquet", str(path.parent), "--into", "web.amounts") == ExitCode.OK
    with visits.tables() as tables:
        metadata = tables.load("web.amounts").metadata
        (file,) = LiveFileReader(metadata, tables.environment.catalog.read_file).of(metadata["snapshots"][-1])
    assert list(file.partition.values()) == [int("1234567890" * 3 + "12345670").to_bytes(16, "big")]


def test_one_error_lists_all_files_with_problems(
    unchanged: TableProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, case in (("a", "type"), ("b", "extra"), ("c", "other format")):
        _make(tmp_path / name, case)
    assert adopt(unchanged, tmp_path) == ExitCode.FINDINGS
    shown = capsys.readouterr().err
    assert all(CASES[case] in shown for case in ("type", "extra", "other format"))
    assert "3 cannot be adopted" in shown


def test_a_folder_of_a_table_is_refused(
    visits: TableProject, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(files.parent / "a.parquet", rows(1, region=pa.array(["us"])))
    visits.run("table", "insert", "web.visits", "--data", str(files.parent / "a.parquet"))
    warehouse = visits.folder / ".icemigrate/warehouse"
    for path in (warehouse, warehouse / "web/visits/data", visits.folder):
        assert adopt(visits, path) == ExitCode.USAGE
        assert "a folder of table" in capsys.readouterr().err


def test_a_file_of_another_table_is_refused(
    visits: TableProject, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    visits.migrate(2, VISITS.replace("web.visits", "web.copies"))
    adopt(visits, files)
    capsys.readouterr()
    assert visits.run("adopt-parquet", str(files / "region=eu"), "--into", "web.copies") == ExitCode.FINDINGS
    assert "table `web.visits` has it already" in capsys.readouterr().err


def test_a_changed_file_is_refused(
    visits: TableProject, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adopt(visits, files)
    write(files / "region=eu/day=2026-11-02/part'0", rows(9, 2))
    assert adopt(visits, files) == ExitCode.FINDINGS
    assert "it was changed since" in capsys.readouterr().err


def test_footers_that_do_not_have_the_values_are_found_before_the_commit(
    visits: TableProject, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows are read through the table: here its name mapping gives a column the name of another one."""
    from icemigrate.table_data import adopted_checks

    def wrong(columns: Any) -> str:
        names = {"at": "other"}
        return json.dumps([{"field-id": c.id, "names": [names.get(c.name, c.name)]} for c in columns])

    monkeypatch.setattr(adopted_checks, "name_mapping", wrong)
    assert adopt(visits, files) == ExitCode.FINDINGS
    assert "reads 0 values of column `at`, and the footers have 9" in capsys.readouterr().err
    assert read(visits) == []
    assert len([path for path in files.rglob("*") if path.is_file()]) == 4


def test_a_failed_commit_leaves_the_files(
    visits: TableProject, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icemigrate.metadata_engine.table_store import CommitRefused
    from icemigrate.table_data import row_commit

    def refuse(*_: Any) -> Any:
        raise CommitRefused("the catalog does not accept it")

    monkeypatch.setattr(row_commit, "_table_commit", refuse)
    assert adopt(visits, files) == ExitCode.ERROR
    assert len([path for path in files.rglob("*") if path.is_file()]) == 4


def test_a_missing_table_is_created_as_the_hint_says(
    visits: TableProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "new/orders.parquet", rows())
    assert visits.run("adopt-parquet", str(path.parent), "--into", "web.orders") == ExitCode.USAGE
    hint = next(line for line in capsys.readouterr().err.splitlines() if "table create" in line)
    words = hint.rpartition("`icemigrate ")[2].rstrip("`").split()
    assert visits.run(*words) == ExitCode.OK
    assert visits.run("adopt-parquet", str(path.parent), "--into", "web.orders") == ExitCode.OK


def test_the_columns_of_a_missing_table_are_declared_as_the_hint_says(
    visits: TableProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "new/region=eu/orders.parquet", rows())
    assert visits.run("adopt-parquet", str(tmp_path / "new"), "--into", "web.orders") == ExitCode.USAGE
    hint = next(line for line in capsys.readouterr().err.splitlines() if "icemigrate diff" in line)
    words = hint.partition("`icemigrate ")[2].partition("`")[0].split()
    assert visits.run(*words) == ExitCode.OK
    assert "web.orders" in (visits.folder / "migrations").glob("0002*").__next__().read_text("utf-8")
