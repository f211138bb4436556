"""Files of new snapshots, read by this project, PyIceberg and DuckDB."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import read_manifest_list
from pyiceberg.table import StaticTable

from icemigrate.catalog.file_layouts import read_manifest_list as read_by_own_reader
from icemigrate.catalog.manifest_reader import CatalogManifestReader
from icemigrate.catalog.metadata_files import read_local
from icemigrate.catalog.snapshot_manifests import TableManifests
from icemigrate.errors import CatalogError, EngineError
from icemigrate.metadata_engine import snapshot_files
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.manifest_lists import WrittenLists, carried_over
from icemigrate.metadata_engine.snapshot_files import append_snapshot
from tests.spark.duckdb_rows import duckdb_rows
from tests.support.metadata_tables import FolderTable

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


@pytest.fixture
def table(tmp_path: Path, request: pytest.FixtureRequest) -> FolderTable:
    return FolderTable(tmp_path / "t", getattr(request, "param", 2))


def data_file(table: FolderTable, *regions: str | None) -> DataFile:
    """A data file of the columns ``id`` and ``region``."""
    fields = [("id", pa.int64(), 1), ("region", pa.string(), 2)]
    schema = pa.schema([pa.field(n, t, metadata={"PARQUET:field_id": str(i)}) for n, t, i in fields])
    rows = [{"id": number, "region": region} for number, region in enumerate(regions)]
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), stream)
    content = stream.getvalue()
    path = str(table.folder / "data" / f"{len(content)}-{'-'.join(map(str, regions))}.parquet")
    table.files.write(path, content)
    return DataFile(
        path,
        len(content),
        len(rows),
        column_sizes={1: 40, 2: 50},
        value_counts={1: len(rows), 2: len(rows)},
        null_counts={1: 0, 2: regions.count(None)},
        lower_bounds={1: bytes(8)},
        upper_bounds={1: (len(rows) - 1).to_bytes(8, "little")},
        split_offsets=(4,),
    )


def avro(location: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The records of an Avro file, and its header."""
    reader = fastavro.reader(io.BytesIO(read_local(location)))
    return [dict(record) for record in reader], reader.metadata


def entries(table: FolderTable) -> list[dict[str, Any]]:
    """The manifests of the newest snapshot."""
    return avro(table.snapshot["manifest-list"])[0]


def rewrite(location: str, records: list[dict[str, Any]], schema: Mapping[str, Any]) -> None:
    """Replace an Avro file, as another writer could have written it."""
    stream = io.BytesIO()
    fastavro.writer(stream, dict(schema), records)
    Path(location).write_bytes(stream.getvalue())


@VERSIONS
def test_every_reader_finds_the_rows_of_all_snapshots(tmp_path: Path, version: int) -> None:
    table = FolderTable(tmp_path / "t", version)
    table.append(icemigrate="begun")
    first = table.append(data_file(table, "a", None))
    table.append(data_file(table, "b"), data_file(table, "c"))
    staged = table.append(is_staged=True)
    path = table.write_metadata()

    static = StaticTable.from_metadata(str(path))
    number = staged.json["snapshot-id"]
    for snapshot, regions in ((number, ["a", "b", "c", None]), (first.json["snapshot-id"], ["a", None])):
        rows = static.scan(snapshot_id=snapshot).to_arrow().column("region").to_pylist()
        assert sorted(rows, key=str) == sorted(regions, key=str)
    scan = f"SELECT region FROM iceberg_scan('{path}', snapshot_from_id => {number}) ORDER BY region"
    assert duckdb_rows([(scan, ())]) == [[["a"], ["b"], ["c"], [None]]]

    look = TableManifests(table.metadata, CatalogManifestReader(read_local, {1, 2}))
    files = look.files(look.snapshot(number))
    sequences = [3, 3, 2] if version > 1 else [0, 0, 0]
    assert [(f.rows, f.nulls[2], f.sequence, f.data_sequence) for f in files] == [
        (1, 0, sequences[0], sequences[0]),
        (1, 0, sequences[1], sequences[1]),
        (2, 1, sequences[2], sequences[2]),
    ]
    row_ids = [2, 3, 0] if version == 3 else [None, None, None]
    assert [f.first_row_id for f in files] == row_ids


