"""Commits on the embedded catalog: SQLite files and metadata files of a temporary folder."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.metadata_files import local_path
from icemigrate.errors import CatalogError, EngineError, LockLost
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.metadata_engine.sqlite_store import SqliteDatabase, open_sqlite_store
from icemigrate.metadata_engine.table_store import (
    CommitConflict,
    CommitRefused,
    CommitStateUnknown,
    StoredTable,
    TableCommit,
)
from tests.support.small_commits import CREATION, FIELD_IDS, QUOTES, TRADES, created, set_properties
from tests.support.sqlite_lakes import make

ARCHIVED = TableName(("archive",), "trades")


@pytest.fixture
def settings(tmp_path: Path) -> CatalogSettings:
    return CatalogSettings("lake", "sqlite", str(tmp_path / "new" / "catalog.db"), f"file://{tmp_path}/wh")


@pytest.fixture
def store(settings: CatalogSettings) -> SqlTableStore:
    return open_sqlite_store(settings, busy_seconds=5)


def files_of(table: StoredTable) -> set[str]:
    """The names of the files in the folder of a table's metadata."""
    path = local_path(table.location)
    assert path is not None
    return {file.name for file in path.parent.iterdir()}


def names(*tables: StoredTable) -> set[str]:
    return {table.location.rpartition("/")[2] for table in tables}


def test_a_created_table_has_its_field_ids_and_is_read_by_the_catalog_reader(
    store: SqlTableStore, settings: CatalogSettings
) -> None:
    table = created(store)
    assert store.load(TRADES) == table
    read = open_catalog(settings).load([TRADES])[TRADES]
    assert read is not None
    assert tuple(field.id for _, field in read.schema.walk()) == FIELD_IDS
    assert table.location.startswith(f"{settings.warehouse}/db/trades/metadata/00000-")


def test_the_next_files_are_numbered_and_logged(store: SqlTableStore) -> None:
    first = created(store)
    (second,) = store.commit([set_properties(first, a="1")])
    (third,) = store.commit([set_properties(second, b="2")])
    assert [file[:6] for file in sorted(files_of(third))] == ["00000-", "00001-", "00002-"]
    assert [entry["metadata-file"] for entry in third.json["metadata-log"]] == [
        first.location,
        second.location,
    ]
    assert store.load(TRADES) == third


def test_a_missing_catalog_is_empty_and_is_not_created_by_reading(
    store: SqlTableStore, settings: CatalogSettings
) -> None:
    assert store.load(TRADES) is None
    assert not Path(str(settings.uri)).parent.exists()


@pytest.mark.parametrize("typed", [True, False])
def test_rows_of_both_forms_are_changed(tmp_path: Path, typed: bool) -> None:
    lake = make(tmp_path, typed=typed)
    store = open_sqlite_store(lake.settings())
    base = store.load(TRADES)
    assert base is not None
    (changed,) = store.commit([set_properties(base, a="1")])
    assert store.load(TRADES) == changed
    rows = sqlite3.connect(lake.database).execute(
        "SELECT metadata_location, previous_metadata_location FROM iceberg_tables"
        " WHERE table_namespace = 'db' AND table_name = 'trades'"
    )
    assert rows.fetchall() == [(changed.location, base.location)]
    new = TableName(("db",), "new")
    assert store.load(new) is None
    created(store, new)
    store.rename(new, ARCHIVED)
    assert store.load(ARCHIVED) is not None
    store.drop(ARCHIVED)
    assert store.load(ARCHIVED) is None


def test_a_view_is_no_table(tmp_path: Path) -> None:
    store = open_sqlite_store(make(tmp_path).settings())
    view = TableName(("db",), "seen")
    assert store.load(view) is None
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.seen`"):
        created(store, view)
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.seen`"):
        store.rename(TRADES, view)
    store.drop(view)
    with pytest.raises(CommitConflict):
        store.rename(TRADES, view)


