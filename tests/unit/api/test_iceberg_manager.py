"""Tables of a catalog in Python, without Java."""

from __future__ import annotations

import datetime
import inspect
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icemigrate
from icemigrate import IcebergManager
from icemigrate.api.table_columns import column_entries
from icemigrate.errors import Mistakes, UsageError
from tests.support.table_project import TableProject, orders

__all__ = ["orders"]
COLUMNS = {"id": "long", "amount": "decimal(10,2)", "address": "struct<zip: string, city: string>"}


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    """A new catalog with an empty table."""
    with IcebergManager(tmp_path / "lake") as manager:
        manager.create_table("sales.orders", COLUMNS, partition_by=["bucket(4, id)"])
        yield manager


def names(manager: IcebergManager, table: str = "sales.orders") -> list[str]:
    """The current columns."""
    found: list[str] = manager.query_table(table, limit=0).schema.names
    return found


def test_a_new_folder_becomes_a_catalog(tmp_path: Path, lake: IcebergManager) -> None:
    assert (tmp_path / "lake" / ".icemigrate" / "catalog.db").is_file()
    assert names(lake) == ["id", "amount", "address"]
    assert lake.list_snapshots("sales.orders") == ()
    assert lake.get_current_snapshot("sales.orders") is None


def test_a_catalog_is_found_by_its_file_and_by_its_name_in_it(tmp_path: Path) -> None:
    with IcebergManager(tmp_path / "own.db") as made:
        made.create_table("s.t", {"a": "int"})
    with sqlite3.connect(tmp_path / "own.db") as database:
        database.execute("UPDATE iceberg_tables SET catalog_name = 'mine'")
        database.execute("UPDATE iceberg_namespace_properties SET catalog_name = 'mine'")
    with IcebergManager(tmp_path / "own.db") as found:
        assert names(found, "s.t") == ["a"]
        found.create_table("s.u", {"b": "int"})
    with sqlite3.connect(tmp_path / "own.db") as database:
        database.execute("UPDATE iceberg_tables SET catalog_name = 'other' WHERE table_name = 'u'")
    with pytest.raises(UsageError, match="several catalogs: `mine`, `other`"):
        IcebergManager(tmp_path / "own.db")


@pytest.mark.parametrize("given", ["folder", "file", "project"])
def test_a_project_is_found(orders: TableProject, given: str) -> None:
    catalog: Any = {
        "folder": orders.folder,
        "file": str(orders.folder / "icemigrate.yaml"),
        "project": icemigrate.Project(orders.folder, "local"),
    }[given]
    with IcebergManager(catalog) as manager:
        assert names(manager) == ["id", "customer", "amount", "at"]
        manager.add_column("sales.orders", "source", "string")
    (table,) = icemigrate.Project(orders.folder).drift().tables
    assert [(fact.fact, fact.by is not None) for fact in table.facts] == [("columns.source", True)]


def test_column_changes_without_a_project_are_committed(lake: IcebergManager) -> None:
    assert lake.add_column("sales.orders", "source", "string", after="id").is_recorded is False
    lake.rename_column("sales.orders", "address.zip", "postcode")
    several = {"renames": {"amount": "total"}, "columns": [{"name": "n", "type": "int"}]}
    lake.evolve_schema("sales.orders", several)
    lake.drop_column("sales.orders", "n", allow=["destructive"])
    schema = lake.query_table("sales.orders").schema
    assert schema.names == ["id", "source", "total", "address"]
    assert [field.name for field in schema.field("address").type] == ["postcode", "city"]


def test_columns_without_a_project_have_the_same_checks(lake: IcebergManager) -> None:
    with pytest.raises(Mistakes, match="can no longer be read"):
        lake.drop_column("sales.orders", "amount")
    with pytest.raises(Mistakes, match="partition"):
        lake.drop_column("sales.orders", "id", allow=["destructive"])
    assert names(lake) == ["id", "amount", "address"]


def test_a_table_of_a_project_is_changed_in_the_project(orders: TableProject) -> None:
    with IcebergManager(orders.folder / ".icemigrate" / "catalog.db") as manager:
        with pytest.raises(UsageError, match="belongs to project `sales`"):
            manager.add_column("sales.orders", "x", "int")
        assert "x" not in names(manager)


