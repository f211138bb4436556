"""Rows of files and of this process in tables, read by PyIceberg."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icemigrate.errors import ExitCode, Mistakes, UsageError
from icemigrate.metadata_engine.table_store import CommitConflict, CommitRefused, CommitStateUnknown
from icemigrate.table_data.input_files import DataFormat
from icemigrate.table_data.insert_rows import insert_data, insert_files
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

ORDERS = """
columns:
  - {name: id, type: long, required: true}
  - {name: customer, type: string}
  - {name: amount, type: "decimal(10,2)"}
  - {name: at, type: timestamptz}
"""
AT = datetime(2024, 1, 1, 10, tzinfo=timezone.utc)
ROWS = [(1, "x", Decimal("1.50"), AT), (2, None, None, None)]
CSV = "amount,id,at,customer\n1.5,1,2024-01-01T10:00:00Z,x\n,2,,\n"
JSON = '{"id": 1, "customer": "x", "amount": 1.50, "at": "2024-01-01 10:00:00"}\n\n{"id": "2"}\n'
TABLE = pa.table(
    {
        "at": pa.array([AT, None], pa.timestamp("us", "UTC")),
        "id": pa.array([1, 2], pa.int32()),
        "amount": pa.array([1.5, None]),
        "customer": pa.array(["x", None]),
    }
)


def zstd(content: bytes) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as compressed:
        compressed.write(content)
    return stream.getvalue().to_pybytes()


def parquet(table: pa.Table = TABLE) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def arrow(new: Any) -> bytes:
    stream = io.BytesIO()
    with new(stream, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV.encode()),
        ("bom.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("crlf.csv", CSV.replace("\n", "\r\n").encode()),
        ("a[1].csv", CSV.encode()),
        ("a\udcff.csv", CSV.encode()),
        ("a\udcff.csv.gz", gzip.compress(CSV.encode())),
        ("a.csv.gz", gzip.compress(CSV.encode())),
        ("a.csv.zst", zstd(CSV.encode())),
        ("a.tsv", CSV.replace(",", "\t").encode()),
        ("a.jsonl", JSON.encode()),
        ("a.json.gz", gzip.compress(JSON.encode())),
        ("a.parquet", parquet()),
        ("a.parquet.zst", zstd(parquet())),
        ("packed.csv", gzip.compress(CSV.encode())),
        ("packed.csv.gz", zstd(CSV.encode())),
        ("packed.json", zstd(JSON.encode())),
        ("packed.parquet", gzip.compress(parquet())),
        ("a.arrow", arrow(pa.ipc.new_file)),
        ("a.arrows", arrow(pa.ipc.new_stream)),
    ],
)
def test_every_format_gives_the_same_rows(written: WrittenTables, name: str, content: bytes) -> None:
    table = written.create(ORDERS)
    done = insert_files(written.session, table, [written.file(name, content)])
    assert (done.rows, done.files) == (2, 1)
    assert written.rows(table) == ROWS
    (snapshot,) = written.snapshots(table)
    assert snapshot["snapshot-id"] == done.snapshot_id
    assert snapshot["summary"]["total-records"] == "2"


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
        iter(TABLE.to_batches()),
        [{"id": 1, "customer": "x", "amount": "1.5", "at": AT}, {"id": 2}],
    ],
    ids=["table", "batch", "reader", "batches", "mappings"],
)
def test_every_kind_of_data_gives_the_same_rows(written: WrittenTables, data: Any) -> None:
    table = written.create(ORDERS)
    assert insert_data(written.session, table, data).rows == 2
    assert written.rows(table) == ROWS


def test_a_relation_of_duckdb_is_inserted(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    relation = duckdb.sql("SELECT 7 AS id, 'a' AS customer")
    assert insert_data(written.session, table, relation).rows == 1
    assert written.rows(table, "id", "customer") == [(7, "a")]


def test_data_of_another_kind_is_an_error(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    for data in (5, "text", [1, 2], object()):
        with pytest.raises(UsageError, match="rows cannot be read from a"):
            insert_data(written.session, table, data)


def test_patterns_name_several_files_with_headers_of_their_own(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    written.file("b1.csv", "id,customer\n1,a\n")
    written.file("b2.csv", "customer,id\nb,2\n")
    written.file("b3.jsonl", '{"id": 3}\n')
    done = insert_files(written.session, table, [str(written.folder / "b*")])
    assert done.rows == 3
    assert written.rows(table, "id", "customer") == [(1, "a"), (2, "b"), (3, None)]
    assert len(written.snapshots(table)) == 1


MISFITS = [
    ("id,amount\n1,1.555\n", "column `amount` (decimal(10, 2)) cannot have the value `1.555`"),
    ("id,amount\n1,123456789.00\n", "column `amount` (decimal(10, 2)) cannot have the value `123456789.00`"),
    ("id,amount\n1,1e-3\n", "column `amount` (decimal(10, 2)) cannot have the value `1e-3`"),
    ("id\n1.5\n", "column `id` (long) cannot have the value `1.5`"),
    ("id\n99999999999999999999\n", "column `id` (long) cannot have the value `99999999999999999999`"),
    ("id,at\n1,2024-02-30\n", "column `at` (timestamptz) cannot have the value `2024-02-30`"),
    ("id,at\n1,epoch\n", "column `at` (timestamptz) cannot have the value `epoch`"),
    ("id,at\n1,2024-01-01 00:00:00.1234567\n", "column `at` (timestamptz) cannot have the value"),
    ("id,customer\n,a\n", "column `id` (long) is required, and there is no value"),
    ("id,customer\n1\n", "it has 1 value, and the header has 2"),
    ("id,customer\n1,a,b\n", "it has 3 values, and the header has 2"),
]


@pytest.mark.parametrize(("text", "problem"), MISFITS)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_loaded(
    written: WrittenTables, text: str, problem: str
) -> None:
    table = written.create(ORDERS)
    header, row = text.splitlines()
    good = "1" + "," * header.count(",")
    path = written.file("bad.csv", f"{header}\n{good}\n{row}\n")
    with pytest.raises(Mistakes) as error:
        insert_files(written.session, table, [path])
    (found,) = error.value.diagnostics
    assert found.message.startswith(problem)
    assert str(found.place) == f"{path}:3:1"
    assert error.value.message == f"1 row does not fit table `{table}`, and nothing is loaded"
    assert (written.snapshots(table), written.data_files(table)) == ([], set())


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("ml.csv", 'id,customer\n1,"a\nb\nc"\nx,d\n\n3,"e\n"\n4\ny,f\n', [5, 9, 10]),
        ("ml.csv", '\n\n"id",customer\r\n1,"a\r\nb"\r\nx,c\r\n', [6]),
        ("k.jsonl", '{"id": 1}\n\n{"id": 602, "id": 603}\n{"id": 2}\n', [3]),
        ("k.jsonl", '{"id": 602, "id": 603}\n', [1]),
    ],
)
def test_the_line_of_a_bad_row_is_the_one_where_it_begins(
    written: WrittenTables, name: str, content: str, lines: list[int]
) -> None:
    table = written.create(ORDERS)
    with pytest.raises(Mistakes) as error:
        insert_files(written.session, table, [path := written.file(name, content)])
    assert [str(d.place) for d in error.value.diagnostics] == [f"{path}:{line}:1" for line in lines]


def test_a_long_value_is_read_up_to_a_limit(written: WrittenTables, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written.create(ORDERS)
    path = written.file("long.csv", f"id,customer\n1,{'x' * 20_000_000}\n2,b\n")
    insert_files(written.session, table, [path])
    assert [(i, len(text)) for i, text in written.rows(table, "id", "customer")] == [(1, 20_000_000), (2, 1)]
    monkeypatch.setattr("icemigrate.table_data.csv_quotes.MOST_RECORD_BYTES", 1 << 20)
    with pytest.raises(UsageError, match=r"long\.csv:2: the row .* has more than 1 MiB"):
        insert_files(written.session, table, [path])


def test_texts_of_times_without_a_zone_column(written: WrittenTables) -> None:
    table = written.create("columns: [{name: at, type: timestamp}, {name: day, type: date}]")
    good = "at,day\n2024-01-01,2024-1-2\n2024-01-01T10:00:00.5,\n2024-01-01 10:00,2024-01-02\n"
    assert insert_files(written.session, table, [written.file("a.csv", good)]).rows == 3
    bad = "at,day\n2024-01-01T10:00:00Z,\n2024-01-01 10:00:00+02,\n,2024-01-01 10:00\n,infinity\n"
    with pytest.raises(Mistakes, match="4 rows do not fit"):
        insert_files(written.session, table, [written.file("b.csv", bad)])
    assert len(written.rows(table)) == 3


@pytest.mark.parametrize("names", [["a.csv", "a.csv"], ["a.csv", "*.csv"], ["a.csv", "./a.csv"], ["-", "-"]])
def test_data_that_is_given_twice_is_an_error(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    table = written.create(ORDERS)
    written.file("a.csv", "id\n1\n")
    monkeypatch.chdir(written.folder)
    with pytest.raises(UsageError, match="the data is given twice"):
        insert_files(written.session, table, names, DataFormat("csv"))
    assert written.snapshots(table) == []


@pytest.mark.parametrize(("data_format", "content"), [("csv", CSV.encode()), ("parquet", parquet())])
def test_a_named_pipe_is_read_once(written: WrittenTables, data_format: str, content: bytes) -> None:
    table = written.create(ORDERS)
    path = written.folder / "pipe"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(content,), daemon=True)
    writer.start()
    assert insert_files(written.session, table, [str(path)], DataFormat(data_format)).rows == 2
    writer.join(10)
    assert written.rows(table) == ROWS


def test_a_damaged_zstd_file_and_a_link_to_nothing_are_named(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    for name, content in (("a.csv.zst", zstd(CSV.encode())[:-4]), ("b.jsonl.zst", b'{"id": 1}\n')):
        with pytest.raises(UsageError, match=rf"{name}: it is not a complete zstd file: "):
            insert_files(written.session, table, [written.file(name, content)])
    link = written.folder / "link.csv"
    link.symlink_to("nothing.csv")
    with pytest.raises(UsageError, match="is a link that leads to no file"):
        insert_files(written.session, table, [str(link)])


FLOATS = "columns: [{name: f, type: float}, {name: d, type: double}, {name: l, type: list<double>}]"


@pytest.mark.parametrize(
    "row",
    [
        {"f": 1e39},
        {"f": -3.4028235677973366e38},
        {"f": 1e-50},
        {"d": 10**400},
        '{"l": [1e400]}',
        '{"l": [1e-400]}',
        '{"f": 1e39}',
        '{"d": 1e400}',
    ],
)
def test_a_number_beyond_a_floating_point_type_is_no_infinity_and_no_zero(
    written: WrittenTables, row: Any
) -> None:
    table = written.create(FLOATS)
    insert: Callable[[], object] = partial(insert_data, written.session, table, row)
    if isinstance(row, str):
        insert = partial(insert_files, written.session, table, [written.file("a.jsonl", f"{row}\n")])
    with pytest.raises(Mistakes, match="1 row does not fit"):
        insert()


@pytest.mark.parametrize("text", ["\\ud800", "a\\udcffb"])
def test_a_surrogate_is_no_character(written: WrittenTables, text: str) -> None:
    table = written.create("columns: [{name: s, type: string}, {name: l, type: list<string>}]")
    for line in (f'{{"s": "{text}"}}', f'{{"l": ["{text}"]}}'):
        inserts: list[Callable[[], object]] = [
            partial(insert_files, written.session, table, [written.file("a.jsonl", f"{line}\n")]),
            partial(insert_data, written.session, table, [json.loads(line)]),
        ]
        for insert in inserts:
            with pytest.raises(Mistakes) as error:
                insert()
            assert "which is no character" in error.value.diagnostics[0].message


def test_a_time_of_python_without_a_zone_is_utc(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    rows = [{"id": 1, "at": AT.replace(tzinfo=None)}, {"id": 2, "at": "2024-01-01T10:00:00"}]
    insert_data(written.session, table, rows)
    assert written.rows(table, "id", "at") == [(1, AT), (2, AT)]


NESTED = """
columns:
  - {name: id, type: long, required: true}
  - {name: day, type: date}
  - {name: tags, type: list<int>}
  - {name: place, type: "struct<x: int>", required: true}
