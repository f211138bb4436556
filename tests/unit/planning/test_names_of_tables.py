"""Names that clash only outside of Iceberg's rules: in case, in length, and with metadata tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.changes.change import MetadataCommit, SqlStatement
from icemigrate.commands.check import check
from icemigrate.commands.import_tables import import_tables
from icemigrate.commands.init import new
from icemigrate.commands.plan import plan
from icemigrate.iceberg.metadata_tables import table_above
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Field, Schema
from icemigrate.iceberg.table import MAX_NAME_BYTES, Table, purge_name, trash_name, trash_names
from icemigrate.iceberg.types import Primitive
from icemigrate.maintenance.trash import _VERSION
from icemigrate.planning.plan import TablePlan
from icemigrate.project import open_project
from tests.support.embedded_project import Embedded

T = TableName(("db",), "t")
BOTH = "[{name: id, type: long}, {name: col1, type: string}, {name: COL1, type: string}]"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    """A table of another tool, with two columns that differ only in case."""
    shop = Embedded(tmp_path)
    names = ("id", "col1", "COL1")
    fields = tuple(
        Field(i, name, Primitive("long" if i == 1 else "string")) for i, name in enumerate(names, 1)
    )
    shop.engine.tables[T] = Table(T, Schema(fields), last_column_id=3)
    shop.save()
    (tmp_path / "migrations").mkdir()
    return shop


def codes(shop: Embedded) -> list[str]:
    return [f"{d.code} {d.severity.value}" for d in check(open_project(shop.folder)).diagnostics]


def planned(shop: Embedded) -> TablePlan:
    (migration,) = plan(open_project(shop.folder)).plan.migrations
    (table,) = migration.tables
    return table


def test_import_check_and_plan_warn_of_columns_that_differ_only_in_case(shop: Embedded) -> None:
    result = import_tables(open_project(shop.folder))
    assert any("`COL1` and `col1` differ only in case" in note for note in result.notes)
    assert "names-differ-by-case warning" in codes(shop)
    found = plan(open_project(shop.folder)).diagnostics
    assert [d.code for d in found] == ["names-differ-by-case"]


@pytest.mark.parametrize(
    "change",
    [
        "allow: [destructive]\ntables: [{name: db.t, drop_columns: [COL1]}]",
        "tables: [{name: db.t, renames: {COL1: other}}]",
        "tables: [{name: db.t, columns: [{name: COL1, description: x, first: true}]}]",
    ],
)
def test_such_a_table_is_changed_by_metadata_commits_until_it_is_right(shop: Embedded, change: str) -> None:
    shop.write("0001_adopt.yaml", f"tables: [{{name: db.t, adopt: true, columns: {BOTH}}}]\n")
    shop.apply()
    shop.write("0002_change.yaml", change)
    statements = [s for step in planned(shop).steps for s in step.statements]
    assert [type(s) for s in statements] == [MetadataCommit]
    shop.apply()
    shop.write("0003_more.yaml", "tables: [{name: db.t, columns: [{name: more, type: string}]}]\n")
    is_right = "description" not in change
    (statement,) = (s for step in planned(shop).steps for s in step.statements)
    assert isinstance(statement, SqlStatement) == is_right


@pytest.mark.parametrize("name", ["t" * 240, "é" * 120, "名" * 80])
@pytest.mark.parametrize("namespace", ["n", "n" * 120, "名" * 85])
@pytest.mark.parametrize("project", ["shop", "p" * 60])
def test_a_name_in_the_trash_is_as_long_as_a_name_may_be(name: str, namespace: str, project: str) -> None:
    table = TableName((namespace,), name)
    trashed = trash_name(table, project, "20261129060000")
    assert len(purge_name(trashed, "0123456789abcdef").name.encode()) <= MAX_NAME_BYTES
    found = _VERSION.search(trashed.name)
    assert found is not None
    assert found[1] == "20261129060000"
    others = {
        trash_name(table, project, "20261129060001"),
        trash_name(TableName((namespace,), name[:-1]), project, "20261129060000"),
        trash_name(table, f"{project}2", "20261129060000"),
    }
    assert len({trashed, *others}) == 4
    assert trash_names(table, project, "0002")[0] == trash_name(table, project, "0002")


def test_a_short_name_in_the_trash_stays_readable() -> None:
    assert trash_name(TableName(("a", "b"), "t"), "shop", "0002").name == "a__b__t__shop__0002"


@pytest.mark.parametrize(
    ("name", "above"),
    [
        ("a.t.snapshots", "a.t"),
        ("a.t.SNAPSHOTS", "a.t"),
        ("a.b.t.branch_audit", "a.b.t"),
        ("a.t.snapshot_id_12", "a.t"),
        ("a.t.snapshot", None),
        ("t.snapshots", None),
    ],
)
def test_names_of_metadata(name: str, above: str | None) -> None:
    found = table_above(TableName.parse(name))
    assert (None if found is None else str(found)) == above


TABLE = "columns: [{name: id, type: long}]"


@pytest.mark.parametrize(
    "files",
    [
        [f"tables: [{{name: a.t, {TABLE}}}, {{name: a.t.snapshots, {TABLE}}}]"],
        [f"tables: [{{name: a.t, {TABLE}}}]", f"tables: [{{name: a.t.history, {TABLE}}}]"],
        [f"tables: [{{name: a.t.files, {TABLE}}}]", f"tables: [{{name: a.t, {TABLE}}}]"],
        [
            f"tables: [{{name: a.t, {TABLE}}}, {{name: a.u.refs, {TABLE}}}]",
            "tables: [{name: a.u, renamed_from: a.t}]",
        ],
    ],
)
def test_a_table_next_to_the_table_whose_metadata_has_its_name(tmp_path: Path, files: list[str]) -> None:
    shop = Embedded(tmp_path)
    for number, text in enumerate(files, 1):
        shop.write(f"000{number}_step.yaml", text)
    assert codes(shop).count("metadata-table-name error") == 1


def test_a_table_with_the_name_of_metadata_of_no_table(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_alone.yaml", f"tables: [{{name: a.t.snapshots, {TABLE}}}, {{name: a.u, {TABLE}}}]")
    assert "metadata-table-name error" not in codes(shop)


def test_a_property_of_a_column_is_moved_by_the_migration_that_renames_it(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    key = "write.parquet.bloom-filter-fpp.column."
    shop.write("0001_make.yaml", f"tables: [{{name: a.t, {TABLE}, properties: {{{key}id: '0.1'}}}}]")
    shop.apply()
    shop.write("0002_rename.yaml", "tables: [{name: a.t, renames: {id: key}}]")
    shop.apply()
    there = shop.engine.tables[TableName(("a",), "t")].properties
    assert {k: v for k, v in there.items() if k.startswith(key)} == {f"{key}key": "0.1"}


@pytest.mark.parametrize("kind", ["fpp", "ndv"])
def test_a_property_of_an_unknown_column_is_reported(tmp_path: Path, kind: str) -> None:
    shop = Embedded(tmp_path)
    key = f"write.parquet.bloom-filter-{kind}.column.ghost"
    shop.write("0001_make.yaml", f"tables: [{{name: a.t, {TABLE}, properties: {{{key}: '1'}}}}]")
    assert "property-without-column error" in codes(shop)


def test_the_file_that_new_writes_is_a_finding_until_it_is_edited(tmp_path: Path) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_make.yaml", f"tables: [{{name: a.t, {TABLE}}}]")
    new(open_project(tmp_path), "next step")
    assert "empty-migration warning" in codes(shop)
    shop.write("0002_next_step.yaml", "tables: [{name: a.t, properties: {x: y}}]")
    assert "empty-migration warning" not in codes(shop)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_chain_of_renames_is_planned_in_whatever_order_it_is_written(
    tmp_path: Path, is_reversed: bool
) -> None:
    shop = Embedded(tmp_path)
    shop.write("0001_make.yaml", f"tables: [{{name: d.a, {TABLE}}}, {{name: d.b, {TABLE}}}]")
    shop.apply()
    uuids = {name.name: table.uuid for name, table in shop.engine.tables.items() if name.namespace == ("d",)}
    entries = ["{name: d.b, renamed_from: d.a}", "{name: d.c, renamed_from: d.b}", f"{{name: d.a, {TABLE}}}"]
    shop.write("0002_chain.yaml", f"tables: [{', '.join(entries[:: -1 if is_reversed else 1])}]")
    assert not [code for code in codes(shop) if code.endswith("error")]
    shop.apply()
    there = {name.name: table.uuid for name, table in shop.engine.tables.items() if name.namespace == ("d",)}
    assert (there["b"], there["c"]) == (uuids["a"], uuids["b"])
    assert there["a"] not in uuids.values()
