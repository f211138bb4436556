"""A column that comes back under its own field id, compared with the types that files were written under."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, NestedField, StructType

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.evidence.narrowed_types import with_narrow_type_problems
from icemigrate.history.history_properties import History
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.file_evidence_values import WiderFiles
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.types import Decimal, Primitive
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from tests.support.planned_migrations import make_plan, pending

NAME = TableName(("db",), "t")
INT, LONG, FLOAT, DOUBLE = (Primitive(name) for name in ("int", "long", "float", "double"))
NARROW = {2: INT, 3: Decimal(9, 2), 5: FLOAT}


def lake(folder: Path, *, write: bool, bounds: bool = True, expire: bool = False) -> Catalog:
    """A table of which three columns became wider and were dropped.

    :param write: whether a row was written while they were wide; one was before.
    :param bounds: whether files have bounds.
    :param expire: whether all snapshots but the last expired.
    """
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("db")
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "n", IntegerType(), required=False),
        NestedField(3, "d", DecimalType(9, 2), required=False),
        NestedField(4, "s", StructType(NestedField(5, "a", FloatType(), required=False)), required=False),
    )
    metrics = {} if bounds else {"write.metadata.metrics.default": "counts"}
    table = catalog.create_table("db.t", schema, properties=metrics)
    table.append(_row(pa.int32(), pa.decimal128(9, 2), pa.float32()))
    with table.update_schema() as update:
        update.update_column("n", LongType())
        update.update_column("d", DecimalType(18, 2))
        update.update_column(("s", "a"), DoubleType())
    if write:
        table.append(_row(pa.int64(), pa.decimal128(18, 2), pa.float64()))
    with table.update_schema() as update:
        for name in ("n", "d", "s"):
            update.delete_column(name)
    table.append(pa.table({"id": [9]}))
    if expire:
        last = table.current_snapshot()
        assert last is not None
        ids = [s.snapshot_id for s in table.snapshots() if s.snapshot_id != last.snapshot_id]
        table.maintenance.expire_snapshots().by_ids(ids).commit()
    return open_catalog(
        CatalogSettings("lake", "sqlite", f"sqlite:///{folder}/catalog.db", f"file://{folder}/lake")
    )


def _row(n: pa.DataType, d: pa.DataType, a: pa.DataType) -> pa.Table:
    schema = pa.schema([("id", pa.int64()), ("n", n), ("d", d), ("s", pa.struct([("a", a)]))])
    return pa.Table.from_pylist([{"id": 1, "n": 36, "d": None, "s": {"a": 1.5}}], schema)


@pytest.mark.parametrize("bounds", [True, False])
def test_files_under_a_wider_type_are_counted(tmp_path: Path, bounds: bool) -> None:
    found = lake(tmp_path, write=True, bounds=bounds).wider_files(NAME, NARROW)
    one = {2: LONG, 3: Decimal(18, 2), 5: DOUBLE}
    assert found == {i: WiderFiles(1, 0, type_) for i, type_ in one.items()}


@pytest.mark.parametrize("bounds", [True, False])
def test_a_type_that_nothing_was_written_under_does_no_harm(tmp_path: Path, bounds: bool) -> None:
    found = lake(tmp_path, write=False, bounds=bounds).wider_files(NAME, NARROW)
    assert found is not None
    assert [(one.files, one.unknown) for one in found.values()] == [(0, 0)] * 3


def test_the_bounds_tell_where_snapshots_have_expired(tmp_path: Path) -> None:
    found = lake(tmp_path, write=True, expire=True).wider_files(NAME, NARROW)
    assert found is not None
    assert {i: (one.files, one.unknown) for i, one in found.items()} == {2: (1, 0), 3: (0, 2), 5: (0, 2)}


def test_without_manifests_nothing_is_known_but_the_schemas(tmp_path: Path) -> None:
    catalog = lake(tmp_path, write=True)
    for file in tmp_path.rglob("*-m0.avro"):
        file.unlink()
    assert catalog.wider_files(NAME, {2: INT, 1: LONG}) == {
        2: WiderFiles(0, None, LONG),
        1: WiderFiles(0, None, None),
    }


CREATE = """
    tables:
      - name: db.t
        columns:
          - {name: id, type: long}
          - {name: n, type: int}
          - {name: d, type: "decimal(9,2)"}
          - {name: s, type: "struct<a: float>"}
"""
DROP = "{allow: [destructive], tables: [{name: db.t, drop_columns: [n, d, s]}]}"
RESTORE = "{tables: [{name: db.t, restore_columns: [n, d, s]MORE}]}"
ONE, MAYBE = "1 data file was", "2 data files may have been"
WIDE = ', columns: [{name: n, type: long}, {name: d, type: "decimal(18,2)"}, {name: s.a, type: double}]'


@pytest.mark.parametrize(
    ("write", "expire", "more", "refused"),
    [
        (True, False, "", {"n": ONE, "d": ONE, "s.a": ONE}),
        (True, True, "", {"n": ONE, "d": MAYBE, "s.a": MAYBE}),
        (True, False, WIDE, {}),
        (True, True, WIDE, {}),
        (False, False, "", {}),
    ],
)
def test_a_column_does_not_come_back_narrower_than_its_files(
    tmp_path: Path, write: bool, expire: bool, more: str, refused: dict[str, str]
) -> None:
    catalog = lake(tmp_path, write=write, expire=expire)
    there = catalog.load([NAME])[NAME]
    around = PlanningContext("market", "local")
    base = plan_migrations([pending("0001", CREATE), pending("0002", DROP)], EMPTY_STATE, {}, around).state
    text = RESTORE.replace("MORE", more)
    plan = make_plan({"0003": text}, {NAME: there}, base=base, namespaces=[("db",)])
    (migration,) = with_narrow_type_problems(plan.migrations, {NAME: there}, catalog, History("market"))
    problems = {p.subject[1]: p for p in migration.problems}
    assert all(p.rule == "narrow-type" for p in problems.values())
    assert {n: p.message.split(": ")[1].split(" written")[0] for n, p in problems.items()} == refused
    if refused:
        assert problems["n"].hint == "write `columns: [{name: n, type: long}]` beside it"
