"""Nulls in required columns, and in required fields inside columns of every shape."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icemigrate.errors import IcemigrateError, Mistakes, UsageError
from icemigrate.table_data.insert_rows import insert_data, insert_files
from icemigrate.table_data.row_changes import update_data
from icemigrate.table_data.upsert_rows import upsert
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

INT, TEXTS = pa.int32(), pa.list_(pa.string())
STRUCT, MAP = pa.struct([("a", INT)]), pa.map_(pa.string(), INT)
COLUMNS: dict[str, tuple[str, Any, Any, Any, str]] = {
    "text": ("type: string, required: true", pa.string(), "x", None, "NULL"),
    "list": ("type: 'list<string>', required: true", TEXTS, ["x"], None, "NULL"),
    "struct": ("type: 'struct<a: int>', required: true", STRUCT, {"a": None}, None, "NULL"),
    "map": ("type: 'map<string, int>', required: true", MAP, [("k", None)], None, "NULL"),
    "field": ("type: 'struct<a: required int>'", STRUCT, {"a": 1}, {"a": None}, "{'a': NULL}"),
    "element": ("type: 'list<required string>'", TEXTS, ["x"], ["x", None], "['x', NULL]"),
    "value": ("type: 'map<string, required int>'", MAP, [("k", 1)], [("k", None)], "MAP {'k': NULL}"),
    "deep": (
        "type: 'list<struct<a: required int>>'", pa.list_(STRUCT), [{"a": 1}], [{"a": None}],
        "[{'a': NULL}]",
    ),
}  # fmt: skip
"""By name: the declaration, the type in Arrow, a value that fits, one that does not, and its SQL."""


def table_of(kind: str, values: list[Any]) -> pa.Table:
    return pa.table({"id": list(range(len(values))), "x": pa.array(values, COLUMNS[kind][1])})


@pytest.mark.parametrize(
    ("kind", "layout"), [*((kind, "") for kind in COLUMNS), ("deep", "\npartition_by: [id]")]
)
def test_a_missing_value_is_refused_by_every_change(written: WrittenTables, kind: str, layout: str) -> None:
    declared, _, good, bad, sql = COLUMNS[kind]
    name = written.create(f"columns: [{{name: id, type: long}}, {{name: x, {declared}}}]{layout}")
    assert insert_data(written.session, name, table_of(kind, [good, good])).rows == 2
    before = written.rows(name)

    with_bad = table_of(kind, [good, good, bad])
    path = written.folder / "bad.parquet"
    pq.write_table(with_bad, path)
    changes: list[tuple[type[IcemigrateError], Any]] = [
        (Mistakes, lambda: insert_data(written.session, name, with_bad)),
        (Mistakes, lambda: insert_files(written.session, name, [str(path)])),
        (Mistakes, lambda: upsert(written.session, name, with_bad, ["id"])),
        (UsageError, lambda: insert_data(written.session, name, with_bad.to_reader())),
        (UsageError, lambda: update_data(written.session, name, {"x": sql}, "id = 1")),
    ]
    for error, change in changes:
        with pytest.raises(error) as found:
            change()
        if error is Mistakes:
            assert isinstance(found.value, Mistakes)
            (mistake,) = found.value.diagnostics
            assert mistake.message.removeprefix("row 3: ").startswith("column `x`")
    assert written.rows(name) == before
    assert len(written.snapshots(name)) == 1
    done = insert_files(written.session, name, [str(path)], keep_bad_rows=lambda _bad: None)
    assert (done.rows, done.bad.count) == (2, 1)
