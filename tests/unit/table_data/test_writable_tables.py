"""Tables that only icemigrate writes, and tables of other projects, in each command that writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icemigrate import IcebergManager
from icemigrate.cli.group import TABLE_COMMANDS
from icemigrate.errors import ExitCode, IcemigrateError, UsageError
from icemigrate.project import open_project
from icemigrate.table_data.new_table import create_table
from icemigrate.table_data.table_session import open_tables
from tests.support.table_project import ORDERS, TableProject
from tests.support.table_rows import append_rows, foreign_table, main_id

OWN_HISTORY, OTHER_HISTORY, IN_TRASH = (
    "icemigrate.history",
    "audit.log",
    "icemigrate_trash.sales__notes__0003",
)
READING = {
    *("query", "sql", "snapshots", "describe", "files", "partitions", "manifests", "compare", "history"),
}
"""The commands of `table` that change nothing."""
WRITING: dict[str, tuple[str, ...]] = {
    "create": ("--schema", "{schema}"),
    "insert": ("--data", "{rows}"),
    "update": ("--set", "event = 'x'", "--where", "true"),
    "delete": ("--where", "true"),
    "upsert": ("--data", "{rows}", "--on", "event"),
    "add-column": ("note", "string"),
    "rename-column": ("event", "note"),
    "drop-column": ("event",),
    "compact": ("--auto-approve",),
    "rollback": ("--snapshot", "{snapshot}", "--auto-approve"),
    "expire": ("--days", "0", "--auto-approve"),
}
"""Further arguments of the commands of `table` that write."""


def _project_on(first: Path, name: str, head: str, environment: str = "") -> TableProject:
    """A project on the catalog of a first one, in the folder beside it."""
    state, folder = first / ".icemigrate", first.parent / name
    folder.mkdir(exist_ok=True)
    catalog = f"{{name: local, type: sqlite, uri: {state / 'catalog.db'}, warehouse: {state / 'warehouse'}}}"
    (folder / "icemigrate.yaml").write_text(
        f"{head}\nenvironments: {{local: {{{environment}catalog: {catalog}}}}}\n", encoding="utf-8"
    )
    return TableProject(folder)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """A project; on its catalog the history of another project, and a table in the trash."""
    tmp_path = tmp_path_factory.mktemp("lake")
    folder = tmp_path / "sales"
    folder.mkdir()
    sales = TableProject.create(folder, ORDERS)
    other = _project_on(folder, "audit", f"project: audit\nhistory: {OTHER_HISTORY}")
    other.migrate(1, "tables:\n  - {name: audit.visits, columns: [{name: id, type: long}]}\n")
    with sales.tables() as tables:
        catalog = foreign_table(sales).catalog
        catalog.create_namespace("icemigrate_trash")
        catalog.create_table(IN_TRASH, schema=foreign_table(sales).schema())
        assert tables.load(IN_TRASH)
    append_rows(sales, [{"id": 1}])
    append_rows(sales, [{"id": 2}])
    return sales


def _other(lake: TableProject) -> TableProject:
    return TableProject(lake.folder.parent / "audit")


def _arguments(lake: TableProject, command: str, table: str) -> list[str]:
    schema, rows = lake.folder / "schema.json", lake.folder / "rows.csv"
    schema.write_text(json.dumps({"columns": [{"name": "id", "type": "long"}]}), encoding="utf-8")
    rows.write_text("event\nx\n", encoding="utf-8")
    found = foreign_table(lake, table).metadata.snapshots
    snapshot = str(found[0].snapshot_id) if found else "1"
    known = {"schema": str(schema), "rows": str(rows), "snapshot": snapshot}
    if command == "generate":
        return [command, table, "--rows", "2", "--insert"]
    return ["table", command, table, *(part.format(**known) for part in WRITING[command])]


def test_each_command_of_table_is_known_to_read_or_to_write() -> None:
    assert set(TABLE_COMMANDS) == READING | set(WRITING)


@pytest.mark.parametrize("command", [*WRITING, "generate"])
def test_no_command_writes_a_table_of_icemigrate(
    lake: TableProject, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in (OWN_HISTORY, OTHER_HISTORY, IN_TRASH):
        before = foreign_table(lake, table).metadata_location
        arguments = _arguments(lake, command, table)
        capsys.readouterr()
        assert lake.run(*arguments) in (ExitCode.USAGE, ExitCode.FINDINGS)
        error = capsys.readouterr().err
        assert "history" in error or "trash" in error or (command, table) in _EXISTING
        assert foreign_table(lake, table).metadata_location == before


_EXISTING = {("create", OTHER_HISTORY)}
"""A name that is taken, which is reason enough."""


@pytest.mark.parametrize("name", [OWN_HISTORY, "icemigrate_trash.mine"])
def test_a_new_table_has_no_reserved_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: sales\n", encoding="utf-8")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"columns": [{"name": "id", "type": "long"}]}), encoding="utf-8")
    empty = TableProject(tmp_path)
    assert empty.run("table", "create", name, "--schema", str(schema)) == ExitCode.USAGE
    with empty.tables() as tables:
        with pytest.raises(UsageError, match=r"history|trash"):
            create_table(tables, name, {"fields": []})
        assert tables.find(tables.parse(name)) is None


def test_a_project_sees_the_history_and_the_trash_under_mapped_names(lake: TableProject) -> None:
    """An environment that maps namespaces has other declared names for the same tables."""
    mapping = "namespaces: {bin: icemigrate_trash, own: icemigrate}, "
    mapped = _project_on(lake.folder, "mapped", "project: sales", mapping)
    with IcebergManager(mapped.folder) as manager:
        for name in ("bin.sales__notes__0003", "own.history"):
            with pytest.raises(UsageError, match="only icemigrate writes it"):
                manager.delete_data(name, "true")


OWNED: dict[str, Callable[[IcebergManager, TableProject], Any]] = {
    "expire": lambda manager, lake: manager.expire_snapshots("sales.orders", 0),
    "expire, dry run": lambda manager, lake: manager.expire_snapshots("sales.orders", 0, dry_run=True),
    "rollback": lambda manager, lake: manager.rollback("sales.orders", main_id(lake) or 0),
    "add a column": lambda manager, lake: manager.add_column("sales.orders", "note", "string"),
}


@pytest.mark.parametrize("is_project", [True, False], ids=["another project", "a catalog alone"])
@pytest.mark.parametrize("name", OWNED)
def test_snapshots_and_columns_are_changed_by_the_owner(
    lake: TableProject, name: str, is_project: bool
) -> None:
    before = foreign_table(lake).metadata_location
    path = _other(lake).folder if is_project else lake.folder / ".icemigrate" / "catalog.db"
    with IcebergManager(path) as manager:
        with pytest.raises(IcemigrateError, match="belongs to project `sales`"):
            OWNED[name](manager, lake)
        assert foreign_table(lake).metadata_location == before


def test_a_catalog_alone_is_no_project_of_its_folders_name(lake: TableProject) -> None:
    """The folder of the catalog has the name of the project, whose history is elsewhere."""
    assert open_project(lake.folder).name == lake.folder.name
    path = lake.folder / ".icemigrate" / "catalog.db"
    with IcebergManager(path) as manager, pytest.raises(UsageError, match="belongs to project `sales`"):
        manager.add_column("sales.orders", "note", "string")


@pytest.mark.parametrize("command", ["expire", "rollback"])
def test_the_commands_refuse_a_table_of_another_project(
    lake: TableProject, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots = foreign_table(lake).metadata.snapshots
    extra = {"expire": ["--days", "0"], "rollback": ["--snapshot", str(snapshots[-2].snapshot_id)]}[command]
    arguments = ["table", command, "sales.orders", *extra, "--auto-approve"]
    assert _other(lake).run(*arguments) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert "table `sales.orders` belongs to project `sales`, and this is project `audit`" in error
    assert "run it in project `sales`" in error
    assert foreign_table(lake).metadata.snapshots == snapshots


def test_rows_of_a_table_of_another_project_may_change(lake: TableProject) -> None:
    with IcebergManager(_other(lake).folder) as manager:
        manager.insert_data("sales.orders", [{"id": 1, "customer": "a"}, {"id": 2, "customer": "b"}])
        manager.update_data("sales.orders", {"customer": "'c'"}, "id = 1")
        manager.upsert("sales.orders", [{"id": 2, "customer": "d"}], on="id")
        manager.delete_data("sales.orders", "id = 1")
        assert manager.query_table("sales.orders").to_pylist()[0]["customer"] == "d"


def test_the_owner_and_tables_without_an_owner_are_free(lake: TableProject) -> None:
    with open_tables(_other(lake).project) as tables:
        create_table(
            tables, "open.notes", {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
        )
    folders = (_other(lake).folder, lake.folder, lake.folder / ".icemigrate" / "catalog.db")
    for number, folder in enumerate(folders):
        with IcebergManager(folder) as manager:
            manager.insert_data("open.notes", [{"id": 1}])
            manager.expire_snapshots("open.notes", 0)
            manager.add_column("open.notes", f"c{number}", "int")
