"""Which reader gives the rows of a table: values of every type, files elsewhere, and what neither reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import IcemigrateError
from icemigrate.iceberg.schema_json import schema_from_json
from icemigrate.table_data.query_metadata import PointMetadata
from icemigrate.table_data.query_readers import ReaderKind, choose_reader
from icemigrate.table_data.query_tables import open_sql_query, query_table
from icemigrate.table_data.query_values import json_values
from icemigrate.table_data.row_changes import update_data
from tests.support.stored_rows import append_stored
from tests.support.table_project import ORDERS, TableProject
from tests.support.table_rows import append_rows, foreign_table

VALUES: dict[str, Any] = {
    "boolean": True,
    "int": -7,
    "long": 2**63 - 1,
    "float": 0.5,
    "double": 1e300,
    "decimal(38, 4)": "1234567890123456789012345678901234.5678",
    "date": "2024-02-29",
    "time": "01:02:03.5",
    "timestamp": "2026-11-27T22:31:08.5",
    "timestamptz": "2026-11-27T22:31:08.5+00:00",
    "timestamp_ns": "2026-11-27T22:31:08.123456789",
    "string": "é",
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "binary": "00ff",
    "fixed[2]": "00ff",
}
READ = {
    "date": "2024-02-29",
    "time": "01:02:03.500000",
    "timestamp": "2026-11-27T22:31:08.500000",
    "timestamptz": "2026-11-27T22:31:08.500000Z",
}


def test_every_type_and_its_default_in_format_version_3(tmp_path: Path) -> None:
    columns = "".join(f'      - {{name: v{n}, type: "{kind}"}}\n' for n, kind in enumerate(VALUES))
    table = f"tables:\n  - name: s.t\n    format_version: 3\n    columns:\n{columns}"
    project = TableProject.create(tmp_path, table)
    append_stored(project, "s.t", [{f"v{n}": value for n, value in enumerate(VALUES.values())}])
    added = "".join(
        f'      - {{name: d{n}, type: "{kind}", default: {default(value)}}}\n'
        for n, (kind, value) in enumerate(VALUES.items())
    )
    project.migrate(2, f"tables:\n  - name: s.t\n    columns:\n{added}")
    with project.tables() as session, open_sql_query(session, "SELECT * FROM s.t") as query:
        assert query.reads[0].reader.kind is ReaderKind.DUCKDB
        found = query.rows()
    (row,) = zip(*(json_values(column.combine_chunks()) for column in found.columns), strict=True)
    expected = [READ.get(kind, value) for kind, value in VALUES.items()]
    assert list(row) == expected * 2


def default(value: Any) -> Any:
    return (
        str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else value
    )


def test_types_that_duckdb_lacks_are_read_by_pyiceberg(tmp_path: Path) -> None:
    columns = "{name: id, type: long}, {name: u, type: unknown}"
    text = f"tables: [{{name: s.t, format_version: 3, columns: [{columns}]}}]"
    project = TableProject.create(tmp_path, text)
    append_stored(project, "s.t", [{"id": 1}, {"id": 2}])
    with project.tables() as session, open_sql_query(session, "SELECT * FROM s.t WHERE id = 2") as query:
        assert query.reads[0].reader.kind is ReaderKind.PYICEBERG
        assert query.reads[0].reader.reason == (
            "DuckDB does not read it, because column `u` has the type `unknown`"
        )
        assert query.rows().to_pylist() == [{"id": 2, "u": None}]
    assert project.run("table", "query", "s.t", "--explain") == 0


def test_files_outside_of_the_table_are_read_and_no_others(tmp_path: Path) -> None:
    import duckdb
    import pyarrow as pa
    from pyarrow import parquet

    (tmp_path / "project").mkdir()
    project = TableProject.create(tmp_path / "project", ORDERS)
    table = foreign_table(project)
    schema = table.schema().as_arrow()
    plain = pa.schema([pa.field(f.name, f.type, f.nullable) for f in schema])
    for name in ("added", "other"):
        parquet.write_table(
            pa.Table.from_pylist([{"id": 1, "customer": name}], plain), tmp_path / f"{name}.parquet"
        )
    table.add_files([str(tmp_path / "added.parquet")])
    with project.tables() as session:
        assert query_table(session, "sales.orders")["customer"].to_pylist() == ["added"]
        with open_sql_query(session, "SELECT * FROM sales.orders") as query, pytest.raises(duckdb.Error):
            query.connection.execute(f"SELECT * FROM '{tmp_path}/other.parquet'")
        assert update_data(session, "sales.orders", {"customer": "'new'"}, "id = 1").updated == 1
        assert query_table(session, "sales.orders")["customer"].to_pylist() == ["new"]


def test_a_dropped_column_of_an_old_partition_spec_breaks_no_filter(tmp_path: Path) -> None:
    text = "allow: [destructive]\ntables: [{name: sales.orders, PART}]"
    project = TableProject.create(
        tmp_path, ORDERS, text.replace("PART", 'partition_by: ["truncate(1, customer)"]')
    )
    append_rows(project, [{"id": number, "customer": f"{number}x"} for number in (1, 2, 3)])
    project.migrate(3, text.replace("PART", "partition_by: []"))
    project.migrate(4, text.replace("PART", "drop_columns: [customer]"))
    append_rows(project, [{"id": 4}])
    with project.tables() as session:
        assert query_table(session, "sales.orders", "id IN (1, 4)")["id"].to_pylist() in ([1, 4], [4, 1])
        assert query_table(session, "sales.orders").column_names == ["id", "amount", "at"]


@pytest.mark.parametrize(
    ("kind", "location", "deletes", "reader"),
    [
        ("long", "/lake/t", True, ReaderKind.DUCKDB),
        ("variant", "/lake/t", False, ReaderKind.DUCKDB),
        ("timestamptz_ns", "/lake/t", False, ReaderKind.PYICEBERG),
        ("long", "s3://lake/t", False, ReaderKind.PYICEBERG),
        ("long", "s3://lake/t", True, "its files are at s3://lake/t; not by PyIceberg, because it has"),
        ("variant", "s3://lake/t", False, "because column `v.element` has the type `variant`"),
        ("geometry", "/lake/t", False, "without Spark: column `v.element` has the type `geometry`"),
        ("unknown", "/lake/t", True, "has equality deletes"),
    ],
)  # fmt: skip
def test_the_reader_is_chosen_from_metadata(
    kind: str, location: str, deletes: bool, reader: ReaderKind | str
) -> None:
    items = {"type": "list", "element-id": 2, "element-required": False, "element": kind}
    column = {"id": 1, "name": "v", "required": False, "type": items}
    schema = schema_from_json({"type": "struct", "schema-id": 0, "fields": [column]})
    json = {"location": location, "properties": {}, "snapshots": [{"manifest-list": "x"}]}
    metadata = PointMetadata(json, schema, has_equality_deletes=deletes)
    if isinstance(reader, ReaderKind):
        assert choose_reader("s.t", metadata).kind is reader
        return
    with pytest.raises(IcemigrateError) as error:
        choose_reader("s.t", metadata)
    assert reader in error.value.message
    assert error.value.hint == "run the query in `icemigrate shell`, which has Spark SQL"
