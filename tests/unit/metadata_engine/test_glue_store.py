"""Commits to AWS Glue, with boto3's own client and a service in this process.

There is no server of Glue to start, and moto's ignores the version on which a commit depends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from pyiceberg.catalog.glue import GlueCatalog

from icemigrate.catalog import CatalogSettings
from icemigrate.catalog.capabilities import CAPABILITY_MATRIX
from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.engine import MetadataEngine
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.glue_store import GlueMetastore
from icemigrate.metadata_engine.metastore_store import MetastoreTableStore
from icemigrate.metadata_engine.table_store import CommitConflict, CommitStateUnknown
from tests.support.small_commits import TRADES, columns, created, set_properties, with_column


class GlueService:
    """Databases and tables with versions, which change as Glue's documentation of its API says."""

    def __init__(self) -> None:
        self.databases: dict[str, dict[str, Any]] = {}
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self.failures: list[str] = []
        """For the next updates in turn: ``before`` or ``after`` the change, the answer is an error."""
        self.updates: list[dict[str, Any]] = []

    def answer(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        key = (
            request.get("DatabaseName", ""),
            request.get("Name") or request.get("TableInput", {}).get("Name"),
        )
        match operation:
            case "CreateDatabase":
                self.databases[request["DatabaseInput"]["Name"]] = request["DatabaseInput"]
            case "GetDatabase" | "DeleteDatabase" if request["Name"] not in self.databases:
                return _error("EntityNotFoundException")
            case "GetDatabase":
                return 200, {"Database": self.databases[request["Name"]]}
            case "DeleteDatabase":
                del self.databases[request["Name"]]
            case "GetTables":
                return 200, {"TableList": [t for (db, _), t in self.tables.items() if db == key[0]]}
            case "CreateTable" if key in self.tables:
                return _error("AlreadyExistsException")
            case "CreateTable":
                self.tables[key] = {**request["TableInput"], "DatabaseName": key[0], "VersionId": "0"}
            case _ if key not in self.tables:
                return _error("EntityNotFoundException")
            case "GetTable":
                return 200, {"Table": self.tables[key]}
            case "DeleteTable":
                del self.tables[key]
            case "UpdateTable":
                return self._update(key, request)
            case _:
                raise AssertionError(operation)
        return 200, {}

    def _update(self, key: tuple[str, str], request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.updates.append(request)
        failure = self.failures.pop(0) if self.failures else None
        version = self.tables[key]["VersionId"]
        if failure != "before":
            if request["VersionId"] != version:
                return _error("ConcurrentModificationException")
            changed = {**request["TableInput"], "DatabaseName": key[0], "VersionId": str(int(version) + 1)}
            self.tables[key] = changed
        return (500, {"__type": "InternalServiceException"}) if failure else (200, {})


def _error(code: str) -> tuple[int, dict[str, Any]]:
    return 400, {"__type": code, "message": code}


@pytest.fixture
def service() -> GlueService:
    return GlueService()


@pytest.fixture
def store(
    service: GlueService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MetastoreTableStore]:
    client = boto3.client("glue", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")

    def send(model: Any, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        status, answer = service.answer(model.name, json.loads(params["body"]))
        if status == 200:
            return SimpleNamespace(status_code=status), answer
        error = {"Code": answer["__type"], "Message": answer.get("message", "")}
        return SimpleNamespace(status_code=status), {
            "Error": error,
            "ResponseMetadata": {"HTTPStatusCode": status},
        }

    client.meta.events.register("before-call.glue", send)
    monkeypatch.setattr(
        "pyiceberg.catalog.glue.GlueCatalog",
        lambda name, **properties: GlueCatalog(name, client=client, **properties),
    )
    monkeypatch.setattr("icemigrate.metadata_engine.uncertain_outcome.PAUSES_S", (0.0,) * 4)
    settings = CatalogSettings("lake", "glue", None, f"file://{tmp_path}/wh")
    store = MetastoreTableStore(settings, GlueMetastore(settings), TableFiles(settings))
    yield store
    store.close()


def test_a_table_is_created_and_changed_as_java_writes_it(
    store: MetastoreTableStore, service: GlueService
) -> None:
    base = created(store, properties={"comment": "of the exchange", "write.data.path": "file:///data"})
    with pytest.raises(CommitConflict):
        created(store)
    service.tables["db", "trades"]["Parameters"] |= {"theirs": "1", "comment": "a copy"}
    service.tables["db", "trades"]["StorageDescriptor"]["Columns"][1]["Comment"] = "typed in the console"
    (after,) = store.commit([with_column(base, TRADES, "venue")])
    assert store.load(TRADES) == after
    (update,) = service.updates
    assert (update["VersionId"], update["SkipArchive"]) == ("0", True)
    table = update["TableInput"]
    assert table["Parameters"] == {
        "table_type": "ICEBERG",
        "metadata_location": after.location,
        "previous_metadata_location": base.location,
        "comment": "of the exchange",
        "theirs": "1",
    }
    assert table["Description"] == "of the exchange"
    assert table["StorageDescriptor"]["AdditionalLocations"] == ["file:///data"]
    shown = [(c["Name"], c["Type"], c.get("Comment")) for c in table["StorageDescriptor"]["Columns"]]
    assert shown == [
        ("id", "bigint", None),
        ("kind", "string", "typed in the console"),
        ("venue", "string", None),
    ]
    assert table["StorageDescriptor"]["Columns"][0]["Parameters"] == {
        "iceberg.field.id": "3",
        "iceberg.field.optional": "false",
        "iceberg.field.current": "true",
    }
    assert not store.drop_namespace(TRADES.namespace)
    store.drop(TRADES)
    assert store.drop_namespace(TRADES.namespace)


def test_another_clients_commit_between_reading_and_writing_is_kept(
    store: MetastoreTableStore, service: GlueService, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = created(store)
    find, others = GlueMetastore._find, []

    def find_then_commit(self: GlueMetastore, name: TableName) -> Any:
        found = find(self, name)
        if not others:
            others.append(name)
            others.extend(store.commit([with_column(base, TRADES, "theirs")]))
        return found

    monkeypatch.setattr(GlueMetastore, "_find", find_then_commit)
    with pytest.raises(CommitConflict):
        store.commit([with_column(base, TRADES, "ours")])
    after = store.load(TRADES)
    assert after == others[1]
    assert after is not None
    assert columns(after) == ["id", "kind", "theirs"]


@pytest.mark.parametrize("failure", ["before", "after"])
def test_a_commit_with_a_lost_answer_is_made_once(
    store: MetastoreTableStore, service: GlueService, failure: str
) -> None:
    base = created(store)
    service.failures = [failure]
    (after,) = store.commit([set_properties(base, a="1")])
    assert store.load(TRADES) == after
    assert service.tables["db", "trades"]["VersionId"] == "1"
    service.failures = ["before"] * 9
    with pytest.raises(CommitStateUnknown):
        store.commit([set_properties(after, a="2")])


def test_a_rename_is_left_to_spark(store: MetastoreTableStore) -> None:
    created(store)
    quotes = TableName(("db",), "quotes")
    with pytest.raises(EngineError, match="cannot rename table"):
        store.rename(TRADES, quotes)
    catalog, spark = Mock(capabilities=CAPABILITY_MATRIX["glue"]), Mock()
    MetadataEngine(store, catalog, lambda: spark).rename(TRADES, quotes)
    spark.jvm_engine.rename.assert_called_once_with(TRADES, quotes)
    with pytest.raises(EngineError, match=r"renaming table `db\.trades` needs Spark"):
        MetadataEngine(store, catalog, None).rename(TRADES, quotes)


def test_a_table_of_s3_tables_is_not_created(store: MetastoreTableStore, service: GlueService) -> None:
    service.databases["db"] = {"Name": "db", "FederatedDatabase": {"ConnectionType": "aws:s3tables"}}
    with pytest.raises(EngineError, match="S3 Tables choose the locations"):
        created(store)
