"""Commits on a REST catalog whose server stages, refuses, fails and loses answers in every way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.errors import CatalogError, EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table_properties import CREATION_PROPERTY
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.rest_store import RestTableStore, open_rest_store
from icemigrate.metadata_engine.table_store import (
    CommitConflict,
    CommitRefused,
    CommitStateUnknown,
    TableCommit,
)
from tests.support.rest_tables import RestTables, rest_tables
from tests.support.small_commits import (
    CREATION,
    FIELD_IDS,
    QUOTES,
    TRADES,
    created,
    set_properties,
    with_column,
)

SECRET = "hush-kx82qpz"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RestTables]:
    monkeypatch.setattr("icemigrate.metadata_engine.uncertain_outcome.PAUSES_S", (0.0, 0.0, 0.0))
    with rest_tables() as server:
        yield server


def settings(server: RestTables, **properties: str) -> CatalogSettings:
    return CatalogSettings("lake", "rest", server.uri, "s3://lake", {"token": SECRET, **properties}, 5)


@pytest.fixture
def store(server: RestTables) -> Iterator[RestTableStore]:
    store = open_rest_store(settings(server))
    yield store
    store.close()


def field_ids(server: RestTables, name: TableName = TRADES) -> tuple[int, ...]:
    json = server.tables[name]
    current = next(s for s in json["schemas"] if s["schema-id"] == json["current-schema-id"])
    return tuple(field["id"] for field in current["fields"])


@pytest.mark.parametrize("creates", ["staged", "at once", "never"])
def test_every_server_creates_a_table_with_the_field_ids(
    server: RestTables, store: RestTableStore, creates: str
) -> None:
    server.creates = creates
    table = created(store, properties={"a": "0"})
    assert field_ids(server) == FIELD_IDS
    assert table.json["properties"].items() >= {"a": "0"}.items()
    assert CREATION_PROPERTY not in table.json["properties"]
    assert store.load(TRADES) == table
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.trades` already"):
        created(store)
    assert server.tables[TRADES] == table.json


@pytest.mark.parametrize("creates", ["staged", "at once", "never"])
@pytest.mark.parametrize("fault", ["before", "after", "cut", "garbled", "empty"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_creation_without_an_answer_is_made_or_refused(
    server: RestTables, store: RestTableStore, creates: str, fault: str, number: int
) -> None:
    server.creates = creates
    server.faults = ["", *[""] * number, fault]
    # After the namespace: the request to stage it, the commit, and the creation where there is no staging.
    table = created(store)
    assert field_ids(server) == FIELD_IDS
    assert server.tables[TRADES] == table.json
    assert CREATION_PROPERTY not in table.json["properties"]


@pytest.mark.parametrize("fault", ["before", "after", "cut", "garbled", "empty"])
@pytest.mark.parametrize("kind", ["column", "properties"])
def test_a_commit_without_an_answer_is_made_once(
    server: RestTables, store: RestTableStore, fault: str, kind: str
) -> None:
    base = created(store)
    server.faults = [fault]
    change = with_column(base, TRADES, "a") if kind == "column" else set_properties(base, a="1")
    (table,) = store.commit([change])
    assert server.tables[TRADES] == table.json
    assert len(table.json["metadata-log"]) == 1


def test_a_lost_commit_is_refused_where_another_client_was_faster(
    server: RestTables, store: RestTableStore
) -> None:
    base = created(store)
    (first,) = store.commit([with_column(base, TRADES, "theirs")])
    server.faults = ["before"]
    with pytest.raises(CommitConflict, match=r"another client changed `db.trades` first.*current-schema-id"):
        store.commit([with_column(base, TRADES, "ours")])
    assert server.tables[TRADES] == first.json


def test_a_commit_that_is_never_answered_is_unknown(server: RestTables, store: RestTableStore) -> None:
    base = created(store)
    server.faults = ["before"] * 9
    with pytest.raises(CommitStateUnknown, match=r"does not show whether the commit to `db.trades` was made"):
        store.commit([set_properties(base, a="1")])


def test_a_commit_to_another_table_of_the_name_is_refused(server: RestTables, store: RestTableStore) -> None:
    base = created(store)
    server.tables[TRADES] = {**server.tables[TRADES], "table-uuid": "0e7d0f43-5a3c-4a5b-8b1c-9a2f6d1c3b7e"}
    with pytest.raises(CommitConflict, match="table-uuid"):
        store.commit([set_properties(base, a="1")])


@pytest.mark.parametrize("status", [400, 403, 501, 302])
def test_other_answers_are_errors_and_nothing_is_tried_again(
    server: RestTables, store: RestTableStore, status: int
) -> None:
    base = created(store)
    before = len(server.requests)
    server.faults = [status]
    with pytest.raises(CommitRefused, match="Refused: no") as raised:
        store.commit([set_properties(base, a="1")])
    assert len(server.requests) == before + 1
    assert SECRET not in str(raised.value)


def test_an_expired_token_is_renewed_once(server: RestTables) -> None:
    store = open_rest_store(settings(server, credential=f"key:{SECRET}"))
    base = created(store)
    server.faults = [401]
    store.commit([set_properties(base, a="1")])
    assert server.tables[TRADES]["properties"] == {"a": "1"}
    store.close()


def test_a_server_that_is_not_there_is_one_error_without_a_secret(server: RestTables) -> None:
    base = created(open_rest_store(settings(server)))
    stopped = CatalogSettings("lake", "rest", "http://127.0.0.1:9", None, {"token": SECRET}, 5)
    with pytest.raises(CatalogError, match="the connection failed: Connection refused") as raised:
        open_rest_store(stopped).commit([set_properties(base, a="1")])
    assert SECRET not in str(raised.value)


def test_one_table_at_a_time_where_the_server_lists_no_endpoint(
    server: RestTables, store: RestTableStore
) -> None:
    both = [set_properties(created(store), a="1"), set_properties(created(store, QUOTES), QUOTES, a="1")]
    assert not store.commits_together
    with pytest.raises(EngineError, match="commits one table at a time"):
        store.commit(both)
    assert server.tables[TRADES]["properties"] == {}


@pytest.fixture
def transactional(server: RestTables) -> Iterator[RestTableStore]:
    """A store of a server that commits several tables at once."""
    server.endpoints.append("POST /v1/{prefix}/transactions/commit")
    store = open_rest_store(settings(server))
    yield store
    store.close()


@pytest.mark.parametrize("fault", ["", "before", "after", "cut"])
def test_several_tables_are_committed_in_one_request(
    server: RestTables, transactional: RestTableStore, fault: str
) -> None:
    trades, quotes = created(transactional), created(transactional, QUOTES)
    server.faults = [fault]
    both = [with_column(trades, TRADES, "a"), with_column(quotes, QUOTES, "a")]
    tables = transactional.commit(both)
    assert [server.tables[TRADES], server.tables[QUOTES]] == [table.json for table in tables]
    assert [len(table.json["metadata-log"]) for table in tables] == [1, 1]
    with pytest.raises(CommitConflict, match=r"another client changed `db.trades`, `db.quotes` first"):
        transactional.commit([with_column(tables[0], TRADES, "b"), with_column(quotes, QUOTES, "b")])
    assert server.tables[TRADES] == tables[0].json


@pytest.mark.parametrize("fault", ["", "before", "after", "cut"])
def test_a_table_is_created_together_with_a_change_of_another(
    server: RestTables, transactional: RestTableStore, fault: str
) -> None:
    trades = created(transactional)
    creation = TableCommit(QUOTES, None, CREATION)
    server.faults = ["", fault]
    tables = transactional.commit([with_column(trades, TRADES, "a"), creation])
    assert [server.tables[TRADES], server.tables[QUOTES]] == [table.json for table in tables]
    assert field_ids(server, QUOTES) == FIELD_IDS
    assert CREATION_PROPERTY not in tables[1].json["properties"]
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.quotes` already"):
        transactional.commit([with_column(tables[0], TRADES, "b"), creation])
    assert server.tables[TRADES] == tables[0].json


@pytest.mark.parametrize("fault", ["", "before", "after", "cut"])
def test_renames_drops_and_namespaces_are_made_once(
    server: RestTables, store: RestTableStore, fault: str
) -> None:
    created(store)
    server.faults, asked = [fault], list[str]()
    store.rename(TRADES, QUOTES, lambda: asked.append("rename"))
    assert list(server.tables) == [QUOTES]
    # Where the table has its new name, the rename is not sent again.
    assert asked == (["rename"] if fault == "before" else [])
    server.faults = [fault]
    store.drop(QUOTES)
    assert server.tables == {}
    assert server.requests[-1].startswith(
        ("DELETE /v1/namespaces/db/tables/quotes?purgeRequested=false", "GET")
    )
    server.faults = [fault]
    store.create_namespace(("more",))
    assert ("more",) in server.namespaces
    server.faults = [fault]
    assert store.drop_namespace(("more",))
    assert ("more",) not in server.namespaces


def test_a_namespace_with_content_is_not_dropped(server: RestTables, store: RestTableStore) -> None:
    created(store, TableName(("db", "deep"), "trades"))
    store.create_namespace(("db",))
    store.create_namespace(("db",))
    assert not store.drop_namespace(("db",))
    assert not store.drop_namespace(("db", "deep"))
    store.drop(TableName(("db", "deep"), "trades"))
    assert store.drop_namespace(("db", "deep"))
    assert store.drop_namespace(("db",))
    assert store.drop_namespace(("db",))


def test_a_rename_needs_the_old_name_and_a_free_new_one(server: RestTables, store: RestTableStore) -> None:
    created(store)
    created(store, QUOTES)
    with pytest.raises(CommitConflict, match=r"there is a table or view `db.quotes`"):
        store.rename(TRADES, QUOTES)
    with pytest.raises(CommitConflict, match="there is no such table"):
        store.rename(TableName(("db",), "nowhere"), TableName(("db",), "new"))


def test_hostile_names_are_encoded(server: RestTables, store: RestTableStore) -> None:
    odd = TableName(("d/b", "..", "{x}"), "t?a=1#../../config")
    base = created(store, odd)
    store.commit([set_properties(base, odd, a="1")])
    assert server.tables[odd]["properties"] == {"a": "1"}
    assert store.load(odd) is not None


def test_unknown_keys_survive(server: RestTables, store: RestTableStore) -> None:
    base = created(store)
    server.tables[TRADES] = {**base.json, "future-key": [1], "x": {"big": 2**60}}
    table = store.load(TRADES)
    assert table is not None
    assert (table.json["future-key"], table.json["x"]) == ([1], {"big": 2**60})
    update = {"action": "set-properties", "updates": {"a": "1"}, "future": True}
    store.commit([TableCommit(TRADES, table, (update,))])
    assert server.bodies[-1]["updates"] == [update]


def test_a_tables_files_use_the_credentials_that_the_server_hands_out(
    server: RestTables, store: RestTableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[str, dict[str, str]]] = []

    def read(files: TableFiles, location: str) -> bytes:
        used.append((location, dict(files._settings.properties)))
        return b""

    monkeypatch.setattr(TableFiles, "read", read)
    server.config = {"s3.access-key-id": "one", "py-io-impl": "evil.Io", "s3.profile-name": "admin"}
    server.credentials = [
        {"prefix": "s3://lake/db/trades/secret/", "config": {"s3.access-key-id": "two"}},
        {"prefix": 7},
        "damaged",
    ]
    created(store)
    for location in ("db/trades/data/a", "db/trades/secret/a", "db/trades2/data/a"):
        store.files.read(f"s3://lake/{location}")
    own = {"token": SECRET}
    assert [properties for _, properties in used] == [
        {**own, "s3.access-key-id": "one"},
        {**own, "s3.access-key-id": "two"},
        own,
    ]


@pytest.mark.parametrize("config", [None, [], "text", {"s3.region": None}])
def test_a_damaged_config_of_a_table_is_ignored(
    server: RestTables, store: RestTableStore, config: Any
) -> None:
    server.config = server.credentials = config
    assert store.load(TRADES) is None
    created(store)
    assert store.load(TRADES) is not None


def test_a_server_elsewhere_does_not_make_this_machine_write_files(tmp_path: Path) -> None:
    elsewhere = CatalogSettings("lake", "rest", "http://catalog.example:8181", "lake", {}, 5)
    files = open_rest_store(elsewhere).files
    with pytest.raises(EngineError, match="is on this machine, but catalog `lake` is not"):
        files.write(f"file://{tmp_path}/t/metadata/a.avro", b"")
    (tmp_path / "kept").write_text("x")
    files.delete(f"file://{tmp_path}/kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_the_default_location_is_the_catalog_readers(server: RestTables, store: RestTableStore) -> None:
    store.create_namespace(("db",))
    assert store.default_location(TRADES) == open_catalog(settings(server)).default_location(TRADES)