"""
EACH_PROBLEM = ["`id` (long)", "`day` (date)", "`tags.element` (int)", "`place.x` (int)"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("all.csv", 'id,day,tags,place\nx,2024-02-30,"[1.5]","{""x"": ""a""}"\n'),
        ("all.jsonl", '{"id": "x", "day": "2024-02-30", "tags": [1.5], "place": {"x": "a"}}\n'),
        ("all.jsonl", '{"id": {}, "day": [], "tags": [1.5], "place": {"x": "a"}}\n'),
        ("rows", [{"id": "x", "day": "2024-02-30", "tags": [1.5], "place": {"x": "a"}}]),
        ("arrow", pa.table({"id": ["x"], "day": ["2024-02-30"], "tags": [[1.5]], "place": [{"x": 2**40}]})),
    ],
)
def test_all_bad_values_of_a_row_are_reported(written: WrittenTables, name: str, content: Any) -> None:
    table = written.create(NESTED)
    insert: Callable[[], object] = partial(insert_data, written.session, table, content)
    if isinstance(content, str):
        insert = partial(insert_files, written.session, table, [written.file(name, content)])
    with pytest.raises(Mistakes, match="1 row does not fit") as error:
        insert()
    found = [diagnostic.message for diagnostic in error.value.diagnostics]
    assert len(found) == len(EACH_PROBLEM), found
    for message, problem in zip(found, EACH_PROBLEM, strict=True):
        assert problem.partition(".")[0].partition("`")[2].partition("`")[0] in message


def test_rows_with_many_problems_are_not_all_shown(written: WrittenTables) -> None:
    names = [f"c{number}" for number in range(30)]
    table = written.create(f"columns: [{', '.join(f'{{name: {name}, type: int}}' for name in names)}]")
    line = ",".join(["x"] * len(names))
    path = written.file("wide.csv", f"{','.join(names)}\n{line}\n{line}\n{line}\n")
    with pytest.raises(Mistakes, match=r"3 rows do not fit .* \(the first 2 are shown\)") as error:
        insert_files(written.session, table, [path])
    assert len(error.value.diagnostics) == 2 * len(names)


def test_all_bad_rows_are_counted_and_the_first_are_shown(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    lines = "".join(f"{'x' if n % 2 else n},a\n" for n in range(3_000))
    path = written.file("many.csv", f"id,customer\n{lines}")
    with pytest.raises(Mistakes) as error:
        insert_files(written.session, table, [path])
    assert error.value.message.startswith("1,500 rows do not fit")
    places = [d.place.line for d in error.value.diagnostics if d.place]
    assert places == list(range(3, 23, 2))


def test_bad_rows_are_kept_in_a_file_and_the_others_are_loaded(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    path = written.file("mixed.csv", '"id",customer\n1,"two\n""lines"\nx,b\n3,c\n4,d,e\n5,""\n')
    out = written.folder / "bad.jsonl"
    code = written.project.run("table", "insert", table, "--data", path, "--bad-rows", str(out))
    assert code == ExitCode.OK
    assert written.rows(table, "id", "customer") == [(1, 'two\n"lines'), (3, "c"), (5, "")]
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["row"], row["problem"]) for row in kept] == [
        (4, "column `id` (long) cannot have the value `x`"),
        (6, "it has 3 values, and the header has 2"),
    ]
    assert kept[0]["values"] == {"id": "x", "customer": "b"}


@pytest.mark.parametrize("out", ["no/such/folder/bad.jsonl", "/dev/full", "."])
def test_nothing_is_loaded_if_the_file_for_bad_rows_cannot_be_written(
    written: WrittenTables, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written.create(ORDERS)
    path = written.file("mixed.csv", "id,customer\n1,a\nx,b\n")
    code = written.project.run(
        "table", "insert", table, "--data", path, "--bad-rows", str(written.folder / out)
    )
    assert code == ExitCode.ERROR
    assert "cannot be written" in capsys.readouterr().err
    assert (written.snapshots(table), written.data_files(table)) == ([], set())


@pytest.mark.parametrize("option", ["--bad-rows={}", "--format=json={}"])
def test_an_output_is_no_file_of_data(
    written: WrittenTables, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written.create(ORDERS)
    text = "id,customer\n1,a\nx,b\n"
    path, pattern = Path(written.file("same.csv", text)), str(written.folder / "s*.csv")
    other = written.folder / "other.json"
    other.hardlink_to(path)
    code = written.project.run("table", "insert", table, "--data", pattern, option.format(other))
    assert code == ExitCode.USAGE
    assert f"the output `{other}` is also a file of data ({path})" in capsys.readouterr().err
    assert (path.read_text(), written.snapshots(table)) == (text, [])


@pytest.mark.parametrize("out", ["no/such/folder/done.json", ".", "a.csv/done.json"])
def test_nothing_is_loaded_if_an_output_cannot_be_written(
    written: WrittenTables, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written.create(ORDERS)
    path = written.file("a.csv", CSV)
    output = f"json={written.folder / out}"
    assert written.project.run("table", "insert", table, "--data", path, "--format", output) == ExitCode.ERROR
    assert "cannot be written" in capsys.readouterr().err
    assert (written.snapshots(table), written.data_files(table)) == ([], set())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.csv", b"", "is empty"),
        ("e.csv.gz", b"\x1f\x8b\x08", "it is not a complete gzip file"),
        ("e.csv", b"id,nam\xe9\n", "the byte 0xe9 is not UTF-8"),
        ("e.csv", b"id,customer\n1,caf\xe9\n", ":2: the byte 0xe9 is not UTF-8"),
        ("e.csv", "id\n1\n".encode("utf-16"), "it is UTF-16"),
        ("e.csv", b"id\0\n", "a byte of value 0"),
        ("e.csv", b"id,custmer\n1,a\n", "has no column `custmer`"),
        ("e.csv", b"id,id\n1,2\n", "column `id` is there twice"),
        ("e.csv", b"customer\na\n", "there is no column `id`, which table"),
        ("e.csv", b'id,customer\n1,"open\n2,b\n', r":2:3: the quoted value that begins here does not end"),
        ("e.csv.zst", zstd(b'\xef\xbb\xbfid,customer\n1,"a\nb"\n2,"a""\n3,c\n'), r":4:3: .* does not end"),
        ("e.tsv", b'id\tcustomer\r\n1\t"a"\r\n2\t"b\r\n3\t"c"\r\n', r":3:3: .* has text after its closing"),
        ("e.jsonl", b'{"id": 1, "custmer": 2}\n', "has no column `custmer`"),
        ("e.jsonl", b"[1]\n", "no element of its array is an object"),
        ("e.jsonl", b"\xff\xfe", "is not UTF-8"),
        ("e.parquet", b"PARX", "it is not a Parquet file"),
        ("e.parquet", b"PAR1junk", r"e\.parquet: it cannot be read as parquet: File too small"),
        ("e.parquet", parquet()[:-20], r"e\.parquet: it cannot be read as parquet: No magic bytes"),
        ("e.csv", b"id,,customer\n1,2,a\n", r"e\.csv: column 2 of its header has no name"),
        ("e.csv", b"id,ID\n1,2\n", r"e\.csv: the columns `id` and `ID` differ only in case"),
        ("e.arrow", b"ARROW1xx", "neither a complete Arrow file nor a complete Arrow stream"),
        ("e.arrow", arrow(pa.ipc.new_stream)[:-60], "neither a complete Arrow file nor"),
        ("e.txt", b"id\n1\n", "the format of .* is not known"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error(
    written: WrittenTables, name: str, content: bytes, message: str
) -> None:
    table = written.create(ORDERS)
    with pytest.raises(UsageError, match=message):
        insert_files(written.session, table, [written.file(name, content)])
    assert (written.snapshots(table), written.data_files(table)) == ([], set())


def test_a_missing_file_and_a_folder_are_errors(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    written.file("orders.csv", CSV)
    with pytest.raises(UsageError, match=r"there is no file .*order\.csv") as error:
        insert_files(written.session, table, [str(written.folder / "order.csv")])
    assert error.value.hint == "did you mean `orders.csv`?"
    with pytest.raises(UsageError, match="is a folder"):
        insert_files(written.session, table, [str(written.folder)])
    with pytest.raises(UsageError, match="no file matches"):
        insert_files(written.session, table, [str(written.folder / "*.nothing")])
    with pytest.raises(UsageError, match="standard input has no name"):
        insert_files(written.session, table, ["-"])


@pytest.mark.parametrize(
    ("data_format", "content"),
    [
        ("csv", CSV.encode()),
        ("csv", gzip.compress(CSV.encode())),
        ("json", zstd(JSON.encode())),
        ("parquet", parquet()),
        ("parquet", gzip.compress(parquet())),
    ],
)
def test_standard_input(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, data_format: str, content: bytes
) -> None:
    table = written.create(ORDERS)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert insert_files(written.session, table, ["-"], DataFormat(data_format)).rows == 2
    assert written.rows(table) == ROWS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table({"id": [1], "x": [1]}), "has no column `x`"),
        (pa.table({"id": [1], "customer": pa.array([b"x"])}), "is binary"),
        (pa.table({"customer": ["a"]}), "there is no column `id`"),
    ],
)
def test_columns_that_do_not_fit_are_errors(written: WrittenTables, data: pa.Table, message: str) -> None:
    table = written.create(ORDERS)
    with pytest.raises(UsageError, match=message):
        insert_data(written.session, table, data)


def test_values_that_a_cast_would_change_are_bad_rows(written: WrittenTables) -> None:
    table = written.create(ORDERS)
    data = pa.table({"id": [1.0, 2.5, 3.0, None], "amount": [1.25, 2.0, 3.125, 4.0]})
    with pytest.raises(Mistakes) as error:
        insert_data(written.session, table, data)
    assert [d.message for d in error.value.diagnostics] == [
        "row 2: column `id` (long) cannot have the value `2.5`",
        "row 3: column `amount` (decimal(10, 2)) cannot have the value `3.125`",
        "row 4: column `id` (long) is required, and there is no value",
    ]
    assert error.value.hint is None


def test_a_whole_number_that_a_column_lacks_is_a_bad_row_in_all_data(written: WrittenTables) -> None:
    table = written.create("columns: [{name: d, type: double}, {name: s, type: 'struct<f: float>'}]")
    path = written.file("a.json", '{"d": 9007199254740993}\n{"d": 1e23}\n{"s": {"f": 16777217}}\n')
    for load in (
        lambda: insert_files(written.session, table, [path]),
        lambda: insert_data(written.session, table, [{"d": 2**53 + 1}, {"d": 1e23}, {"s": {"f": 2**24 + 1}}]),
        lambda: insert_data(
            written.session, table, pa.table({"d": [2**53 + 1, 2, 3], "s": [None, None, {"f": 2**24 + 1}]})
        ),
    ):
        with pytest.raises(Mistakes) as error:
            load()
        first, second = (d.message for d in error.value.diagnostics)
        assert "`d` (double) cannot have the value" in first
        assert "16777217" in second
    assert written.rows(table) == []
    path = written.file("a.csv", "d\n9007199254740993\n")
    with pytest.raises(Mistakes) as error:
        insert_files(written.session, table, [path])
    assert error.value.diagnostics[0].message.endswith("`: the nearest double is 9007199254740992")


EVERY_TYPE = """
format_version: 3
columns:
  - {name: b, type: boolean}
  - {name: i, type: int}
  - {name: f, type: float}
  - {name: d, type: double}
  - {name: day, type: date}
  - {name: t, type: time}
  - {name: ts, type: timestamp}
  - {name: ns, type: timestamp_ns}
  - {name: zns, type: timestamptz_ns}
  - {name: u, type: uuid}
  - {name: x, type: binary}
  - {name: fx, type: "fixed[2]"}
  - {name: big, type: "decimal(38,10)"}
  - {name: s, type: "struct<a: int, b: list<decimal(5,2)>>"}
  - {name: m, type: "map<string, double>"}
  - {name: n, type: string, default: "none"}
