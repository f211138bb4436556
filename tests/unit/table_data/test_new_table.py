"""Tables that no migration declares."""

from __future__ import annotations

import io
import json
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icemigrate.errors import ExitCode, Mistakes, UsageError
from icemigrate.iceberg.metadata_parts import current_schema
from icemigrate.iceberg.type_text import format_type
from icemigrate.table_data.insert_rows import insert_files
from icemigrate.table_data.new_table import create_table
from tests.support.table_project import ORDERS, TableProject
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]

ICEBERG = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"id": 7, "name": "id", "type": "long", "required": True},
            {"id": 9, "name": "at", "type": "timestamptz_ns", "required": False},
        ],
    }
)
NUMBERS = map("of_csv{}".format, count())
YAML = "columns:\n  - {name: id, type: long, required: true}\n  - {name: at, type: timestamptz}\n"
TABLE = pa.table({"id": pa.array([1]), "at": pa.array([0], pa.timestamp("us", "UTC")), "l": [[{"a": 1.5}]]})


def parquet() -> bytes:
    stream = io.BytesIO()
    pq.write_table(TABLE, stream)
    return stream.getvalue()


def columns(written: WrittenTables, name: str) -> list[tuple[int, str, str, bool]]:
    schema = current_schema(written.session.load(name).metadata)
    return [(f.id, f.name, format_type(f.type), f.required) for f in schema.fields]


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("s.json", ICEBERG, [(1, "id", "long", True), (2, "at", "timestamptz_ns", False)]),
        ("s.yaml", YAML, [(1, "id", "long", True), (2, "at", "timestamptz", False)]),
        ("l.yaml", "- {name: id, type: long}\n", [(1, "id", "long", False)]),
        ("j.json", '{"columns": [{"name": "id", "type": "long"}]}', [(1, "id", "long", False)]),
        (
            "d.csv",
            "id,at,day,x,t\n1,2024-01-01T00:00:00Z,2024-01-01,1.5,a\n",
            [
                (1, "id", "long", False),
                (2, "at", "timestamptz", False),
                (3, "day", "date", False),
                (4, "x", "double", False),
                (5, "t", "string", False),
            ],
        ),
        (
            "n.csv",
            f"a,b,c\n{10**22},{10**38},1\n-5,,2.5\n",
            [(1, "a", "decimal(23,0)", False), (2, "b", "string", False), (3, "c", "double", False)],
        ),
        (
            "d.parquet",
            parquet(),
            [
                (1, "id", "long", False),
                (2, "at", "timestamptz", False),
                (3, "l", "list<struct<a: double>>", False),
            ],
        ),
    ],
)
def test_columns_come_from_every_kind_of_file(
    written: WrittenTables, name: str, content: str | bytes, wanted: list[tuple[int, str, str, bool]]
) -> None:
    table = f"sales.{name.replace('.', '_')}"
    code = written.project.run("table", "create", table, "--schema", written.file(name, content))
    assert code == ExitCode.OK
    assert columns(written, table) == wanted


def test_the_output_names_the_command_that_declares_it(
    written: WrittenTables, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written.file("s.yaml", YAML + "partition_by: [day(at)]\nsort_by: [id]\n")
    assert written.project.run("table", "create", "sales.shown", "--schema", path) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown == (
        "Created table sales.shown in local: 2 columns, format version 2.\n"
        "  id  long         required\n"
        "  at  timestamptz\n"
        "No migration declares it: `icemigrate import sales.shown` writes one that does.\n"
    )
    metadata = written.session.load("sales.shown").metadata
    assert [spec["spec-id"] for spec in metadata["partition-specs"]] == [0]
    assert metadata["default-sort-order-id"] == 1


def test_a_table_of_a_new_namespace_is_created(written: WrittenTables) -> None:
    made = create_table(written.session, "fresh.t", TABLE.schema, properties={"a": "b"})
    assert made.metadata["properties"]["a"] == "b"
    assert [c[1] for c in columns(written, "fresh.t")] == ["id", "at", "l"]
    with pytest.raises(UsageError, match=r"table `fresh\.t` exists already"):
        create_table(written.session, "fresh.t", TABLE.schema)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.yaml", "columns: [{name: id, type: lnog}]", "declares no valid table"),
        ("b.yaml", "columns: [", "1 mistake"),
        ("b.yaml", "rows: 1", "it has no key `columns`"),
        ("b.json", '{"fields": [{"name": "x"}]}', "the schema is not Iceberg's schema JSON"),
        ("b.yaml", "columns: [{name: id, type: long}, {name: id, type: int}]", "declares no valid table"),
        ("b.yaml", b"\xff", "is not UTF-8"),
        ("b.parquet", b"PAR1junk", "b.parquet: it cannot be read as parquet: "),
        ("b.parquet", parquet()[:-20], "b.parquet: it cannot be read as parquet: "),
        ("b.csv", "A,a\n1,2\n", "b.csv: the columns `A` and `a` differ only in case"),
        ("b.csv", "a,,b\n1,2,3\n", "b.csv: column 2 of its header has no name"),
        ("b.csv", "a,a\n1,2\n", "b.csv: column `a` is there twice"),
        ("b.jsonl", '{"a": 1}', "columns are read from Parquet and CSV files"),
    ],
)
def test_a_bad_schema_is_an_error(
    written: WrittenTables, capsys: pytest.CaptureFixture[str], name: str, content: str | bytes, message: str
) -> None:
    path = written.file(name, content)
    assert written.project.run("table", "create", "sales.bad", "--schema", path) != ExitCode.OK
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert written.session.find(written.session.parse("sales.bad")) is None


