"""JSON files: lines with one object each, and arrays in any layout."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pytest

from icemigrate.errors import ExitCode, Mistakes, UsageError
from icemigrate.table_data.input_files import DataFormat
from icemigrate.table_data.insert_rows import insert_files
from icemigrate.table_data.upsert_rows import upsert_files
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

ITEMS = "columns: [{name: id, type: long}, {name: s, type: 'struct<x: int, y: string>'}]"
OBJECTS: list[dict[str, Any]] = [
    {"id": 1, "s": {"x": 1, "y": 'a],[ "{'}},
    {"id": 2, "s": None},
    {"id": 12345678901, "s": {"x": 3, "y": "\\"}},
]
EXPECTED = sorted(((row["id"], row["s"]) for row in OBJECTS), key=str)
LAYOUTS = {
    "a line for each": "[\n" + ",\n".join(map(json.dumps, OBJECTS)) + "\n]\n",
    "commas first": "[" + "\n, ".join(map(json.dumps, OBJECTS)) + "]",
    "one line": json.dumps(OBJECTS),
    "indented": json.dumps(OBJECTS, indent=4),
    "blank lines and a mark": "\ufeff\r\n\r\n " + json.dumps(OBJECTS, indent=1).replace("\n", "\r\n") + "\n",
    "lines": "\n".join(map(json.dumps, OBJECTS)),
}  # fmt: skip


def zstd(content: bytes) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.CompressedOutputStream(stream, "zstd") as compressed:
        compressed.write(content)
    return stream.getvalue().to_pybytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("part", [1 << 20, 7])
def test_every_layout_has_the_same_rows(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch, layout: str, part: int
) -> None:
    monkeypatch.setattr("icemigrate.table_data.json_objects._Array.PART", part)
    table, content = written.create(ITEMS), LAYOUTS[layout].encode()
    files = [
        written.file("a.json", content),
        written.file("b.json.gz", gzip.compress(content)),
        written.file("c.json.zst", zstd(content)),
    ]
    for file in files:
        assert insert_files(written.session, table, [file]).rows == len(OBJECTS)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    kept = insert_files(written.session, table, ["-"], DataFormat("json"), keep_bad_rows=lambda _bad: None)
    assert (kept.rows, kept.bad.count) == (len(OBJECTS), 0)
    assert written.rows(table) == sorted(EXPECTED * 4, key=str)
    done = upsert_files(written.session, table, files[:1], on=["id"])
    assert (done.inserted, done.updated) == (0, 0)


def test_the_output_of_a_query_is_data(written: WrittenTables) -> None:
    table, other = written.create(ITEMS), written.create(ITEMS)
    insert_files(written.session, table, [written.file("a.json", json.dumps(OBJECTS))])
    out, run = written.folder / "out.json", written.project.run
    assert run("table", "query", table, "-o", str(out)) == ExitCode.OK
    assert run("table", "insert", other, "--data", str(out)) == ExitCode.OK
    assert written.rows(other) == EXPECTED
    assert run("table", "query", table, "--where", "false", "-o", str(out)) == ExitCode.OK
    assert insert_files(written.session, other, [str(out)]).rows == 0
    assert upsert_files(written.session, other, [str(out)], on=["id"]).inserted == 0
    assert written.rows(other) == EXPECTED


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ('[\n{"id": 1},\n{"id": 2}\n', 4, "an element is not followed by `,` or `]`"),
        ('[\n{"id": 1}\n{"id": 2}\n]', 3, "an element is not followed by `,` or `]`"),
        ('[\n{"id": 1},\n]', 3, "Expecting value"),
        ('[\n{"id": 1},\n{"id": 2,\n"s" 3}\n]', 4, "Expecting ':' delimiter"),
        ('[\n{"id": 1}, {"id": "2}]', 2, "Unterminated string starting at"),
        ('[{"id": 1}]\n[{"id": 2}]\n', 2, "something follows the end of the array"),
        ('[1]\n{"id": 1}\n', 2, "something follows the end of the array"),
        ("[", 1, "Expecting value"),
    ],
)
@pytest.mark.parametrize("part", [1 << 20, 1])
def test_an_array_with_an_error_loads_nothing(
    written: WrittenTables,
    monkeypatch: pytest.MonkeyPatch,
    content: str,
    line: int,
    problem: str,
    part: int,
) -> None:
    monkeypatch.setattr("icemigrate.table_data.json_objects._Array.PART", part)
    table, path = written.create(ITEMS), written.file("a.json", content)
    for keep in (None, lambda _bad: None):
        with pytest.raises(UsageError) as error:
            insert_files(written.session, table, [path], keep_bad_rows=keep)
        assert error.value.message == f"{path}:{line}: it is not a JSON array: {problem}"
        assert error.value.hint
    assert written.snapshots(table) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{\n  "id": 1\n}\n', "its first JSON object has several lines"),
        ('{"rows": [\n{"id": 1}\n]}\n', "its first JSON object has several lines"),
        ("[1, [2]]", "no element of its array is an object"),
        ("7\n", "no line has a JSON object"),
    ],
)
def test_other_json_loads_nothing(written: WrittenTables, content: str, problem: str) -> None:
    table, path = written.create(ITEMS), written.file("a.json", content)
    for keep in (None, lambda _bad: None):
        with pytest.raises(UsageError, match=problem):
            insert_files(written.session, table, [path], keep_bad_rows=keep)
    assert written.snapshots(table) == []


def test_bad_rows_of_an_array_have_the_lines_where_they_begin(written: WrittenTables) -> None:
    table = written.create(ITEMS)
    rows = [{"id": 1}, {"id": "x"}, 7, {"id": 3}, {"id": "y", "s": {"x": 1}}]
    path = written.file("a.json", json.dumps(rows, indent=1).replace('"x": 1', '"x": 1, "x": 2'))
    with pytest.raises(Mistakes, match="3 rows do not fit") as error:
        insert_files(written.session, table, [path])
    assert [d.place.line for d in error.value.diagnostics if d.place] == [5, 8, 12]
    assert insert_files(written.session, table, [path], keep_bad_rows=lambda _bad: None).rows == 2
    assert written.rows(table, "id") == [(1,), (3,)]


def test_an_element_without_an_end_is_read_up_to_a_limit(
    written: WrittenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icemigrate.table_data.json_objects.MOST_ELEMENT_CHARACTERS", 1 << 20)
    table = written.create("columns: [{name: t, type: string}]")
    path = written.file("a.json", json.dumps([{"t": "x"}, {"t": "x" * 5_000_000}], indent=0))
    with pytest.raises(UsageError, match=r"a\.json:5: .* an element has more than 1 MiB"):
        insert_files(written.session, table, [path])


@pytest.mark.parametrize("layout", ["{}\n{}", "[{},\n{}]"])
def test_a_key_that_is_no_column_has_its_line(written: WrittenTables, layout: str) -> None:
    table = written.create(ITEMS)
    path = written.file("a.json", layout.replace("{}", '{"id": 1}', 1).replace("{}", '{"id": 2, "idd": 3}'))
    with pytest.raises(UsageError, match=r"a\.json:2: table .* has no column `idd`"):
        insert_files(written.session, table, [path])


BAD = (
    '{"id": 7, "s": {"x": 1.10, "y": "a\u2028b"}}',
    '{"id": {"a": [1]}, "s": null}',
    '{"id": 1.5000000000000000000001, "s": [1]}',
    '{"id": "x", "s": {"x": 1, "y": null}}',
)


@pytest.mark.parametrize("layout", ["lines", "array"])
def test_rows_that_do_not_fit_are_kept_as_they_were_given(written: WrittenTables, layout: str) -> None:
    texts = "\n".join(BAD) if layout == "lines" else "[" + ",\n".join(BAD) + "]"
    kept = list[bytes]()
    file = written.file("bad.json", texts.encode())
    assert not insert_files(
        written.session, written.create(ITEMS), [file], keep_bad_rows=lambda bad: kept.append(bad.content())
    ).rows
    lines = kept[0].decode().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [1, 2, 3, 4]
    for line, text in zip(lines, BAD, strict=True):
        assert line.endswith(f', "values": {text}}}'.replace("\u2028", "\\u2028"))


def test_nested_values_of_csv_are_kept_as_they_were_given(written: WrittenTables) -> None:
    kept = list[bytes]()
    long = "y" * 1000
    file = written.file("bad.csv", f'id,s\nx,"{{""x"": 1}}"\n2,[1]\n3,4,{long}\n'.encode())
    insert_files(
        written.session, written.create(ITEMS), [file], keep_bad_rows=lambda bad: kept.append(bad.content())
    )
    found = [json.loads(line)["values"] for line in kept[0].decode().splitlines()]
    assert found == [{"id": "x", "s": '{"x": 1}'}, {"id": "2", "s": "[1]"}, {"record": f"3,4,{long}"}]
