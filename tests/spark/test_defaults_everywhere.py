"""Defaults of format version 3, of every type that has them: what older rows read, and what newer ones get.

Read by Spark, whose answers are the promise.  What other readers do stands in ``docs/migration-files.md``.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.errors import Mistakes
from icemigrate.iceberg.names import TableName
from icemigrate.spark_sql.identifiers import table_sql
from tests.support.undo_project import UndoWorld, facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TableName(("db",), "t")
# Type, default as it is written, what Spark reads; and another default, of which the same is said.
DEFAULTS: dict[str, tuple[str, Any, str, Any]] = {
    "boolean": ("true", True, "false", False),
    "int": ("-7", -7, "2147483647", 2147483647),
    "long": ("9223372036854775807", 9223372036854775807, "0", 0),
    "float": ("0.5", 0.5, "-2", -2.0),
    "double": ("1.0e300", 1e300, "0.1", 0.1),
    "decimal(9, 2)": ("1.50", Decimal("1.50"), "-0.05", Decimal("-0.05")),
    "date": ("2024-02-29", date(2024, 2, 29), "1969-12-31", date(1969, 12, 31)),
    "timestamp": (
        "2026-11-27T22:31:08.5",
        datetime(2026, 11, 27, 22, 31, 8, 500000),
        "1969-12-31T23:59:59",
        datetime(1969, 12, 31, 23, 59, 59),
    ),
    "string": ('"it\'s: \\"é😎\\""', 'it\'s: "é😎"', '""', ""),
    "uuid": (
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "00000000-0000-4000-8000-000000000001",
        "00000000-0000-4000-8000-000000000001",
    ),
    "binary": ("00ff", b"\x00\xff", '""', b""),
    "fixed[2]": ("00ff", b"\x00\xff", "0a0b", b"\x0a\x0b"),
}


@pytest.fixture
def world(tmp_path: Path, spark: SparkSession) -> UndoWorld:
    return UndoWorld(tmp_path, spark)


def migrate(world: UndoWorld, version: str, entry: str, allow: str = "") -> None:
    head = f"allow: [{allow}]\n" if allow else ""
    world.file(version, f"{head}tables:\n  - name: db.t\n{entry}")
    world.project.apply(spark=world.spark)


def read(world: UndoWorld) -> dict[int, dict[str, Any]]:
    """The rows by id, as Spark reads them."""
    found = world.spark.sql(f"SELECT * FROM {table_sql(world.catalog, T)}").collect()
    return {row["id"]: row.asDict(recursive=True) for row in found}


def columns(n: int) -> str:
    """Every column with its first default, or the other one; every second column is required."""
    lines = []
    for at, (type_, said) in enumerate(DEFAULTS.items()):
        required = ", required: true" if at % 2 else ""
        lines.append(f'      - {{name: c{at}, type: "{type_}", default: {said[n]}{required}}}\n')
    return "".join(lines)


CREATE = """    format_version: 3
    properties: {write.format.default: FORMAT}
    columns:
      - {name: id, type: int}
      - {name: s, type: "struct<k: int>"}
      - {name: l, type: "list<struct<k: int>>"}
"""
NESTED = """      - {name: s.d, type: int, default: 5}
      - {name: l.element.d, type: string, required: true, default: z}
