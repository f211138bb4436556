"""Evidence for an undo from manifests that PyIceberg wrote, without a JVM."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from icemigrate.catalog.manifest_reader import CatalogManifestReader
from icemigrate.catalog.metadata_files import read_local
from icemigrate.catalog.snapshot_manifests import TableManifests, UnreadableManifest
from icemigrate.iceberg.file_evidence_values import Evidence, EvidenceQuery
from icemigrate.iceberg.types import Primitive
from icemigrate.spark.file_evidence import gather_without_jvm

ID, REGION = 1, 2


@dataclass
class Lake:
    """A table ``(id, region)``."""

    table: IcebergTable

    @property
    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(read_local(self.table.metadata_location))
        return found

    @property
    def manifests(self) -> TableManifests:
        return TableManifests(self.metadata, CatalogManifestReader(read_local, {ID, REGION}))

    def append(self, *regions: str | None) -> int:
        """Add a file; the id of the new snapshot."""
        schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
        self.table.append(pa.table({"id": list(range(len(regions))), "region": list(regions)}, schema))
        snapshot = self.table.refresh().current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def answers(self, questions: EvidenceQuery) -> Evidence | None:
        return gather_without_jvm(self.metadata, read_local, refuse, "lake.db.t", questions)


def refuse(text: str) -> Sequence[tuple[Any, ...]]:
    pytest.fail(f"no query is needed: {text}")


@pytest.fixture(params=["1", "2"])
def lake(tmp_path: Path, request: pytest.FixtureRequest) -> Lake:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("db")
    schema = Schema(NestedField(ID, "id", LongType()), NestedField(REGION, "region", StringType()))
    return Lake(catalog.create_table("db.t", schema, properties={"format-version": request.param}))


def test_files_have_the_metrics_of_the_fields_that_are_asked_about(lake: Lake) -> None:
    lake.append("a", None, "c")
    lake.append("d")
    look = lake.manifests
    assert [(f.rows, f.values, f.nulls) for f in look.files(look.current_snapshot)] == [
        (1, {ID: 1, REGION: 1}, {ID: 0, REGION: 0}),
        (3, {ID: 3, REGION: 3}, {ID: 0, REGION: 1}),
    ]
    few = TableManifests(lake.metadata, CatalogManifestReader(read_local, {ID}))
    assert all(f.nulls == {ID: 0} for f in few.files(few.current_snapshot))


def test_what_was_written_since_is_counted(lake: Lake) -> None:
    then = lake.append("a", "b")
    lake.append("c", None)
    asked = EvidenceQuery(then, frozenset({REGION}), held={REGION: frozenset({REGION}), 9: frozenset({9})})
    found = lake.answers(asked)
    assert found is not None
    assert (found.files, found.rows, found.snapshots, found.nulls) == (1, 2, 1, {REGION: 1})
    assert (found.held[REGION].held, found.held[9].held, found.held[9].unknown) == (4, 0, 2)
    gone = lake.answers(EvidenceQuery(4711, frozenset({REGION})))
    assert gone is not None
    assert (gone.files, gone.snapshots) == (2, None)


def test_an_empty_table_has_no_evidence_of_anything(lake: Lake) -> None:
    assert lake.answers(EvidenceQuery(None, frozenset({REGION}))) == Evidence(nulls={REGION: 0})


def test_lost_partition_values_are_left_to_iceberg_s_library(lake: Lake) -> None:
    with lake.table.update_spec() as update:
        update.add_field("region", IdentityTransform(), "region")
    asked = EvidenceQuery(None, columns={REGION: Primitive("string")})
    assert lake.answers(asked) is not None
    lake.append("a")
    assert lake.answers(asked) is None


@pytest.mark.parametrize("damage", ["cut", "longer", "gone", "no Avro", "no list"])
def test_what_python_cannot_read_is_left_to_iceberg_s_library(lake: Lake, damage: str) -> None:
    lake.append("a")
    look = lake.manifests
    head = look.current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    (path,) = look.reader.data_manifests(head)
    file = Path((head.manifest_list if damage == "no list" else path).removeprefix("file://"))
    content = file.read_bytes()
    if damage in ("gone", "no list"):
        file.unlink()
    else:
        damaged = {"cut": content[:-1], "longer": content + b" ", "no Avro": bytes(len(content))}
        file.write_bytes(damaged[damage])
    assert lake.answers(EvidenceQuery(None, held={REGION: frozenset({REGION})})) is None
    fresh = lake.manifests
    with pytest.raises(UnreadableManifest, match=r"cannot be read"):
        fresh.files(fresh.current_snapshot)