@VERSIONS
def test_a_manifest_is_one_of_an_append(tmp_path: Path, version: int) -> None:
    table = FolderTable(tmp_path / "t", version)
    new = table.append(data_file(table, "a", None))
    assert Path(new.files[1]).name.startswith(f"snap-{new.json['snapshot-id']}-1-")
    assert new.json["manifest-list"] == new.files[1]
    io_ = PyArrowFileIO()
    (manifest,) = read_manifest_list(io_.new_input(new.files[1]))
    assert manifest.manifest_path == new.files[0]
    assert manifest.manifest_length == len(read_local(new.files[0]))
    assert (manifest.added_files_count, manifest.added_rows_count, manifest.deleted_rows_count) == (1, 2, 0)
    (entry,) = manifest.fetch_manifest_entry(io_)
    assert entry.snapshot_id == new.json["snapshot-id"]
    file = entry.data_file
    assert (file.record_count, file.null_value_counts, file.split_offsets) == (2, {1: 0, 2: 1}, [4])
    assert file.upper_bounds == {1: b"\x01" + bytes(7)}
    ((raw,), header) = avro(new.files[0])
    assert raw["status"] == 1
    assert raw.get("sequence_number") is None
    assert json.loads(header["schema"]) == table.metadata["schemas"][0]
    assert header["partition-spec"] == "[]"
    assert header["format-version"] == str(version)
    assert header.get("content") == (None if version == 1 else "data")
    assert header["avro.codec"] == "deflate"


def test_a_snapshot_has_the_keys_of_its_version(tmp_path: Path) -> None:
    lineage = {"first-row-id", "added-rows"}
    common = {"snapshot-id", "timestamp-ms", "summary", "manifest-list", "schema-id"}
    for version, further in ((1, set()), (2, {"sequence-number"}), (3, {"sequence-number", *lineage})):
        table = FolderTable(tmp_path / str(version), version)
        assert table.append().json.keys() == common | further
        assert table.append().json.keys() == common | further | {"parent-snapshot-id"}


def test_totals_continue_those_of_the_parent(table: FolderTable) -> None:
    data = data_file(table, "a", "b")
    table.append(is_staged=True, note="x", operation="delete")
    assert table.snapshot["summary"] == {
        **{"operation": "append", "note": "x", "changed-partition-count": "0"},
        **{"manifests-created": "0", "manifests-kept": "0", "manifests-replaced": "0"},
        **{"total-records": "0", "total-files-size": "0", "total-data-files": "0"},
        **{"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0"},
    }
    table.append(data)
    summary = table.snapshot["summary"]
    assert summary["added-files-size"] == summary["total-files-size"] == str(data.size)
    assert (summary["added-data-files"], summary["added-records"]) == ("1", "2")
    assert (summary["manifests-created"], summary["changed-partition-count"]) == ("1", "1")
    del summary["total-records"]
    summary["total-files-size"] = "many"
    summary["total-data-files"] = "-1"
    summary["total-delete-files"] = "7"
    table.append(data)
    totals = {key: value for key, value in table.snapshot["summary"].items() if key.startswith("total-")}
    assert totals == {
        **{"total-delete-files": "7", "total-position-deletes": "0", "total-equality-deletes": "0"}
    }


def test_rows_of_an_upgraded_table_get_ids(table: FolderTable) -> None:
    table.append(data_file(table, "a", "b"))
    table.append(data_file(table, "c"))
    # Rewritten manifests have existing rows.
    listed, header = avro(table.snapshot["manifest-list"])
    listed[1] |= {"added_rows_count": 0, "existing_rows_count": 2}
    rewrite(table.snapshot["manifest-list"], listed, json.loads(header["avro.schema"]))
    table.commit({"action": "upgrade-format-version", "format-version": 3})
    table.append()
    assert [entry["first_row_id"] for entry in entries(table)] == [0, 1]
    assert (table.snapshot["first-row-id"], table.snapshot["added-rows"]) == (0, 3)
    table.append(data_file(table, "d"))
    assert [entry["first_row_id"] for entry in entries(table)] == [3, 0, 1]
    assert (table.snapshot["first-row-id"], table.snapshot["added-rows"]) == (3, 1)
    assert table.metadata["next-row-id"] == 4


