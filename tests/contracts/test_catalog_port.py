"""What every reader of a catalog promises, run by each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icemigrate.catalog import Catalog, metadata_files, open_catalog
from icemigrate.errors import CatalogError, MetadataError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import ViewQuery
from tests.support import sqlite_lakes
from tests.support.metadata_samples import sample

READERS = ("sqlite", "sql")


@pytest.fixture(params=READERS)
def kind(request: pytest.FixtureRequest) -> str:
    """The type of the catalog in its settings."""
    return str(request.param)


@pytest.fixture
def lake(tmp_path: Path) -> sqlite_lakes.Lake:
    return sqlite_lakes.make(tmp_path)


@pytest.fixture
def catalog(kind: str, lake: sqlite_lakes.Lake) -> Catalog:
    return open_catalog(lake.settings(kind))


TRADES = TableName(("db",), "trades")
NOWHERE = TableName(("db",), "nowhere")


def test_tables_are_listed_without_views(catalog: Catalog) -> None:
    assert catalog.tables() == tuple(sorted(sqlite_lakes.TABLES))


def test_views_are_listed_apart_and_loaded(catalog: Catalog) -> None:
    assert catalog.capabilities.views
    assert catalog.views(("db",)) == (sqlite_lakes.VIEW_NAME,)
    assert catalog.views(("other",)) == catalog.views(("nowhere",)) == ()
    # A metadata file of Spark's, compressed.
    query = ViewQuery("spark", "SELECT 1 AS one")
    (view,) = catalog.load_views([sqlite_lakes.VIEW_NAME, TRADES, NOWHERE])
    assert (view.name, view.queries, view.namespace) == (sqlite_lakes.VIEW_NAME, (query,), ("default",))
    assert (view.properties["engine_version"], view.created_ms) == ("Spark 4.1.4", 1795824084578)


def test_a_view_that_cannot_be_read_says_why(catalog: Catalog, lake: sqlite_lakes.Lake) -> None:
    lake.execute(
        f"UPDATE iceberg_tables SET metadata_location = '{lake.files[TRADES]}' WHERE iceberg_type = 'VIEW'"
    )
    (view,) = catalog.load_views([sqlite_lakes.VIEW_NAME])
    assert view.queries == ()
    assert view.problem is not None
    assert view.problem.endswith("cannot be read: it is not the metadata of a view")


def test_an_older_catalog_has_no_views(kind: str, tmp_path: Path) -> None:
    catalog = open_catalog(sqlite_lakes.make(tmp_path, typed=False).settings(kind))
    assert catalog.views(("db",)) == catalog.load_views([sqlite_lakes.VIEW_NAME]) == ()


def test_a_namespaces_tables_are_those_right_in_it(catalog: Catalog) -> None:
    assert catalog.tables(("db", "deep")) == (TableName(("db", "deep"), "flexible"),)
    assert catalog.tables(("other",)) == (TableName(("other",), "trades"),)
    assert catalog.tables(("empty",)) == ()
    assert catalog.tables(("nowhere",)) == ()


def test_namespaces_are_listed(catalog: Catalog) -> None:
    assert catalog.namespaces() == (("db",), ("db", "deep"), ("empty",), ("other",))
    assert catalog.namespaces([("nowhere",), ("empty",), ("db", "deep")]) == (("db", "deep"), ("empty",))


def test_a_namespace_that_nobody_created_counts_when_a_table_is_in_it(
    kind: str, lake: sqlite_lakes.Lake
) -> None:
    lake.execute("DELETE FROM iceberg_namespace_properties")
    assert open_catalog(lake.settings(kind)).namespaces() == (("db",), ("db", "deep"), ("other",))


def test_every_table_is_loaded(catalog: Catalog) -> None:
    loaded = catalog.load(catalog.tables())
    assert {name: table.name for name, table in loaded.items() if table} == {
        name: name for name in sqlite_lakes.TABLES
    }


def test_all_readers_give_equal_tables(lake: sqlite_lakes.Lake) -> None:
    names = [*sqlite_lakes.TABLES, NOWHERE, sqlite_lakes.VIEW_NAME]
    first, *others = (open_catalog(lake.settings(kind)).load(names) for kind in READERS)
    assert others == [first] * len(others)


def test_a_name_without_a_table_is_none(catalog: Catalog) -> None:
    loaded = catalog.load([TRADES, NOWHERE, sqlite_lakes.VIEW_NAME])
    assert loaded[TRADES] is not None
    assert loaded[NOWHERE] is None
    assert loaded[sqlite_lakes.VIEW_NAME] is None
    assert catalog.load([]) == {}


def test_metadata_is_handed_out_whole(catalog: Catalog) -> None:
    assert catalog.metadata_json(TRADES) == sample("spark-v2")
    assert catalog.metadata_json(NOWHERE) is None


def test_the_metadata_files_place_is_known(catalog: Catalog, lake: sqlite_lakes.Lake) -> None:
    location = catalog.metadata_location(TRADES)
    assert location is not None
    assert location.endswith(lake.files[TRADES].name)
    assert catalog.metadata_location(NOWHERE) is None


def test_an_older_catalog_has_no_column_for_types(kind: str, tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path, typed=False)
    catalog = open_catalog(lake.settings(kind))
    assert catalog.tables() == tuple(sorted(sqlite_lakes.TABLES))
    assert catalog.load([TRADES])[TRADES] is not None


def test_what_others_commit_is_seen_by_the_next_call(catalog: Catalog, lake: sqlite_lakes.Lake) -> None:
    assert catalog.load([TRADES])[TRADES] is not None
    lake.execute("DELETE FROM iceberg_tables WHERE table_name = 'trades'")
    assert catalog.load([TRADES])[TRADES] is None


def test_a_new_table_would_lie_below_the_warehouse(catalog: Catalog, tmp_path: Path) -> None:
    location = catalog.default_location(TableName(("db", "deep"), "new"))
    assert location == f"{(tmp_path / 'warehouse').as_uri()}/db/deep/new"


def test_a_catalog_that_is_not_there_is_empty_and_stays_so(kind: str, tmp_path: Path) -> None:
    catalog = open_catalog(sqlite_lakes.Lake(tmp_path / "none.db").settings(kind))
    assert catalog.tables() == ()
    assert catalog.namespaces() == ()
    assert catalog.load([TRADES]) == {TRADES: None}
    assert catalog.metadata_json(TRADES) is None
    catalog.close()
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_icebergs_tables_is_empty(kind: str, tmp_path: Path) -> None:
    lake = sqlite_lakes.Lake(tmp_path / "app.db")
    lake.execute("CREATE TABLE customers(id INT)")
    catalog = open_catalog(lake.settings(kind))
    assert (catalog.tables(), catalog.namespaces()) == ((), ())


def test_reading_changes_nothing(catalog: Catalog, lake: sqlite_lakes.Lake, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    catalog.load(catalog.tables())
    catalog.close()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_wrong_name_is_said_with_the_right_ones(kind: str, lake: sqlite_lakes.Lake) -> None:
    with pytest.raises(
        CatalogError, match="no catalog named `lago` in this database; it contains `lake`"
    ) as raised:
        open_catalog(lake.settings(kind, name="lago")).tables()
    assert raised.value.hint is not None
    assert "`name`" in raised.value.hint


def test_a_table_whose_file_vanished_is_named(catalog: Catalog, lake: sqlite_lakes.Lake) -> None:
    lake.files[TRADES].unlink()
    with pytest.raises(MetadataError, match=r"table `db.trades`: its metadata file .* is missing") as raised:
        catalog.load([TRADES])
    assert raised.value.hint is not None
    with pytest.raises(MetadataError, match="is missing"):
        catalog.metadata_json(TRADES)


def test_a_table_is_read_whose_file_a_writer_replaces_meanwhile(
    catalog: Catalog, lake: sqlite_lakes.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = lake.files[TRADES], lake.files[TRADES].with_name("00009-new.metadata.json")
    read = metadata_files.read_metadata

    def replace_first(name: TableName, location: str, *arguments: Any) -> Any:
        if old.exists():
            new.write_bytes(old.read_bytes())
            lake.execute(
                f"UPDATE iceberg_tables SET metadata_location = '{new.as_uri()}'"
                f" WHERE metadata_location = '{location}'"
            )
            old.unlink()
        return read(name, location, *arguments)

    monkeypatch.setattr(metadata_files, "read_metadata", replace_first)
    assert catalog.load([TRADES])[TRADES] is not None
    assert catalog.metadata_location(TRADES) == new.as_uri()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"{", "it is no JSON"),
        (b"\xff\xfe\xff", "it is no JSON"),
        (b"\x1f\x8b\x08\x00truncated", "its compressed data is damaged"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "the file contains"),
        (b'{"format-version": 2}', "`table-uuid` is missing"),
        (b'{"format-version": 9}', "`format-version` is 9"),
    ],
)
def test_damaged_metadata_is_named(
    catalog: Catalog, lake: sqlite_lakes.Lake, content: bytes, reason: str
) -> None:
    lake.files[TRADES].write_bytes(content)
    with pytest.raises(MetadataError) as raised:
        catalog.load([TRADES])
    assert raised.value.message.startswith("table `db.trades`: its metadata file ")
    assert reason in raised.value.message
    assert raised.value.hint is not None


def test_a_damaged_table_harms_only_those_who_ask_for_it(catalog: Catalog, lake: sqlite_lakes.Lake) -> None:
    lake.files[TRADES].write_bytes(b"")
    other = TableName(("other",), "trades")
    assert catalog.load([other])[other] is not None


def test_a_file_that_is_no_database_is_said(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("These are notes, and no database at all. " * 100, encoding="utf-8")
    with pytest.raises(CatalogError, match=r"is not a (SQLite file|database)"):
        open_catalog(sqlite_lakes.Lake(file).settings(kind)).tables()


def test_the_identity_holds_address_and_name(catalog: Catalog, lake: sqlite_lakes.Lake) -> None:
    assert str(lake.database) in catalog.identity
    assert catalog.identity.endswith("#lake")


def test_the_capabilities_are_those_of_a_sql_catalog(catalog: Catalog) -> None:
    assert catalog.capabilities.registers
    assert catalog.capabilities.compare_and_swap
    assert catalog.capabilities.multi_table_commit
