"""The native module and Arrow give the same rows; run by ``make rust``, which builds the module."""

from __future__ import annotations

import json
import os
import signal
import threading
from io import BytesIO
from pathlib import Path
from typing import Any

import icemigrate_native
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_to_json
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Primitive, Struct, renumber_fields
from icemigrate.test_data import parquet_file
from icemigrate.test_data.parquet_file import RowRange, write_rows
from tests.support.every_type import every_type
from tests.support.table_strategies import tables

SMALL = Schema((Field(1, "a", Primitive("boolean"), True),))


def by_native(schema: Schema, rows: RowRange, file: Path, **options: Any) -> pa.Table:
    with file.open("wb") as stream:
        icemigrate_native.write_parquet(
            json.dumps(schema_to_json(schema)),
            stream.fileno(),
            first_row=rows.first,
            rows=rows.count,
            seed=rows.seed,
            rows_per_group=1000,
            **options,
        )
    return pq.read_table(file)


def by_arrow(schema: Schema, rows: RowRange) -> pa.Table:
    sink = BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_file, "native_module", lambda: None)
        assert write_rows(schema, rows, sink) == "arrow"
    return pq.read_table(BytesIO(sink.getvalue()))


def require_same(native: pa.Table, arrow: pa.Table) -> None:
    assert native.schema.equals(arrow.schema, check_metadata=True)
    differing = [name for name in arrow.column_names if native[name].to_pylist() != arrow[name].to_pylist()]
    assert differing == []


@pytest.mark.parametrize(("first", "seed"), [(0, 0), (999_999, 7), (2**40 + 3, 2**64 - 1)])
def test_every_type_has_the_same_values(tmp_path: Path, first: int, seed: int) -> None:
    rows = RowRange(first, 2_500, seed)
    native, arrow = by_native(every_type(), rows, tmp_path / "rows.parquet"), by_arrow(every_type(), rows)
    assert native.schema.equals(arrow.schema, check_metadata=True)
    # Python has no value for nanoseconds: Arrow compares.
    pairs = (
        (name, native[name].combine_chunks(), arrow[name].combine_chunks()) for name in arrow.column_names
    )
    assert [name for name, one, other in pairs if not one.equals(other)] == []


@settings(deadline=None)
@given(table=tables(), seed=st.integers(0, 2**64 - 1), first=st.integers(0, 2**50))
def test_random_schemas_have_the_same_values(
    tmp_path_factory: pytest.TempPathFactory, table: Table, seed: int, first: int
) -> None:
    ids = iter(range(1, 1_000))
    root = renumber_fields(table.schema.root, lambda: next(ids))
    assert isinstance(root, Struct)
    schema = replace(table.schema, fields=root.fields, identifier_ids=frozenset())
    rows = RowRange(first, 50, seed)
    file = tmp_path_factory.mktemp("random") / "rows.parquet"
    require_same(by_native(schema, rows, file), by_arrow(schema, rows))


def test_threads_do_not_change_the_file(tmp_path: Path) -> None:
    rows = RowRange(0, 5_500, 1)
    contents = []
    for threads in (1, 2, 5):
        file = tmp_path / f"{threads}.parquet"
        by_native(every_type(), rows, file, threads=threads)
        contents.append(file.read_bytes())
    assert contents[0] == contents[1] == contents[2]


def test_the_command_uses_the_module(tmp_path: Path) -> None:
    with (tmp_path / "rows.parquet").open("wb") as stream:
        done: list[int] = []
        assert write_rows(every_type(), RowRange(0, 10, 1), stream, done.append) == "native"
    assert done == [10]


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("{", {}, "the schema is not JSON"),
        ("[]", {}, "the schema is not a JSON object"),
        ('{"fields": []}', {}, "the schema has no column that a file stores"),
        (
            '{"fields": [{"id": 1, "name": "a", "required": true, "type": "variant"}]}',
            {},
            "column `a`: there is no test data for the type `variant`",
        ),
        (
            '{"fields": [{"id": 1, "name": "a", "required": true, "type": "int"}]}',
            {"rows": 0},
            "the number of rows is less than 1",
        ),
        (
            '{"fields": [{"id": 1, "name": "a", "required": true, "type": "int"}]}',
            {"rows_per_group": 0},
            "a row group has at least 1 row",
        ),
    ],
)
def test_a_wrong_argument_is_a_value_error(
    tmp_path: Path, schema: str, options: dict[str, int], message: str
) -> None:
    given = {"first_row": 0, "rows": 1, "seed": 0, "rows_per_group": 10, **options}
    with (tmp_path / "rows.parquet").open("wb") as stream, pytest.raises(ValueError, match=message):
        icemigrate_native.write_parquet(schema, stream.fileno(), **given)


def test_a_file_that_is_not_writable_is_an_os_error(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    file.touch()
    with file.open("rb") as stream, pytest.raises(OSError, match="Bad file descriptor"):
        write_rows(every_type(), RowRange(0, 10, 1), stream)


def test_an_exception_of_the_report_ends_the_work(tmp_path: Path) -> None:
    def refuse(_rows: int) -> None:
        raise LookupError("enough")

    with (tmp_path / "rows.parquet").open("wb") as stream, pytest.raises(LookupError, match="enough"):
        write_rows(SMALL, RowRange(0, 10**12, 1), stream, refuse)


def test_ctrl_c_ends_the_work(tmp_path: Path) -> None:
    # A shell starts background jobs with SIGINT ignored, and this work would never end.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(_rows: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    try:
        with (tmp_path / "rows.parquet").open("wb") as stream, pytest.raises(KeyboardInterrupt):
            write_rows(SMALL, RowRange(0, 10**12, 1), stream, interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
