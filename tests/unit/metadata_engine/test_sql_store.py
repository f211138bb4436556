"""The database of a SQL catalog by SQLAlchemy, here on a SQLite file; servers are in ``tests/servers``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.errors import CatalogError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.metadata_engine.sql_database import SqlTransaction
from icemigrate.metadata_engine.sql_statements import SqlStatements
from icemigrate.metadata_engine.sql_store import SqlAlchemyDatabase
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.metadata_engine.table_store import CommitConflict
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer
from tests.support.small_commits import QUOTES, TRADES, created, set_properties
from tests.support.sqlite_lakes import make


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    return CatalogSettings("lake", "sql", uri, f"file://{tmp_path}/wh", timeout_s=5)


@pytest.fixture
def store(settings: CatalogSettings) -> Iterator[SqlTableStore]:
    database = SqlAlchemyDatabase(settings)
    yield SqlTableStore(settings, database, TableFiles(settings))
    database.close()


def test_tables_are_committed_together_or_not_at_all(store: SqlTableStore, settings: CatalogSettings) -> None:
    trades, quotes = created(store), created(store, QUOTES)
    both = [set_properties(trades, a="1"), set_properties(quotes, QUOTES, a="1")]
    after_trades, after_quotes = store.commit(both)
    with pytest.raises(CommitConflict, match=r"another client changed `db.quotes` first"):
        store.commit([set_properties(after_trades, b="2"), set_properties(quotes, QUOTES, b="2")])
    assert (store.load(TRADES), store.load(QUOTES)) == (after_trades, after_quotes)
    assert set(open_catalog(settings).tables()) == {TRADES, QUOTES}


def test_a_table_whose_metadata_file_is_replaced_while_it_is_read_is_read_again(
    store: SqlTableStore, settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = created(store)
    reader = SqlTableStore(settings, SqlAlchemyDatabase(settings), TableFiles(settings))
    read = reader.files.read

    def read_late(location: str) -> bytes:
        if location == first.location:
            store.commit([set_properties(first, a="1")])
            store.files.delete(first.location)
        return read(location)

    monkeypatch.setattr(reader.files, "read", read_late)
    found = reader.load(TRADES)
    reader.close()
    assert found == store.load(TRADES)
    assert found is not None
    assert found.location != first.location


def test_rows_without_a_type_are_changed(tmp_path: Path) -> None:
    lake = make(tmp_path, typed=False)
    settings = lake.settings("sql")
    database = SqlAlchemyDatabase(settings)
    store = SqlTableStore(settings, database, TableFiles(settings))
    base = store.load(TRADES)
    assert base is not None
    (after,) = store.commit([set_properties(base, a="1")])
    assert store.load(TRADES) == after
    created(store, TableName(("db",), "new"))
    # Another client adds the column meanwhile.
    lake.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
    (last,) = store.commit([set_properties(after, b="2")])
    assert store.load(TRADES) == last
    database.close()


def test_names_are_created_renamed_and_dropped(store: SqlTableStore) -> None:
    table = created(store)
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.trades` already"):
        created(store)
    created(store, QUOTES)
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.quotes`"):
        store.rename(TRADES, QUOTES)
    store.drop(QUOTES)
    store.rename(TRADES, QUOTES)
    assert (store.load(TRADES), store.load(QUOTES)) == (None, table)
    assert not store.drop_namespace(("db",))
    store.drop(QUOTES)
    assert store.drop_namespace(("db",))


def test_an_overdue_transaction_is_never_committed(store: SqlTableStore, settings: CatalogSettings) -> None:
    """It continues in its own thread, when the command has reported that it failed."""
    store.create_namespace(("db",))
    database = SqlAlchemyDatabase(dataclasses.replace(settings, timeout_s=0.2))
    answer, is_waiting = Event(), Event()

    def act(transaction: SqlTransaction) -> None:
        SqlStatements(transaction, "lake").insert_namespace(("late",))
        is_waiting.set()
        answer.wait(10)

    with pytest.raises(CatalogError, match=r"did not answer within 0\.2 s"):
        database.write(act)
    assert is_waiting.is_set()
    answer.set()
    # It waits for the lock of the database, which the other transaction holds until its end.
    store.create_namespace(("after",))
    assert open_catalog(settings).namespaces() == (("after",), ("db",))
    database.close()


def test_an_overdue_commit_is_not_known(settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.engine import Connection

    answer = Event()
    monkeypatch.setattr(Connection, "commit", lambda connection: answer.wait(10))
    database = SqlAlchemyDatabase(dataclasses.replace(settings, timeout_s=0.2))
    with pytest.raises(LostAnswer):
        database.write(lambda transaction: None)
    answer.set()
    database.close()


def test_a_database_that_is_not_there_is_one_error_without_the_password() -> None:
    uri = "postgresql://me:hush-kx82qpz@127.0.0.1:9/lake"
    store = open_table_store(CatalogSettings("lake", "sql", uri, "file:///wh", timeout_s=5))
    assert store is not None
    with pytest.raises(CatalogError, match="Connection refused") as raised:
        store.create_namespace(("db",))
    assert "hush-kx82qpz" not in str(raised.value)


@pytest.mark.parametrize("uri", [None, "no url"])
def test_a_uri_that_names_no_database_is_one_error(uri: str | None) -> None:
    with pytest.raises(CatalogError):
        open_table_store(CatalogSettings("lake", "sql", uri, "file:///wh"))