def test_delete_manifests_have_no_row_ids(tmp_path: Path) -> None:
    table = FolderTable(tmp_path / "t", 3)
    table.append(data_file(table, "a"))
    listed, header = avro(table.snapshot["manifest-list"])
    deletes = {**listed[0], "content": 1, "first_row_id": None, "manifest_path": "deletes.avro"}
    rewrite(table.snapshot["manifest-list"], [*listed, deletes], json.loads(header["avro.schema"]))
    table.append()
    assert [(entry["content"], entry["first_row_id"]) for entry in entries(table)] == [(0, 0), (1, None)]
    assert table.snapshot["added-rows"] == 0


@VERSIONS
def test_manifests_that_a_snapshot_names_one_by_one_are_counted(tmp_path: Path, version: int) -> None:
    table = FolderTable(tmp_path / "t", 1)
    new = table.append(data_file(table, "a", "b"), data_file(table, "c"))
    snapshot = {**new.json, "manifests": [new.files[0]]}
    del snapshot["manifest-list"]
    table.metadata["snapshots"] = [snapshot]
    if version > 1:
        table.commit({"action": "upgrade-format-version", "format-version": version})
    table.append()
    (entry,) = entries(table)
    assert (entry["added_files_count"], entry["added_rows_count"], entry["existing_rows_count"]) == (2, 3, 0)
    assert entry["added_snapshot_id"] == new.json["snapshot-id"]
    assert entry["manifest_length"] == len(read_local(new.files[0]))
    assert entry.get("sequence_number", 0) == entry.get("content", 0) == 0
    table.metadata["snapshots"] = [table.snapshot]  # PyIceberg cannot read the other
    assert StaticTable.from_metadata(str(table.write_metadata())).scan().to_arrow().num_rows == 3


def test_a_list_without_counts_is_completed_for_a_later_version(tmp_path: Path) -> None:
    table = FolderTable(tmp_path / "t", 1)
    table.append(data_file(table, "a", "b"))
    listed, header = avro(table.snapshot["manifest-list"])
    listed[0] |= {key: None for key in listed[0] if key.endswith("_count")}
    rewrite(table.snapshot["manifest-list"], listed, json.loads(header["avro.schema"]))
    table.append()
    assert entries(table)[0]["added_rows_count"] is None
    table.commit({"action": "upgrade-format-version", "format-version": 2})
    table.append()
    assert entries(table)[0]["added_rows_count"] == 2
    assert read_by_own_reader(table.metadata, read_local) is not None


def test_fields_of_later_specifications_and_older_names_are_kept(table: FolderTable) -> None:
    table.append(data_file(table, "a"))
    location = table.snapshot["manifest-list"]
    listed, header = avro(location)
    schema = json.loads(header["avro.schema"])
    fields = {field["name"]: field for field in schema["fields"]}
    fields["added_files_count"]["name"] = "added_data_files_count"  # as Iceberg named it before 1.0
    summary = fields["partitions"]["type"][1]["items"]["fields"]
    summary.append({"name": "contains_zero", "type": "boolean", "field-id": 9002})
    schema["fields"].append({"name": "sketch", "type": "bytes", "field-id": 9003})
    bounds = {"contains_null": False, "lower_bound": b"a", "contains_zero": True}
    entry = {**listed[0], "added_data_files_count": 1, "sketch": b"sketch", "partitions": [bounds]}
    rewrite(location, [entry], schema)
    for _ in range(2):
        table.append(data_file(table, "b" * len(table.metadata["snapshots"])))
    new, _, kept = entries(table)
    assert kept["sketch"] == b"sketch"
    assert kept["added_files_count"] == 1
    assert kept["partitions"] == [
        {**bounds, "contains_nan": None, "upper_bound": None, "contains_zero": True}
    ]
    assert new["sketch"] is None
    assert StaticTable.from_metadata(str(table.write_metadata())).scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("table", [1, 2, 3], indirect=True)
def test_a_list_that_was_written_is_known_as_it_is_read(table: FolderTable) -> None:
    lists, version = WrittenLists(), table.metadata["format-version"]
    for region in ("a", "b", None):
        data = () if region is None else (data_file(table, region),)
        snapshot = append_snapshot(
            table.metadata, table.files, {}, data=data, parent_id=table.head, now_ms=0, written=lists
        ).json
        known = lists.of(snapshot["manifest-list"], version)
        assert known is not None
        assert known == carried_over(snapshot, table.files, version)
        ref = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]}
        table.commit({"action": "add-snapshot", "snapshot": snapshot}, {"action": "set-snapshot-ref", **ref})


