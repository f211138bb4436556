"""What a branch's files have of a column that becomes required, out of manifests as PyIceberg writes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.evidence.not_null_checks import with_not_null_problems
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.file_evidence_values import FieldQuery, MissingValues
from icemigrate.iceberg.names import TableName
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from tests.support.planned_migrations import make_plan, pending

NAME = TableName(("db",), "t")
FIELDS = {i: FieldQuery(frozenset({i})) for i in (2, 5, 9)}


def lake(folder: Path, properties: dict[str, str], kind: str = "sqlite") -> Catalog:
    """A table with a branch: one file of two rows there lacks a column, one of three has a null in another.

    Main is empty, since nothing is asked of it.
    """
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("db")
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "n", LongType(), required=False),
        NestedField(3, "s", StructType(NestedField(4, "a", LongType(), required=False)), required=False),
    )
    table = catalog.create_table("db.t", schema, properties=properties)
    table.append(pa.table({"id": [1, 2], "n": [1, 2], "s": [{"a": 1}, {"a": 2}]}))
    with table.update_schema() as update:
        update.add_column("c", LongType())
    table.append(pa.table({"id": [3, 4, 5], "n": [3, None, 5], "s": [{"a": 3}] * 3, "c": [3, 4, 5]}))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_branch(snapshot.snapshot_id, "one").commit()
    table.delete()
    return open_catalog(
        CatalogSettings("lake", kind, f"sqlite:///{folder}/catalog.db", f"file://{folder}/lake")
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """One that nobody breaks."""
    return lake(tmp_path_factory.mktemp("plain"), {})


def snapshot_of(catalog: Catalog, branch: str = "one") -> int:
    table = catalog.load([NAME])[NAME]
    assert table is not None
    return table.heads[branch].snapshot.id


@pytest.mark.parametrize("kind", ["sqlite", "sql"])
def test_rows_are_counted_that_have_no_value(tmp_path: Path, kind: str) -> None:
    catalog = lake(tmp_path, {}, kind)
    at = snapshot_of(catalog)
    found = catalog.missing_values(NAME, at, FIELDS)
    assert found is not None
    examples = [gaps.example for gaps in found.values()]
    assert [replace(gaps, example=None) for gaps in found.values()] == [
        MissingValues(0, 1, 0),
        MissingValues(2, 0, 0, files=1),
        MissingValues(5, 0, 0, files=2),
    ]
    # It is a file that is there.
    assert [e if e is None else Path(e.removeprefix("file://")).is_file() for e in examples] == [
        None,
        True,
        True,
    ]
    assert catalog.missing_values(TableName(("db",), "nowhere"), at, FIELDS) is None
    assert catalog.missing_values(NAME, at + 1, FIELDS) is None


def test_what_lacks_a_struct_as_a_whole_lacks_nothing_in_it(plain: Catalog) -> None:
    struct, nowhere = frozenset({4}), frozenset({8, 9})
    sought = {
        2: FieldQuery(frozenset({2}), struct),
        9: FieldQuery(frozenset({9}), nowhere),
        10: FieldQuery(frozenset({10}), struct),
    }
    found = plain.missing_values(NAME, snapshot_of(plain), sought)
    assert found is not None
    # A null may be that of the struct.
    assert [(g.lacking, g.nulls, g.unknown) for g in found.values()] == [(0, 0, 3), (0, 0, 0), (5, 0, 0)]


def test_where_metrics_are_limited_a_file_without_them_says_nothing(tmp_path: Path) -> None:
    catalog = lake(tmp_path, {"write.metadata.metrics.column.n": "none"})
    found = catalog.missing_values(NAME, snapshot_of(catalog), FIELDS)
    assert found == {
        2: MissingValues(0, 0, 5),
        5: MissingValues(0, 0, 2, silent=2),
        9: MissingValues(0, 0, 5, silent=5),
    }


CREATE = """
    tables:
      - name: db.t
        columns:
          - {name: id, type: long}
          - {name: n, type: long}
          - {name: s, type: "struct<a: long>"}
"""
ADD = "{tables: [{name: db.t, columns: [{name: c, type: long}]}]}"


def told(catalog: Catalog, entry: str) -> dict[str, list[tuple[str, str]]]:
    """What is told of a migration, by how much it matters: identifier and message."""
    there = catalog.load([NAME])[NAME]
    assert there is not None
    around = PlanningContext("market", "local")
    files = [pending("0001", CREATE), pending("0002", ADD)]
    base = plan_migrations(files, EMPTY_STATE, {}, around).state
    text = f"{{allow: [destructive, incompatible], tables: [{{name: db.t, {entry}}}]}}"
    plan = make_plan({"0003": text}, {NAME: there}, base=base, namespaces=[("db",)])
    (migration,) = with_not_null_problems(plan.migrations, {NAME: there}, catalog, "lake")
    return {
        "error": [(p.rule, p.message) for p in migration.problems],
        "warning": [(p.rule, p.message) for p in migration.warnings if p.rule != "branch-follows-schema"],
    }


MAY = (
    "branch-may-lack-required",
    "the manifests of branch `one` (5 rows) do not say whether every row has a value of `{}`: no reader can "
    "read a file that lacks it, and a null is read as 0",
)


@pytest.mark.parametrize(
    ("entry", "error", "warning"),
    [
        (
            "columns: [{name: c, required: true}]",
            (
                "branch-lacks-required",
                "`c` cannot be required: files of branch `one` (5 rows) lack it, and no reader could read "
                "them",
            ),
            None,
        ),
        (
            "renames: {n: m}, columns: [{name: m, required: true}]",
            (
                "branch-holds-nulls",
                "`m` cannot be required: branch `one` (5 rows) has a null in it, which Spark would read as 0",
            ),
            None,
        ),
        ("columns: [{name: id, required: true}]", None, None),
        ("columns: [{name: s, required: true}]", None, MAY),
        ("columns: [{name: s.a, required: true}]", None, None),
        ("branches: {one: null}, columns: [{name: c, required: true}]", None, None),
    ],
)
def test_a_plan_looks_into_the_files_of_a_branch(
    plain: Catalog, entry: str, error: tuple[str, str] | None, warning: tuple[str, str] | None
) -> None:
    found = told(plain, entry)
    assert found["error"] == ([] if error is None else [error])
    assert found["warning"] == ([] if warning is None else [(warning[0], warning[1].format("s"))])


def test_what_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    catalog = lake(tmp_path, {})
    for file in tmp_path.rglob("*.avro"):
        file.unlink()
    found = told(catalog, "columns: [{name: id, required: true}]")
    assert found == {"error": [], "warning": [(MAY[0], MAY[1].format("id"))]}
