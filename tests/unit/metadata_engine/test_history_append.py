"""Many commits of a history: its manifest list stays short, and the files of old snapshots are deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from icemigrate.catalog.metadata_files import read_local
from icemigrate.history.history_io import missing_settings
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine import history_append, manifest_merge
from icemigrate.metadata_engine.history_append import append_commit
from icemigrate.metadata_engine.manifest_lists import WrittenLists, read_avro
from icemigrate.metadata_engine.manifest_merge import MANIFESTS_TO_MERGE
from icemigrate.metadata_engine.table_store import StoredTable
from tests.support.metadata_tables import FolderTable

_NAME = TableName(("lake",), "history")


@pytest.fixture
def table(tmp_path: Path) -> FolderTable:
    return FolderTable(tmp_path / "t", 2)


@pytest.fixture
def commit(table: FolderTable) -> Callable[[int], None]:
    """Append one row with this id, as a new head."""
    lists = WrittenLists()

    def append(number: int) -> None:
        stored, rows = StoredTable("v1.metadata.json", table.metadata), [{"id": number, "region": "a"}]
        built = append_commit(
            _NAME, stored, table.files, rows, {}, (), expected_head=table.head, summary={}, written=lists
        )
        table.commit(*built.commit.updates)
        built.delete_expired(table.files)

    return append


def manifests(table: FolderTable, snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    return read_avro("manifest list", snapshot["manifest-list"], table.files)[1]


def files_of(table: FolderTable) -> set[str]:
    return {str(path) for path in (table.folder / "metadata").iterdir()}


def ids(table: FolderTable) -> list[int]:
    """The rows as PyIceberg reads them."""
    found = StaticTable.from_metadata(str(table.write_metadata())).scan().to_arrow()
    return sorted(found.column("id").to_pylist())


def test_small_manifests_are_merged_and_keep_their_sequence_numbers(
    table: FolderTable, commit: Callable[[int], None]
) -> None:
    many = MANIFESTS_TO_MERGE * 3 + 5
    for number in range(many):
        commit(number)
    found = manifests(table, table.snapshot)
    assert len(found) < MANIFESTS_TO_MERGE
    assert ids(table) == [*range(many)]
    files = [
        (entry["data_file"]["file_path"], entry["sequence_number"] or manifest["sequence_number"])
        for manifest in found
        for entry in read_avro("manifest", manifest["manifest_path"], table.files)[1]
    ]
    assert sorted(number for _, number in files) == [*range(1, many + 1)]
    assert len({path for path, _ in files}) == many
    summaries = [s["summary"] for s in table.metadata["snapshots"]]
    replaced = [s["manifests-replaced"] for s in summaries if s["manifests-replaced"] != "0"]
    assert replaced == [str(MANIFESTS_TO_MERGE)] * 3
    assert table.snapshot["summary"]["total-data-files"] == str(many)
    assert sum(m["existing_files_count"] + m["added_files_count"] for m in found) == many


def test_files_that_only_expired_snapshots_need_are_deleted(
    table: FolderTable, commit: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_append, "MOST_SNAPSHOTS", 10)
    many = MANIFESTS_TO_MERGE * 2 + 15
    for number in range(many):
        commit(number)
    snapshots = table.metadata["snapshots"]
    assert len(snapshots) <= 10
    needed = {s["manifest-list"] for s in snapshots}
    needed |= {m["manifest_path"] for s in snapshots for m in manifests(table, s)}
    assert files_of(table) == needed
    assert ids(table) == [*range(many)]


def test_a_tagged_snapshot_keeps_its_files(
    table: FolderTable, commit: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_append, "MOST_SNAPSHOTS", 10)
    for number in range(5):
        commit(number)
    tagged = table.snapshot
    tag = {"action": "set-snapshot-ref", "ref-name": "audit", "type": "tag"}
    table.commit({**tag, "snapshot-id": tagged["snapshot-id"]})
    for number in range(5, MANIFESTS_TO_MERGE * 2):
        commit(number)
    assert tagged in table.metadata["snapshots"]
    for manifest in manifests(table, tagged):
        assert read_local(manifest["manifest_path"])


def test_the_manifests_of_a_main_that_returned_to_an_earlier_snapshot_stay(
    table: FolderTable, commit: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MANIFESTS_TO_MERGE):
        commit(number)
    before_merge = table.head
    commit(MANIFESTS_TO_MERGE)
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    table.commit({**main, "snapshot-id": before_merge})
    monkeypatch.setattr(history_append, "MOST_SNAPSHOTS", 2)
    monkeypatch.setattr(manifest_merge, "MANIFESTS_TO_MERGE", 1000)
    commit(MANIFESTS_TO_MERGE + 1)
    commit(MANIFESTS_TO_MERGE + 2)
    assert len(table.metadata["snapshots"]) < MANIFESTS_TO_MERGE
    assert ids(table) == [*range(MANIFESTS_TO_MERGE), MANIFESTS_TO_MERGE + 1, MANIFESTS_TO_MERGE + 2]


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"Obj")])
def test_a_manifest_that_cannot_be_read_is_not_merged(
    table: FolderTable, commit: Callable[[int], None], damage: Callable[[Path], object]
) -> None:
    commit(0)
    damage(Path(manifests(table, table.snapshot)[0]["manifest_path"]))
    for number in range(MANIFESTS_TO_MERGE + 3):
        commit(number)
    assert len(manifests(table, table.snapshot)) == MANIFESTS_TO_MERGE + 4


def test_a_history_of_an_earlier_release_gets_the_settings_that_it_lacks() -> None:
    limit = "write.metadata.previous-versions-max"
    new = missing_settings({})
    assert new[limit] == "10"
    assert missing_settings({limit: "100"})[limit] == "10"
    assert limit not in missing_settings({limit: "50"})
    assert missing_settings(new) == {}