def test_of_two_writers_one_is_refused_and_leaves_no_file(store: SqlTableStore) -> None:
    base = created(store)
    (first,) = store.commit([set_properties(base, a="1")])
    with pytest.raises(CommitConflict, match=r"another client changed `db.trades` first"):
        store.commit([set_properties(base, b="2")])
    assert store.load(TRADES) == first
    assert files_of(first) == names(base, first)


def test_a_second_creation_is_refused(store: SqlTableStore) -> None:
    table = created(store)
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.trades` already"):
        created(store)
    assert files_of(table) == names(table)


def test_two_tables_are_committed_together_or_not_at_all(store: SqlTableStore) -> None:
    trades, quotes = created(store), created(store, QUOTES)
    both = [set_properties(trades, a="1"), set_properties(quotes, QUOTES, a="1")]
    after_trades, after_quotes = store.commit(both)
    assert (store.load(TRADES), store.load(QUOTES)) == (after_trades, after_quotes)
    stale = [set_properties(after_trades, b="2"), set_properties(quotes, QUOTES, b="2")]
    with pytest.raises(CommitConflict, match=r"another client changed `db.quotes` first"):
        store.commit(stale)
    assert (store.load(TRADES), store.load(QUOTES)) == (after_trades, after_quotes)
    assert files_of(after_trades) == names(trades, after_trades)


def test_no_commit_of_many_threads_is_lost(store: SqlTableStore) -> None:
    created(store)

    def commit(number: int) -> None:
        while True:
            base = store.load(TRADES)
            assert base is not None
            try:
                store.commit([set_properties(base, **{f"p{number}": "x"})])
                return
            except CommitConflict:
                continue

    threads = [Thread(target=commit, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = store.load(TRADES)
    assert table is not None
    assert set(table.json["properties"]) == {f"p{number}" for number in range(10)}
    assert len(table.json["metadata-log"]) == 10
    assert len(files_of(table)) == 11


class FailingConnection(sqlite3.Connection):
    """A connection whose ``COMMIT`` fails, before or after it was done."""

    outcomes: ClassVar[list[str]] = []

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        outcome = type(self).outcomes.pop(0) if sql == "COMMIT" and type(self).outcomes else "answered"
        if outcome == "refused":
            raise sqlite3.OperationalError("disk I/O error")
        cursor = super().execute(sql, *values)
        if outcome == "lost":
            raise sqlite3.OperationalError("disk I/O error")
        if outcome == "lost, and another commit":
            _by_another_client(self)
            raise sqlite3.OperationalError("disk I/O error")
        return cursor


def _by_another_client(connection: sqlite3.Connection) -> None:
    file = Path(connection.execute("PRAGMA database_list").fetchone()[2])
    other = open_sqlite_store(CatalogSettings("lake", "sqlite", str(file), f"file://{file.parent.parent}/wh"))
    base = other.load(TRADES)
    assert base is not None
    other.commit([set_properties(base, theirs="1")])


@pytest.fixture
def failing(settings: CatalogSettings, monkeypatch: pytest.MonkeyPatch) -> SqlTableStore:
    """A store whose connections fail as :attr:`FailingConnection.outcomes` says."""
    monkeypatch.setattr("icemigrate.metadata_engine.uncertain_outcome.PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(FailingConnection, "outcomes", [])

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        return sqlite3.connect(*args, factory=FailingConnection, **options)

    database = SqliteDatabase(Path(str(settings.uri)), 5, connect)
    return SqlTableStore(settings, database, TableFiles(settings))


@pytest.mark.parametrize("outcome", ["refused", "lost"])
@pytest.mark.parametrize("creates", [True, False])
def test_a_commit_without_an_answer_is_made_exactly_once(
    failing: SqlTableStore, store: SqlTableStore, outcome: str, creates: bool
) -> None:
    if creates:
        store.create_namespace(("db",))
        FailingConnection.outcomes = ["answered", outcome]
        table = created(failing)
        assert files_of(table) == names(table)
    else:
        base = created(store)
        FailingConnection.outcomes = [outcome]
        (table,) = failing.commit([set_properties(base, a="1")])
        assert files_of(table) == names(base, table)
        assert len(table.json["metadata-log"]) == 1
    assert store.load(TRADES) == table


def test_a_commit_is_found_below_the_commit_of_another_client(
    failing: SqlTableStore, store: SqlTableStore
) -> None:
    base = created(store)
    FailingConnection.outcomes = ["lost, and another commit"]
    failing.commit([set_properties(base, ours="1")])
    table = store.load(TRADES)
    assert table is not None
    assert table.json["properties"] == {"ours": "1", "theirs": "1"}


def test_the_lock_is_asked_before_a_change_is_sent_again(
    failing: SqlTableStore, store: SqlTableStore
) -> None:
    base, asked = created(store), list[str]()
    FailingConnection.outcomes = ["refused"]
    failing.commit([set_properties(base, a="1")], lambda: asked.append("commit"))
    FailingConnection.outcomes = ["refused"]
    failing.rename(TRADES, QUOTES, lambda: asked.append("rename"))
    store.drop(QUOTES)
    FailingConnection.outcomes = ["refused"]
    assert failing.drop_namespace(("db",), lambda: asked.append("drop"))
    assert asked == ["commit", "rename", "drop"]


def test_a_rename_is_not_sent_again_without_the_lock(failing: SqlTableStore, store: SqlTableStore) -> None:
    base = created(store)

    def lose() -> None:
        raise LockLost("another process took the lock over")

    FailingConnection.outcomes = ["refused"]
    with pytest.raises(LockLost):
        failing.rename(TRADES, QUOTES, lose)
    assert store.load(TRADES) == base


def test_a_commit_that_is_never_answered_keeps_its_file(failing: SqlTableStore, store: SqlTableStore) -> None:
    base = created(store)
    FailingConnection.outcomes = ["refused"] * 9
    with pytest.raises(CommitStateUnknown, match=r"does not show whether the commit to `db.trades` was made"):
        failing.commit([set_properties(base, a="1")])
    assert store.load(TRADES) == base
    assert len(files_of(base)) == 2


@pytest.mark.parametrize("is_committed", [True, False])
def test_an_interrupted_swap_keeps_its_file(
    store: SqlTableStore, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """Only the catalog shows whether it refers to the file."""
    base = created(store)
    write = SqliteDatabase.write

    def interrupted(*args: Any) -> Any:
        if is_committed:
            write(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteDatabase, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.commit([set_properties(base, a="1")])
    assert len(files_of(base)) == 2
    table = store.load(TRADES)
    assert table is not None
    assert (table != base) == is_committed


def test_an_interrupted_write_leaves_no_file(store: SqlTableStore, monkeypatch: pytest.MonkeyPatch) -> None:
    trades, quotes = created(store), created(store, QUOTES)
    write = TableFiles.write

    def interrupted(files: TableFiles, location: str, *content: bytes) -> None:
        write(files, location, *content)
        if "/quotes/" in location:
            raise KeyboardInterrupt

    monkeypatch.setattr(TableFiles, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.commit([set_properties(trades, a="1"), set_properties(quotes, QUOTES, a="1")])
    assert (files_of(trades), files_of(quotes)) == (names(trades), names(quotes))


@pytest.mark.parametrize("outcome", ["refused", "lost"])
def test_other_changes_without_an_answer_are_made(
    failing: SqlTableStore, store: SqlTableStore, outcome: str
) -> None:
    table = created(store)
    for act in (
        lambda: failing.rename(TRADES, QUOTES),
        lambda: failing.drop(QUOTES),
        lambda: failing.create_namespace(("more",)),
        lambda: failing.drop_namespace(("more",)),
    ):
        FailingConnection.outcomes = [outcome]
        act()
    assert (store.load(TRADES), store.load(QUOTES)) == (None, None)
    assert files_of(table) == names(table)


def test_metadata_is_compressed_where_the_table_asks_for_it(store: SqlTableStore) -> None:
    table = created(store, properties={"write.metadata.compression-codec": "gzip"})
    path = local_path(table.location)
    assert path is not None
    assert path.name.endswith(".gz.metadata.json")
    assert json.loads(gzip.decompress(path.read_bytes())) == table.json
    assert store.load(TRADES) == table


def test_an_unknown_codec_is_refused(store: SqlTableStore) -> None:
    base = created(store)
    with pytest.raises(EngineError, match=r"`write.metadata.compression-codec` has the value `lz4`"):
        store.commit([set_properties(base, **{"write.metadata.compression-codec": "lz4"})])
    assert store.load(TRADES) == base


@pytest.mark.parametrize("deletes", [True, False])
def test_old_metadata_files_go_where_the_table_asks_for_it(store: SqlTableStore, deletes: bool) -> None:
    limits = {"write.metadata.previous-versions-max": "2"}
    limits |= {"write.metadata.delete-after-commit.enabled": "true"} if deletes else {}
    tables = [created(store, properties=limits)]
    for number in range(4):
        tables += store.commit([set_properties(tables[-1], number=str(number))])
    assert len(tables[-1].json["metadata-log"]) == 2
    assert files_of(tables[-1]) == names(*(tables[-3:] if deletes else tables))


def test_a_metadata_log_cannot_name_other_files_to_delete(store: SqlTableStore, tmp_path: Path) -> None:
    limits = {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    base = created(store, properties=limits)
    secret = tmp_path / "diary.json"
    secret.write_text("{}")
    log = [{"timestamp-ms": 1, "metadata-file": str(secret)}]
    store.commit([set_properties(StoredTable(base.location, {**base.json, "metadata-log": log}), a="1")])
    assert secret.exists()


def test_metadata_is_written_to_the_path_of_the_property(store: SqlTableStore, tmp_path: Path) -> None:
    table = created(store, properties={"write.metadata.path": f"file:{tmp_path}/elsewhere/"})
    assert table.location.startswith(f"file:{tmp_path}/elsewhere/00000-")
    assert store.load(TRADES) == table


@pytest.mark.parametrize("folder", ["a b", "a%20b", "a%2520b"])
def test_a_location_is_the_folder_that_readers_find(
    store: SqlTableStore, tmp_path: Path, folder: str
) -> None:
    table = created(store, properties={"write.metadata.path": f"file:{tmp_path}/{folder}"})
    assert store.load(TRADES) == table
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("a")] == [folder]
    # Other clients name the same folder otherwise.
    spelled = f"file:{tmp_path}/{folder.replace(' ', '%20')}"
    (after,) = store.commit([set_properties(table, **{"write.metadata.path": spelled})])
    assert store.load(TRADES) == after
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("a")] == [folder]


def test_a_new_table_without_a_location_gets_the_default_one(store: SqlTableStore) -> None:
    updates = tuple(u for u in CREATION if u["action"] != "set-location")
    (table,) = store.commit([TableCommit(TRADES, None, updates)])
    assert table.json["location"] == store.default_location(TRADES)


def test_a_catalog_without_a_warehouse_has_no_default_location(settings: CatalogSettings) -> None:
    store = open_sqlite_store(replace(settings, warehouse=None))
    with pytest.raises(CatalogError, match="catalog `lake` has no `warehouse`"):
        store.default_location(TRADES)


def test_a_clock_that_is_behind_does_not_date_metadata_back(store: SqlTableStore) -> None:
    """Java refuses to read metadata that is older than its own log."""
    base = created(store)
    ahead = {**base.json, "last-updated-ms": base.json["last-updated-ms"] + 3_600_000}
    (after,) = store.commit([set_properties(StoredTable(base.location, ahead), a="1")])
    assert after.json["last-updated-ms"] == ahead["last-updated-ms"]


@pytest.mark.parametrize("location", ["wh/db/trades", "../trades", "file:wh/trades", "/wh/a\0b"])
def test_a_location_that_is_no_absolute_path_is_not_written_to(store: SqlTableStore, location: str) -> None:
    base = created(store)
    with pytest.raises(EngineError, match=r"neither an absolute path nor a URI|null byte"):
        store.commit([set_properties(base, **{"write.metadata.path": location})])
    assert store.load(TRADES) == base


def test_namespaces_are_created_once_and_dropped_when_empty(
    store: SqlTableStore, settings: CatalogSettings
) -> None:
    inner = TableName(("db", "deep"), "trades")
    created(store, inner)
    store.create_namespace(("db",))
    store.create_namespace(("db",))
    assert open_catalog(settings).namespaces() == (("db",), ("db", "deep"))
    assert not store.drop_namespace(("db",))
    assert not store.drop_namespace(("db", "deep"))
    store.drop(inner)
    assert store.drop_namespace(("db", "deep"))
    assert store.drop_namespace(("db",))
    assert store.drop_namespace(("db",))
    created(store)
    assert open_catalog(settings).namespaces() == (("db",),)


def test_a_rename_needs_the_old_name_and_a_free_new_one(store: SqlTableStore) -> None:
    table = created(store)
    with pytest.raises(CommitConflict, match=r"there is no such table"):
        store.rename(QUOTES, ARCHIVED)
    created(store, QUOTES)
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.quotes`"):
        store.rename(TRADES, QUOTES)
    store.rename(TRADES, ARCHIVED)
    assert store.load(ARCHIVED) == table
    assert store.load(TRADES) is None