"""


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_rows_read_the_default_of_their_time(world: UndoWorld, file_format: str) -> None:
    migrate(world, "0001", CREATE.replace("FORMAT", file_format))
    world.sql("INSERT INTO @ SELECT 1, named_struct('k', 1), array(named_struct('k', 1))", T)
    before = world.actual(T)
    migrate(world, "0002", f"    columns:\n{columns(0)}{NESTED}")
    old = {f"c{at}": said[1] for at, said in enumerate(DEFAULTS.values())}
    row = {"id": 1, "s": {"k": 1, "d": 5}, "l": [{"k": 1, "d": "z"}], **old}
    assert read(world) == {1: row}

    migrate(world, "0003", f"    columns:\n{columns(2)}")
    world.sql("INSERT INTO @ (id, s, l) VALUES (2, named_struct('k', 1, 'd', 6), NULL)", T)
    new = {f"c{at}": said[3] for at, said in enumerate(DEFAULTS.values())}
    there = {1: row, 2: {"id": 2, "s": {"k": 1, "d": 6}, "l": None, **new}}
    assert read(world) == there

    # A rename, a wider type and another place keep both defaults.
    migrate(
        world,
        "0004",
        "    renames: {c1: n}\n    columns: [{name: n, type: long, first: true}]\n",
    )
    renamed = {i: {("n" if k == "c1" else k): v for k, v in r.items()} for i, r in there.items()}
    assert read(world) == renamed
    n = world.actual(T).schema.fields[0]
    assert (n.name, n.initial_default, n.write_default) == ("n", -7, 2147483647)
    world.project.rollback(to="0003", spark=world.spark)
    assert read(world) == there

    world.project.rollback(to="0001", spark=world.spark)
    assert facts(world.actual(T)) == facts(before)
    assert [sorted(r) for r in read(world).values()] == [["id", "l", "s"]] * 2


def test_types_that_spark_cannot_load_have_defaults_too(world: UndoWorld) -> None:
    said = {
        "time": ("22:31:08.5", "22:31:08.5"),
        "timestamp_ns": ("2026-11-27T22:31:08.123456789", "2026-11-27T22:31:08.123456789"),
        "timestamptz": ("2026-11-27T22:31:08Z", "2026-11-27T22:31:08+00:00"),
        "timestamptz_ns": ("2026-11-27T22:31:08.1Z", "2026-11-27T22:31:08.1+00:00"),
    }
    migrate(world, "0001", CREATE.replace("FORMAT", "parquet"))
    text = "".join(
        f'      - {{name: c{n}, type: {t}, required: true, default: "{v}"}}\n'
        for n, (t, (v, _)) in enumerate(said.items())
    )
    migrate(world, "0002", f"    columns:\n{text}")
    fields = world.actual(T).schema.fields[3:]
    assert [(f.initial_default, f.write_default) for f in fields] == [(v, v) for _, v in said.values()]
    migrate(world, "0003", '    columns: [{name: c0, default: "00:00"}, {name: c1, default: null}]\n')
    c0, c1 = world.actual(T).schema.fields[3:5]
    assert (c0.initial_default, c0.write_default) == ("22:31:08.5", "00:00:00")
    assert (c1.initial_default, c1.write_default) == ("2026-11-27T22:31:08.123456789", None)


def test_below_version_3_the_upgrade_is_named(world: UndoWorld) -> None:
    migrate(world, "0001", "    format_version: 2\n    columns: [{name: id, type: int}]\n")
    entry = "    columns: [{name: n, type: int, required: true, default: 7}]\n"
    with pytest.raises(Mistakes) as refused:
        migrate(world, "0002", entry)
    (told,) = refused.value.diagnostics
    assert told.code == "default-needs-newer-format"
    assert told.hint is not None
    assert "format_version: 3" in told.hint
    world.sql("INSERT INTO @ VALUES (1)", T)
    migrate(world, "0002", f"    format_version: 3\n{entry}", "irreversible")
    assert read(world) == {1: {"id": 1, "n": 7}}


def test_files_of_orc_cannot_be_read_with_a_new_default(world: UndoWorld) -> None:
    """Why the plan warns of it."""
    migrate(world, "0001", CREATE.replace("FORMAT", "orc"))
    world.sql("INSERT INTO @ (id) VALUES (1)", T)
    migrate(world, "0002", "    columns: [{name: n, type: int, default: 7}]\n")
    with pytest.raises(Exception, match="ORC cannot read default value"):
        read(world)
    world.project.rollback(spark=world.spark)
    assert read(world) == {1: {"id": 1, "s": None, "l": None}}
