"""``generate`` on real tables of a SQLite catalog, with Arrow and its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icemigrate import IcebergManager
from icemigrate.errors import ExitCode, UsageError
from icemigrate.iceberg.schema import Schema
from icemigrate.table_data import generated_rows
from icemigrate.test_data import parquet_file
from tests.support.table_project import TableProject, orders

__all__ = ["orders"]

DECLARED = """\
tables:
  - name: sales.items
    format_version: 3
    columns:
      - {name: sku, type: string, required: true}
      - {name: box, type: "struct<width: int, seals: list<string>>"}
"""


@pytest.fixture(autouse=True)
def _arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same generator wherever the tests run."""
    monkeypatch.setattr(parquet_file, "native_module", lambda: None)


def generated(project: TableProject, *args: str) -> Any:
    """The rows that the command writes for `sales.orders`."""
    file = project.folder / "rows.parquet"
    assert project.run("generate", "sales.orders", *args, "-o", str(file)) == ExitCode.OK
    return pq.read_table(file)


def test_a_file_has_the_columns_of_the_table(
    orders: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    rows = generated(orders, "--rows", "1000", "--format", "json")
    assert rows.column_names == ["id", "customer", "amount", "at"]
    assert [rows.schema.field(n).metadata[b"PARQUET:field_id"] for n in ("id", "at")] == [b"1", b"4"]
    assert rows["id"].to_pylist() == list(range(1000))
    document = json.loads(capsys.readouterr().out)
    assert (document["rows"], document["generator"], document["schema_from"]) == (1000, "arrow", "catalog")
    assert document["file_bytes"] == (orders.folder / "rows.parquet").stat().st_size


def test_a_slower_generator_says_how_to_install_the_other(
    orders: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    generated(orders, "--rows", "1")
    assert capsys.readouterr().out.count("pip install ./rust/python '.[native]'") == 1


def test_the_same_seed_gives_the_same_rows(orders: TableProject) -> None:
    first = generated(orders, "--rows", "100", "--seed", "5")
    assert generated(orders, "--rows", "40", "--seed", "5", "--first-row", "60") == first[60:]
    assert generated(orders, "--rows", "100", "--seed", "6") != first


def test_a_table_that_is_only_declared(orders: TableProject, capsys: pytest.CaptureFixture[str]) -> None:
    (orders.folder / "migrations" / "0002_items.yaml").write_text(DECLARED, encoding="utf-8")
    file = orders.folder / "items.parquet"
    assert orders.run("generate", "sales.items", "--rows", "20", "-o", str(file)) == ExitCode.OK
    assert "20 rows of `sales.items` as the migration files declare it" in capsys.readouterr().out
    rows = pq.read_table(file)
    ids = [rows.schema.field(name).metadata[b"PARQUET:field_id"] for name in ("sku", "box")]
    assert ids == [b"1", b"2"]
    assert rows["box"].type.field("seals").metadata[b"PARQUET:field_id"] == b"4"


@pytest.mark.parametrize(
    ("args", "message", "exit_code"),
    [
        (["sales.orders", "--rows", "0"], "--rows 0: the number is out of range", ExitCode.USAGE),
        (
            ["sales.orders", "--rows", "1", "--seed", "-1"],
            "--seed -1: the number is out of range",
            ExitCode.USAGE,
        ),
        (["sales.orders", "--rows", "1", "--insert", "-o", "x"], "`--insert` writes no file", ExitCode.USAGE),
        (["sales.blobs", "--rows", "1", "--insert"], "for which there is no test data", ExitCode.ERROR),
        (["sales.order", "--rows", "1"], "did you mean `sales.orders`?", ExitCode.USAGE),
        (
            ["sales.orders", "--rows", "many"],
            "`--rows`: `many` is not a whole number: write a whole number, such as `1000`",
            ExitCode.USAGE,
        ),
        (["sales.orders", "--rows", "1", "-o", "no/such/x.parquet"], "cannot be written", ExitCode.ERROR),
        (["sales.orders", "--rows", "1", "-o", "."], "`.` cannot be written: is a directory", ExitCode.ERROR),
        (
            ["sales.blobs", "--rows", "1"],
            "column `data` of table `sales.blobs` has type `variant`, for which there is no test data",
            ExitCode.ERROR,
        ),
    ],
)
def test_a_mistake_is_one_error(
    orders: TableProject,
    args: list[str],
    message: str,
    exit_code: ExitCode,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    required = "name: sku, type: string, required: true"
    blobs = DECLARED.replace("items", "blobs").replace(required, "name: data, type: variant")
    (orders.folder / "migrations" / "0002_blobs.yaml").write_text(blobs, encoding="utf-8")
    monkeypatch.chdir(orders.folder)
    capsys.readouterr()
    assert orders.run("generate", *args) == exit_code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("error:") == 1
    assert not list(orders.folder.glob("*.parquet"))


def test_an_interrupted_file_leaves_the_old_one(
    orders: TableProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = generated(orders, "--rows", "10")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parquet_file, "record_batch", interrupted)
    file = orders.folder / "rows.parquet"
    assert orders.run("generate", "sales.orders", "--rows", "5", "-o", str(file)) == ExitCode.INTERRUPTED
    assert pq.read_table(file) == before
    assert not list(orders.folder.glob(".rows*"))


def test_a_table_property_asks_for_bloom_filters(orders: TableProject) -> None:
    file = orders.folder / "rows.parquet"
    plain, size = generated(orders, "--rows", "10"), file.stat().st_size
    column = pq.read_metadata(file).row_group(0).column(1)
    assert (column.compression, column.statistics.has_min_max) == ("ZSTD", True)
    properties = "{write.parquet.bloom-filter-enabled.column.customer: 'true'}"
    orders.migrate(2, f"tables:\n  - {{name: sales.orders, properties: {properties}}}\n")
    assert generated(orders, "--rows", "10") == plain
    assert file.stat().st_size > size + 32


def test_a_name_of_another_format_is_refused(
    orders: TableProject, capsys: pytest.CaptureFixture[str]
) -> None:
    file = orders.folder / "rows.CSV"
    run = ("generate", "sales.orders", "--rows", "1", "--output", str(file))
    assert orders.run(*run) == ExitCode.USAGE
    assert f"write `{file.with_suffix('.parquet')}`" in capsys.readouterr().err
    assert not file.exists()


def inserted(project: TableProject, table: str, *args: str) -> list[dict[str, Any]]:
    """All rows of a table after an insert."""
    assert project.run("generate", table, "--insert", *args) == ExitCode.OK
    with project.tables() as tables:
        location = tables.load(table).stored.location
    rows: list[dict[str, Any]] = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
    return rows


def test_rows_are_inserted_in_one_snapshot(
    orders: TableProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generated_rows, "_ROWS_OF_FILE", 400)
    expected = generated(orders, "--rows", "1000", "--seed", "5").to_pylist()
    capsys.readouterr()
    rows = inserted(orders, "sales.orders", "--rows", "1000", "--seed", "5")
    assert sorted(rows, key=lambda row: row["id"]) == expected
    assert "inserted 1,000 rows into `sales.orders`: snapshot " in capsys.readouterr().out
    more = inserted(orders, "sales.orders", "--rows", "10", "--seed", "5", "--first-row", "1000")
    assert sorted(row["id"] for row in more) == list(range(1010))
    with orders.tables() as tables:
        snapshots = tables.load("sales.orders").metadata["snapshots"]
    assert [s["summary"].get("added-data-files") for s in snapshots] == [None, "3", "1"]


def test_python_generates_the_rows_of_the_command(orders: TableProject) -> None:
    expected = generated(orders, "--rows", "100", "--seed", "5")
    (orders.folder / "migrations" / "0002_items.yaml").write_text(DECLARED, encoding="utf-8")
    with IcebergManager(orders.folder) as manager:
        assert manager.generate_data("sales.orders", 100, 5).equals(expected, check_metadata=True)
        assert manager.generate_data("sales.orders", 40, 5, first_row=60) == expected[60:]
        assert manager.generate_data("sales.items", 3).column_names == ["sku", "box"]
        assert manager.query_table("sales.orders").num_rows == 0
        done = manager.insert_generated("sales.orders", 100, 5)
        assert (done.rows, done.seed, done.generator, done.files) == (100, 5, "arrow", 1)
        assert manager.query_table("sales.orders").sort_by("id").to_pylist() == expected.to_pylist()
        with pytest.raises(UsageError, match="`first_row=-1`: the number is out of range"):
            manager.generate_data("sales.orders", 1, first_row=-1)
        with pytest.raises(UsageError, match=r"there is no table `sales\.items`"):
            manager.insert_generated("sales.items", 1)


def test_rows_are_distributed_by_partition(orders: TableProject) -> None:
    layout = "tables:\n  - {name: sales.orders, partition_by: ['bucket(4, id)'], sort_by: [customer]}\n"
    orders.migrate(2, layout)
    expected = generated(orders, "--rows", "300").to_pylist()
    rows = inserted(orders, "sales.orders", "--rows", "300")
    assert sorted(rows, key=lambda row: row["id"]) == expected


def test_a_failed_insert_leaves_no_file(orders: TableProject, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = parquet_file.record_batch

    def full(schema: Schema, seed: int, first_row: int, rows: int) -> Any:
        if first_row >= 4:
            raise OSError(28, "No space left on device", "rows.parquet")
        return whole(schema, seed, first_row, rows)

    monkeypatch.setattr(generated_rows, "_ROWS_OF_FILE", 2)
    monkeypatch.setattr(parquet_file, "record_batch", full)
    assert orders.run("generate", "sales.orders", "--rows", "5", "--insert") == ExitCode.ERROR
    with orders.tables() as tables:
        metadata = tables.load("sales.orders").metadata
    assert len(metadata["snapshots"]) == 1
    assert not list(Path(metadata["location"].removeprefix("file://")).rglob("*.parquet"))