def test_rules_of_iceberg_apply(written: WrittenTables) -> None:
    schema = pa.schema([("a.b", pa.int64()), pa.field("a", pa.struct([("b", pa.int64())]))])
    with pytest.raises(Mistakes, match=r"table `sales\.rules` is not created"):
        create_table(written.session, "sales.rules", schema)
    with pytest.raises(
        UsageError, match=r"the type of `d` cannot be declared: Iceberg has no type for `duration"
    ):
        create_table(written.session, "sales.rules", pa.schema([("d", pa.duration("s"))]))


def test_a_declared_table_is_refused(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    project = TableProject(tmp_path)
    (tmp_path / "icemigrate.yaml").write_text("project: sales\n", encoding="utf-8")
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0001_orders.yaml").write_text(ORDERS, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(YAML, encoding="utf-8")
    code = project.run("table", "create", "sales.orders", "--schema", str(tmp_path / "s.yaml"))
    assert code == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert "migration 0001 declares table `sales.orders`" in shown
    assert "`icemigrate apply` creates it" in shown
    assert project.run("apply", "--auto-approve", "--quiet", "--apply-with", "metadata") == ExitCode.OK
    project.run("table", "create", "sales.orders", "--schema", str(tmp_path / "s.yaml"))
    assert "it exists already: `icemigrate table insert sales.orders" in capsys.readouterr().err


def test_the_types_of_a_csv_file_are_shown_before_and_after_the_creation(
    written: WrittenTables, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written.file("c.csv", "id,price,day\n1,1.5,2026-01-31\n")
    run = written.project.run
    assert run("table", "create", "sales.seen", "--schema", path, "--dry-run") == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith("Would create table sales.seen in local: 3 columns")
    types = [line.split() for line in shown.splitlines() if line.startswith("  ")]
    assert types == [["id", "long"], ["price", "double"], ["day", "date"]]
    assert "Each type fits all values of the file" in shown
    assert written.session.find(written.session.parse("sales.seen")) is None
    assert run("table", "create", "sales.seen", "--schema", path, "--format", "json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert (document["done"], document["is_inferred"]) == (True, True)
    assert document["location"]


def test_a_character_beyond_the_basic_plane_is_part_of_a_name(written: WrittenTables) -> None:
    fields = [{"name": "🙂", "type": "long", "description": "a\\ud83d and 🙂"}]
    for number, ensure_ascii in enumerate((True, False)):
        schema = written.file("s.json", json.dumps({"columns": fields}, ensure_ascii=ensure_ascii))
        name = f"sales.🙃{number}"
        assert written.project.run("table", "create", name, "--schema", schema) == ExitCode.OK
        (column,) = current_schema(written.session.load(name).metadata).fields
        assert (column.name, column.doc) == ("🙂", "a\\ud83d and 🙂")


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["1", " 2 "], "long"),
        (["2024-01-01", "9999-12-31"], "date"),
        (["01/02/2024"], "string"),
        (["infinity"], "string"),
        (["2024-01-01", "infinity"], "string"),
        (["10:00", "24:00:00"], "string"),
        (["0x1F"], "string"),
        (["1e400", "1"], "string"),
        (["2024-01-01 10:00:00.123456789"], "string"),
        (["", "1.5"], "double"),
    ],
)
def test_a_table_of_a_csv_file_takes_all_of_its_rows(
    written: WrittenTables, values: list[str], type_: str
) -> None:
    path, name = (
        written.file("v.csv", "v,n\n" + "".join(f"{v},1\n" for v in values)),
        f"sales.{next(NUMBERS)}",
    )
    assert written.project.run("table", "create", name, "--schema", path) == ExitCode.OK
    first, _ = current_schema(written.session.load(name).metadata).fields
    assert format_type(first.type) == type_
    assert insert_files(written.session, name, [path]).rows == len(values)