def test_files_are_written_where_the_properties_say(tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    table = FolderTable(tmp_path / "t", 2, write_metadata_path=f"{elsewhere}/")
    table.commit(
        {"action": "set-properties", "updates": {"write.manifest.compression-codec": "uncompressed"}}
    )
    new = table.append(data_file(table, "a"))
    assert [str(Path(path).parent) for path in new.files] == [elsewhere, elsewhere]
    assert [avro(path)[1]["avro.codec"] for path in new.files] == ["null", "deflate"]


def test_an_id_is_used_once_and_time_does_not_go_back(
    table: FolderTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [UUID(int=5), UUID(int=8), UUID(int=5), UUID(int=(1 << 127) + 6), UUID(int=9)]
    monkeypatch.setattr(snapshot_files.uuid, "uuid4", lambda: drawn.pop(0))
    first, second = table.append(), table.append()
    assert (first.json["snapshot-id"], second.json["snapshot-id"]) == (5, 6)
    table.metadata["last-updated-ms"] = 1_800_000_000_000
    monkeypatch.undo()
    third = append_snapshot(table.metadata, table.files, {}, parent_id=6, now_ms=1)
    assert third.json["timestamp-ms"] == 1_800_000_000_000
    table.metadata["last-updated-ms"] = 1
    fourth = append_snapshot(table.metadata, table.files, {}, parent_id=6, now_ms=1)
    assert fourth.json["timestamp-ms"] == second.json["timestamp-ms"]


def test_void_partition_fields_are_null(tmp_path: Path) -> None:
    table = FolderTable(tmp_path / "t", 1)
    void = {"transform": "void", "source-id": 2, "field-id": 1000, "name": "1 région"}
    gone = {"transform": "void", "source-id": 77, "field-id": 1001, "name": "gone"}
    table.metadata["partition-specs"].append({"spec-id": 1, "fields": [void, gone]})
    table.metadata["default-spec-id"] = 1
    new = table.append(data_file(table, "a"))
    ((entry,), header) = avro(new.files[0])
    assert entry["data_file"]["partition"] == {"_1_x20r_xE9gion": None, "gone": None}
    assert json.loads(header["partition-spec"]) == [void, gone]
    assert header["partition-spec-id"] == "1"
    (listed,) = entries(table)
    assert [summary["contains_null"] for summary in listed["partitions"]] == [True, True]


def written(table: FolderTable) -> set[Path]:
    return set(table.folder.rglob("*.avro"))


def test_refusals_name_the_file_or_the_table_and_write_nothing(table: FolderTable) -> None:
    data = data_file(table, "a")
    table.append(data)
    before, metadata = written(table), table.metadata

    def refused(match: str, **changed: Any) -> None:
        with pytest.raises(EngineError, match=match):
            append_snapshot(
                {**metadata, **changed}, table.files, {}, data=(data,), parent_id=table.head, now_ms=1
            )
        assert written(table) == before

    refused("has format version 4", **{"format-version": 4})
    refused("is encrypted", properties={"encryption.key-id": "k"})
    table.files.refused = ".avro"
    refused("cannot be written")
    location = table.snapshot["manifest-list"]
    listed, header = avro(location)
    schema = json.loads(header["avro.schema"])
    del schema["fields"][3]["field-id"]
    rewrite(location, listed, schema)
    refused("the field `content` of .* has no `field-id`")
    Path(location).write_bytes(read_local(location)[:-30])
    refused(r"manifest list .*snap-.* cannot be read")
    Path(location).unlink()
    before.discard(Path(location))
    refused("manifest list .* cannot be read: No such file")


def test_an_error_of_the_storage_keeps_its_hint(table: FolderTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append()

    def read(location: str) -> bytes:
        raise CatalogError("the storage does not answer", "check the network")

    monkeypatch.setattr(table.files, "read", read)
    with pytest.raises(CatalogError, match="does not answer"):
        table.append()


def test_a_manifest_whose_list_cannot_be_written_is_deleted(table: FolderTable) -> None:
    data = data_file(table, "a")
    write = table.files.write

    def write_no_lists(location: str, content: bytes) -> None:
        if "snap-" in location:
            raise EngineError("the disk is full")
        write(location, content)

    table.files.write = write_no_lists  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="disk"):
        table.append(data)
    assert written(table) == set()