NEW_TABLES: dict[str, tuple[Any, dict[str, str]]] = {
    "types by name": ({"a": "int", "b": "timestamptz"}, {"a": "int32", "b": "timestamp[us, tz=UTC]"}),
    "columns of a file": ([{"name": "a", "type": "long", "required": True}], {"a": "int64"}),
    "an Arrow schema": (
        pa.schema(
            [("a", pa.int16()), ("b", pa.list_(pa.float32())), ("c", pa.map_(pa.string(), pa.int64()))]
        ),
        {"a": "int32", "b": "list<element: float>", "c": "map<string, int64>"},
    ),
    "data": (
        pa.table({"a": [1], "b": [None]}).cast(pa.schema({"a": pa.int64(), "b": pa.date32()})),
        {"a": "int64", "b": "date32[day]"},
    ),
}


@pytest.mark.parametrize("name", NEW_TABLES)
def test_a_schema_has_several_forms(lake: IcebergManager, name: str) -> None:
    schema, expected = NEW_TABLES[name]
    lake.create_table("sales.other", schema)
    fields = lake.query_table("sales.other").schema
    assert {field.name: str(field.type).replace("<l:", "<element:") for field in fields} == expected


def test_rows_and_snapshots_of_a_table(lake: IcebergManager) -> None:
    lake.insert_data("sales.orders", [{"id": 1, "amount": "9.50"}, {"id": 2}])
    lake.insert_data("sales.orders", pa.table({"id": [3], "amount": [7]}))
    first, second = lake.list_snapshots("sales.orders")
    assert lake.get_current_snapshot("sales.orders") == second
    assert lake.query_table("sales.orders", "amount > 8", ["id"]).to_pylist() == [{"id": 1}]
    assert lake.query_snapshot("sales.orders", first.snapshot_id).num_rows == 2
    assert lake.query_as_of("sales.orders", first.at).num_rows == 2
    assert lake.query_as_of("sales.orders", second.at.isoformat(), limit=1).num_rows == 1
    day = (second.at + datetime.timedelta(days=1)).date()
    assert lake.query_as_of("sales.orders", day).num_rows == 3
    with pytest.raises(UsageError, match="no snapshot"):
        lake.query_as_of("sales.orders", datetime.date(2020, 1, 1))
    with pytest.raises(UsageError, match="`query_as_of`: `timestamp` has a wrong value of type NoneType"):
        lake.query_as_of("sales.orders", None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no tag"):
        lake.query_tag("sales.orders", "gold")
    assert lake.rollback("sales.orders", first.snapshot_id).after.snapshot_id == first.snapshot_id
    assert lake.query_table("sales.orders").num_rows == 2
    assert lake.expire_snapshots("sales.orders", 0, dry_run=True).done is False
    assert len(lake.list_snapshots("sales.orders")) == 2


def test_rows_are_changed_by_conditions_and_keys(lake: IcebergManager) -> None:
    lake.create_table("sales.people", {"id": "int", "name": "string", "born": "date", "vip": "boolean"})
    lake.insert_data("sales.people", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3}])
    values = {"name": "upper(name)", "born": datetime.date(2000, 1, 2), "vip": True}
    assert lake.update_data("sales.people", values, "id < 3").updated == 2
    assert lake.delete_data("sales.people", "id = 2").deleted == 1
    done = lake.upsert("sales.people", [{"id": 1, "name": "z"}, {"id": 4, "name": "d"}], on="id")
    assert (done.updated, done.inserted) == (1, 1)
    rows = sorted(lake.query_table("sales.people").to_pylist(), key=lambda row: int(row["id"]))
    assert [(row["id"], row["name"], row["vip"]) for row in rows] == [
        (1, "z", True),
        (3, None, None),
        (4, "d", None),
    ]
    assert rows[0]["born"] == datetime.date(2000, 1, 2)
    with pytest.raises(UsageError, match="column `name`: a value of type list"):
        lake.update_data("sales.people", {"name": ["x"]}, "true")


def test_numbers_of_python_keep_their_digits_and_sign(lake: IcebergManager) -> None:
    lake.create_table("sales.sums", {"id": "int", "sum": "decimal(38,0)", "share": "double"})
    lake.insert_data("sales.sums", {"id": 1})
    digits = Decimal("1.2345678901234567890123456789012E+36")
    lake.update_data("sales.sums", {"sum": digits, "share": -0.0}, "id = 1")
    (row,) = lake.query_table("sales.sums").to_pylist()
    assert (row["sum"], str(row["share"])) == (digits, "-0.0")


