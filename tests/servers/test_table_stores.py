"""Commits in Python on real catalogs, which other clients read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.metadata_engine.table_store import CommitConflict, StoredTable, TableStore
from icemigrate.project import choose_environment
from icemigrate.project.namespace_mapping import catalog_settings
from tests.servers.lake import KINDS, Kind, Lake, on
from tests.support.cutting_proxy import CuttingProxy
from tests.support.small_commits import FIELD_IDS, columns, created, set_properties, with_column

_numbers = count(1)
pytestmark = on(*KINDS, "hive")


@pytest.fixture
def settings(kind: Kind, tmp_path: Path) -> CatalogSettings:
    project = kind.project(tmp_path, "ns", history="ns.history")
    return catalog_settings(choose_environment(project, None, kind.variables))


@pytest.fixture
def store(settings: CatalogSettings) -> Iterator[TableStore]:
    store = open_table_store(settings)
    assert store is not None
    yield store
    store.close()


@pytest.fixture
def trades() -> TableName:
    return TableName((f"stores{next(_numbers)}",), "trades")


def loaded(store: TableStore, name: TableName) -> StoredTable:
    table = store.load(name)
    assert table is not None
    return table


def test_a_table_is_created_with_its_field_ids_changed_and_renamed(
    store: TableStore, settings: CatalogSettings, trades: TableName
) -> None:
    assert store.load(trades) is None
    table = created(store, trades, {"a": "0"})
    assert loaded(store, trades) == table
    with pytest.raises(CommitConflict):
        created(store, trades)
    (after,) = store.commit([set_properties(table, trades, a="1")])
    assert loaded(store, trades) == after
    read = open_catalog(settings).load([trades])[trades]
    assert read is not None
    assert tuple(field.id for _, field in read.schema.walk()) == FIELD_IDS
    assert read.properties["a"] == "1"
    quotes = TableName(trades.namespace, "quotes")
    with pytest.raises(CommitConflict, match="there is no such table"):
        store.rename(quotes, trades)
    store.rename(trades, quotes)
    assert store.load(trades) is None
    assert loaded(store, quotes).json == after.json
    assert not store.drop_namespace(trades.namespace)
    store.drop(quotes)
    store.drop(quotes)
    assert store.load(quotes) is None
    assert store.drop_namespace(trades.namespace)
    assert store.drop_namespace(trades.namespace)


def test_files_of_a_table_are_written_once_read_and_deleted(store: TableStore, trades: TableName) -> None:
    folder = created(store, trades).json["location"]
    location, content = f"{folder}/metadata/5f3b-m0.avro", b"rows" * 1_000_000
    store.files.write(location, content)
    assert store.files.read(location) == content
    with pytest.raises(EngineError, match="exists already"):
        store.files.write(location, b"")
    store.files.delete(location)
    store.files.delete(location)
    with pytest.raises(OSError, match=r"5f3b-m0\.avro"):
        store.files.read(location)


def test_a_stale_base_is_refused(store: TableStore, trades: TableName) -> None:
    base = created(store, trades)
    (first,) = store.commit([with_column(base, trades, "first")])
    with pytest.raises(CommitConflict):
        store.commit([with_column(base, trades, "second")])
    assert loaded(store, trades) == first


def test_no_commit_of_many_threads_is_lost(kind: Kind, store: TableStore, trades: TableName) -> None:
    # Each commit takes a metastore four calls under a lock, which Derby serves one at a time.
    numbers = range(4 if kind.name == "hive" else 10)
    created(store, trades)

    def commit(number: int) -> None:
        while True:
            try:
                store.commit([with_column(loaded(store, trades), trades, f"c{number}")])
                return
            except CommitConflict:
                continue

    threads = [Thread(target=commit, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(columns(loaded(store, trades))) == sorted(["id", "kind", *(f"c{n}" for n in numbers)])


def test_several_tables_are_committed_together_or_not_at_all(store: TableStore, trades: TableName) -> None:
    quotes = TableName(trades.namespace, "quotes")
    first, second = created(store, trades), created(store, quotes)
    if not store.commits_together:
        assert open_kind(store) in ("RestTableStore", "MetastoreTableStore")
        return
    store.commit([with_column(first, trades, "a"), with_column(second, quotes, "a")])
    after = loaded(store, trades)
    assert columns(after) == columns(loaded(store, quotes)) == ["id", "kind", "a"]
    with pytest.raises(CommitConflict):
        store.commit([with_column(after, trades, "b"), with_column(second, quotes, "b")])
    assert loaded(store, trades) == after


def open_kind(store: TableStore) -> str:
    return type(store).__name__


@pytest.mark.parametrize("cut", ["answer", "request"])
def test_a_commit_over_a_broken_connection_is_made_once(
    kind: Kind, settings: CatalogSettings, store: TableStore, trades: TableName, cut: str
) -> None:
    address = urlsplit(settings.uri or "")
    if address.port is None:
        assert kind.name == "sqlite"
        return
    base = created(store, trades)
    markers = {"rest": b'"updates"', "postgres": b"COMMIT", "hive": b"alter_table_with_environment_context"}
    with CuttingProxy(address.port, markers[kind.name]) as proxy:
        port = f":{proxy.port}"
        cutting = open_table_store(
            replace(settings, uri=(settings.uri or "").replace(f":{address.port}", port))
        )
        assert cutting is not None
        cutting.load(trades)
        proxy.cuts = [cut]
        (after,) = cutting.commit([with_column(base, trades, "a")])
        assert proxy.seen == {"answer": 1, "request": 2}[cut]
        cutting.close()
    assert loaded(store, trades) == after
    assert columns(after) == ["id", "kind", "a"]
    assert len(after.json["metadata-log"]) == 1


def test_spark_and_pyiceberg_read_and_write_the_table(lake: Lake, settings: CatalogSettings) -> None:
    store = open_table_store(settings)
    assert store is not None
    name = lake.name()
    base = created(store, name)
    store.commit([with_column(base, name, "source")])
    assert lake.sql("SELECT * FROM {t}") == []
    lake.sql("INSERT INTO {t} VALUES (1, 'a', 'web')")
    changed = store.commit([with_column(loaded(store, name), name, "late")])[0]
    lake.session.catalog.refreshTable(lake.sql_name())
    assert lake.sql("SELECT id, kind, source, late FROM {t}") == [(1, "a", "web", None)]
    catalog = lake.pyiceberg()
    table = catalog.load_table((*name.namespace, name.name))
    assert [field.name for field in table.schema().fields] == columns(changed)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "kind": "a", "source": "web", "late": None}]
    catalog.close()
    store.close()
