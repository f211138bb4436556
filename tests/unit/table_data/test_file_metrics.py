"""What manifests say about values that are not a number, and that no reader skips their files."""

from __future__ import annotations

import struct
from math import isnan, nan

import pyarrow as pa
import pytest

from icemigrate.table_data.insert_rows import insert_data
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

COLUMNS = """
  - {name: n, type: int}
  - {name: f, type: float}
  - {name: d, type: double}
  - {name: s, type: "struct<a: double, b: struct<c: float>>"}
  - {name: plain, type: double}
  - {name: never, type: double}
"""
VALUES = [1.5, nan, None, 3.5, nan]
TABLE = pa.table(
    {
        "n": [0, 1, 2, 3, 4],
        "f": pa.array(VALUES, pa.float32()),
        "d": VALUES,
        "s": [{"a": v, "b": {"c": v}} for v in VALUES[:3]] + [{"a": 3.5, "b": None}, None],
        "plain": [1.5, 2.5, None, 3.5, 2.5],
        "never": [nan] * 5,
    },
    pa.schema(
        [
            *(("n", pa.int32()), ("f", pa.float32()), ("d", pa.float64())),
            ("s", pa.struct([("a", pa.float64()), ("b", pa.struct([("c", pa.float32())]))])),
            *(("plain", pa.float64()), ("never", pa.float64())),
        ]
    ),
)
COUNTS = {"f": 2, "d": 2, "s.a": 1, "s.b.c": 1, "plain": 0, "never": 5}


@pytest.mark.parametrize(
    ("extra", "version"),
    [("", 2), ("  - {name: fx, type: 'fixed[2]'}\n", 2), ("  - {name: at, type: timestamptz_ns}\n", 3)],
    ids=["duckdb", "fixed", "timestamptz_ns"],
)
def test_values_that_are_not_a_number(written: WrittenTables, extra: str, version: int) -> None:
    name = written.create(f"format_version: {version}\ncolumns:{COLUMNS}{extra}")
    insert_data(written.session, name, TABLE)
    table = written.static(name)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.io)
    (entry,) = manifest.fetch_manifest_entry(table.io)
    file, schema = entry.data_file, table.schema()
    for column, count in COUNTS.items():
        key = schema.find_field(column).field_id
        found = file.nan_value_counts.get(key)
        # DuckDB does not count them; then there are no bounds either, and no reader skips the file.
        assert found == count or (not extra and count and found is None)
        has_bounds = key in file.lower_bounds
        assert has_bounds == (column != "never" and found is not None)
        if has_bounds:
            form = "<f" if column in ("f", "s.b.c") else "<d"
            bounds = [struct.unpack(form, b[key])[0] for b in (file.lower_bounds, file.upper_bounds)]
            assert bounds == ([1.5, 1.5] if column == "s.b.c" else [1.5, 3.5])
    if version == 3:
        return  # PyIceberg reads no such column
    for column in ("f", "d", "never"):
        rows = table.scan(row_filter=f"{column} is nan").to_arrow()[column].to_pylist()
        assert len(rows) == COUNTS[column]
        assert all(map(isnan, rows))
    assert table.scan(row_filter="d > 3").to_arrow()["n"].to_pylist() == [3]
    assert table.scan(row_filter="plain is nan").to_arrow().num_rows == 0