def test_snapshots_are_compared(lake: IcebergManager) -> None:
    lake.insert_data("sales.orders", [{"id": 1}])
    lake.add_column("sales.orders", "source", "string")
    lake.insert_data("sales.orders", [{"id": 2}])
    first, second = lake.list_snapshots("sales.orders")
    found = lake.compare_snapshots("sales.orders", first.snapshot_id, second.snapshot_id)
    assert [(one.change, one.path) for one in found.fields] == [("added", "source")]
    assert found.rows is not None
    assert (found.rows.added, found.rows.removed) == (1, 0)


def test_a_tag_of_a_migration_is_queried(orders: TableProject) -> None:
    with IcebergManager(orders.folder) as manager:
        manager.insert_data("sales.orders", [{"id": 1}])
        orders.migrate(2, "tables: [{name: sales.orders, columns: [{name: source, type: string}]}]\n")
        manager.insert_data("sales.orders", [{"id": 2}])
        assert manager.query_tag("sales.orders", "icemigrate-sales-0002").num_rows == 1


def test_an_empty_table_is_compact(lake: IcebergManager) -> None:
    assert lake.compact("sales.orders").rewritten_files == 0


MISTAKES: dict[str, tuple[type[Exception], str, Any]] = {
    "a table that exists": (UsageError, "exists already", lambda m: m.create_table("sales.orders", COLUMNS)),
    "no namespace": (UsageError, "no namespace", lambda m: m.create_table("orders", COLUMNS)),
    "an unknown type": (Mistakes, "unknown type `nt`", lambda m: m.create_table("s.t", {"a": "nt"})),
    "a wrong partition": (
        Mistakes,
        "day cannot be applied",
        lambda m: m.create_table("s.t", {"a": "int"}, partition_by=["day(a)"]),
    ),
    "no schema": (UsageError, "a int is no schema", lambda m: m.create_table("s.t", 5)),
    "an unknown table": (
        UsageError,
        "there is no table",
        lambda m: m.query_table("sales.ordes"),
    ),
    "the history": (UsageError, "history", lambda m: m.create_table("icemigrate.history", COLUMNS)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_an_error_of_the_project(lake: IcebergManager, name: str) -> None:
    kind, text, act = MISTAKES[name]
    with pytest.raises(kind, match=text):
        act(lake)


def _public_methods() -> list[str]:
    return [name for name in vars(IcebergManager) if not name.startswith("_") and name != "close"]


@pytest.mark.parametrize("method", _public_methods())
def test_arguments_of_wrong_types_are_errors_of_the_project(lake: IcebergManager, method: str) -> None:
    lake.create_table("sales.t", {"a": "int", "b": "int"})
    call = getattr(lake, method)
    parameters = list(inspect.signature(call).parameters.values())
    required = [p for p in parameters if p.default is p.empty]
    good = {"str": "sales.t", "int": 1, "float": 1.0, "int | str": "main", "Mapping[str, Any]": {}}
    good |= {"Mapping[str, object]": {}, "str | Sequence[str]": "a", "date | str": "2026-01-01", "Any": []}
    arguments = {p.name: good[str(p.annotation)] for p in required}
    wrong = 0
    for parameter in parameters:
        if str(parameter.annotation) in ("Any", "object", "SparkSession | None"):
            continue
        for value in (object(), b"x", 1.5j, *([] if "None" in str(parameter.annotation) else [None])):
            wrong += 1
            with pytest.raises(UsageError, match=f"`{method}`: `{parameter.name}` has a wrong value of type"):
                call(**{**arguments, parameter.name: value})
    assert wrong


def test_a_text_is_no_list_of_columns(lake: IcebergManager) -> None:
    lake.create_table("sales.t", {"a": "int", "b": "int"})
    with pytest.raises(UsageError, match="`query_table`: `columns` has a wrong value of type str") as error:
        lake.query_table("sales.t", columns="ab")
    assert error.value.hint == "give a list of texts"
    with pytest.raises(UsageError, match="`query_tag`: `tag` has a wrong value of type NoneType"):
        lake.query_tag("sales.t", None)  # type: ignore[arg-type]


def test_a_closed_manager_is_not_used(lake: IcebergManager) -> None:
    lake.close()
    with pytest.raises(UsageError, match="is closed"):
        names(lake)


def test_a_required_column_of_arrow_stays_required() -> None:
    (entry,) = column_entries(pa.schema([pa.field("a", pa.uint64(), nullable=False)]))
    assert entry == {"name": "a", "type": "decimal(20,0)", "required": True}