def test_hostile_names_are_values_of_the_statements(store: SqlTableStore) -> None:
    odd = TableName(("d'b",), "t'; DROP TABLE iceberg_tables; --%_")
    base = created(store, odd)
    (after,) = store.commit([set_properties(base, odd, a="1")])
    assert store.load(odd) == after
    assert store.load(TRADES) is None


def test_a_locked_catalog_is_one_error(store: SqlTableStore, settings: CatalogSettings) -> None:
    base = created(store)
    other = sqlite3.connect(str(settings.uri), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CommitRefused, match=r"is locked by another process"):
        open_sqlite_store(settings, busy_seconds=0.05).commit([set_properties(base, a="1")])
    other.close()
    assert files_of(base) == names(base)


def test_a_catalog_that_is_no_database_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("something else " * 100)
    store = open_sqlite_store(CatalogSettings("lake", "sqlite", str(tmp_path / "catalog.db"), str(tmp_path)))
    with pytest.raises(CatalogError, match=r"is not a SQLite file"):
        store.create_namespace(("db",))


def test_no_library_is_imported(settings: CatalogSettings) -> None:
    """Each of them takes longer to import than a commit takes."""
    code = (
        "import sys\n"
        "from icemigrate.catalog import CatalogSettings\n"
        "from icemigrate.metadata_engine.sqlite_store import open_sqlite_store\n"
        "from tests.support.small_commits import created, set_properties\n"
        f"settings = CatalogSettings('lake', 'sqlite', {settings.uri!r}, {settings.warehouse!r})\n"
        "store = open_sqlite_store(settings)\n"
        "store.commit([set_properties(created(store), a='1')])\n"
        "print(*{'pyiceberg', 'sqlalchemy', 'pyarrow', 'pyspark', 'sqlglot'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("kind", ["sqlite", "hive", "glue"])
def test_a_store_is_opened_without_reading(settings: CatalogSettings, kind: str) -> None:
    assert open_table_store(replace(settings, type=kind, uri="/nowhere")) is not None
    assert open_table_store(replace(settings, type="other")) is None