"""
EVERY_VALUE = {
    "b": True, "i": -5, "f": 0.5, "d": 1e300, "day": "2024-02-29", "t": "10:00:00.000001",
    "ts": "1969-12-31 23:59:59.999999", "ns": "2024-01-01T00:00:00.123456789",
    "zns": "2024-01-01T00:00:00.123456789+00:00", "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "x": "00ff", "fx": "0aff", "big": "1234567890123456789012345678.0123456789",
    "s": {"a": 1, "b": ["1.25", None]}, "m": {"k": 0.5},
}  # fmt: skip


def test_every_type_from_every_text_form(written: WrittenTables) -> None:
    text = {k: json.dumps(v) if isinstance(v, dict) else str(v) for k, v in EVERY_VALUE.items()}
    quoted = ",".join('"' + value.replace('"', '""') + '"' for value in text.values())
    csv = written.file("every.csv", f"{','.join(text)}\n{quoted}\n")
    lines = written.file("every.jsonl", json.dumps(EVERY_VALUE) + "\n")
    found = []
    for source in ([csv], [lines], None):
        table = written.create(EVERY_TYPE)
        if source is None:
            assert insert_data(written.session, table, [EVERY_VALUE]).rows == 1
        else:
            assert insert_files(written.session, table, source).rows == 1
        (path,) = written.data_files(table)
        # Python has no time of nanoseconds.
        rows = pq.read_table(path)
        for name in ("ns", "zns"):
            assert rows[name].cast(pa.int64()).to_pylist() == [1_704_067_200_123_456_789]
        found.append(rows.drop_columns(["ns", "zns"]).to_pylist())
    assert found[0] == found[1] == found[2]
    (row,) = found[0]
    assert (row["day"], row["fx"], row["n"]) == (date(2024, 2, 29), b"\x0a\xff", "none")
    assert row["big"] == Decimal("1234567890123456789012345678.0123456789")
    assert row["s"] == {"a": 1, "b": [Decimal("1.25"), None]}
    types = {field.name: field.type for field in pq.read_schema(path)}
    assert types["fx"] == pa.binary(2)
    assert types["zns"] == pa.timestamp("ns", "UTC")


def test_a_conflict_is_retried_on_the_new_table(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, store = written.create(ORDERS), written.session.store
    commit, calls = store.commit, list[int]()

    def fails_once(commits: Any, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            insert_data(written.session, table, [{"id": 1}])
            raise CommitConflict("another writer was faster")
        return commit(commits, *args)

    monkeypatch.setattr(type(store), "commit", lambda _store, *args: fails_once(*args))
    insert_data(written.session, table, [{"id": 2}])
    assert written.rows(table, "id") == [(1,), (2,)]
    assert len(written.data_files(table)) == 2


@pytest.mark.parametrize(
    ("failure", "left"),
    [(KeyboardInterrupt(), 1), (CommitStateUnknown("unknown"), 1), (CommitRefused("no"), 0)],
)
def test_files_stay_only_where_the_outcome_is_unknown(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, failure: BaseException, left: int
) -> None:
    table = written.create(ORDERS)

    def commit(*_args: Any) -> Any:
        raise failure

    monkeypatch.setattr(type(written.session.store), "commit", commit)
    with pytest.raises(type(failure)):
        insert_data(written.session, table, [{"id": 1}])
    assert len(written.data_files(table)) == left


def test_no_file_stays_where_a_write_fails(written: WrittenTables, monkeypatch: pytest.MonkeyPatch) -> None:
    table, files = written.create(ORDERS), written.session.store.files
    write = files.write

    def refuse_manifests(location: str, content: bytes) -> None:
        if location.endswith(".avro"):
            raise KeyboardInterrupt
        write(location, content)

    monkeypatch.setattr(type(files), "write", lambda _files, *args: refuse_manifests(*args))
    with pytest.raises(KeyboardInterrupt):
        insert_data(written.session, table, [{"id": 1}])
    assert written.data_files(table) == set()
    assert written.snapshots(table) == []


def test_a_header_alone_inserts_nothing(written: WrittenTables, capsys: pytest.CaptureFixture[str]) -> None:
    table = written.create(ORDERS)
    assert written.project.run("table", "insert", table, "--data", written.file("h.csv", "id\n")) == 0
    assert capsys.readouterr().out == f"Inserted no rows into {table}: the data has no rows.\n"
    assert Path(written.folder).exists()
    assert written.snapshots(table) == []
