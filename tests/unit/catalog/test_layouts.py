"""Manifests as PyIceberg writes them, read without it."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from icemigrate.catalog import CatalogSettings, avro, file_layouts, open_catalog
from icemigrate.catalog.avro import BadAvro, read_records
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.catalog.file_layouts import layout_of
from icemigrate.catalog.metadata_files import read_local
from icemigrate.evidence.old_partition_files import (
    find_old_partition_files,
    with_old_partition_files,
    with_unplanned_tables,
)
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import (
    FilesBySpec,
    FileTotals,
    OldSpecFiles,
    old_spec_files,
    was_repartitioned,
)
from icemigrate.iceberg.partitioning import UNPARTITIONED
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import with_catalog_ids
from icemigrate.planning.plan import MigrationPlan, Plan, TablePlan
from icemigrate.render.phrases import old_partition_lines
from icemigrate.results.command_results import PlanResult
from icemigrate.system.inflate import MIB
from tests.support.planned_migrations import make_plan

NAME = TableName(("db",), "t")


@dataclass
class Lake:
    """A table that was partitioned by region, then by a bucket too, with files of both ways."""

    folder: Path
    table: IcebergTable

    @property
    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(read_local(self.table.metadata_location))
        return found

    def catalog(self, kind: str = "sqlite") -> Catalog:
        return open_catalog(
            CatalogSettings("lake", kind, f"sqlite:///{self.folder}/catalog.db", f"file://{self.folder}/lake")
        )

    def append(self, *regions: str) -> None:
        self.table.append(pa.table({"id": list(range(len(regions))), "region": list(regions)}))

    def sizes(self) -> dict[int, FileTotals]:
        """What PyIceberg says of the files."""
        found: dict[int, list[int]] = {}
        for file in self.table.inspect.data_files().to_pylist():
            found.setdefault(file["spec_id"], []).append(file["file_size_in_bytes"])
        return {spec: FileTotals(len(sizes), sum(sizes)) for spec, sizes in found.items()}


@pytest.fixture(scope="module", params=["gzip", "null"])
def lake(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Lake:
    folder = tmp_path_factory.mktemp("layouts")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("db")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "region", StringType()))
    table = catalog.create_table("db.t", schema, properties={"write.avro.compression-codec": request.param})
    with table.update_spec() as update:
        update.add_field("region", IdentityTransform(), "region")
    lake = Lake(folder, table)
    lake.append("a", "b", "c")
    lake.append("a")
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "b")
    lake.append("d", "e")
    return lake


def test_files_are_counted_by_their_spec(lake: Lake) -> None:
    assert layout_of(lake.metadata, read_local) == FilesBySpec(lake.sizes())
    assert {spec: p.files for spec, p in lake.sizes().items()} == {1: 4, 2: 2}


@pytest.mark.parametrize("kind", ["sqlite", "sql"])
def test_every_catalog_tells_it(lake: Lake, kind: str) -> None:
    catalog = lake.catalog(kind)
    assert catalog.layout(NAME) == FilesBySpec(lake.sizes())
    assert catalog.layout(TableName(("db",), "nowhere")) is None
    table = catalog.load([NAME])[NAME]
    assert table is not None
    share = find_old_partition_files(table, catalog)
    assert share is not None
    assert (share.files, share.all_files) == (4, 6)
    catalog.close()


def test_a_plan_about_a_table_that_was_partitioned_otherwise_says_so_once(lake: Lake) -> None:
    catalog = lake.catalog("sqlite")
    there = catalog.load([NAME])[NAME]
    assert there is not None
    later = "{{tables: [{{name: db.t, properties: {{k: {0}}}}}]}}".format
    migrations = {"0002": later("a"), "0003": later("b")}
    plan = make_plan(migrations, {NAME: there}, base=DeclaredState({NAME: there}), namespaces=[("db",)])
    told = with_old_partition_files(replace(plan, based_on={NAME: there}), catalog)
    assert [
        t.old_files and (t.old_files.files, t.old_files.all_files) for m in told.migrations for t in m.tables
    ] == [
        (4, 6),
        None,
    ]
    catalog.close()


def test_a_plan_asks_about_tables_that_it_leaves_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = lake.catalog()
    there = catalog.load([NAME])[NAME]
    assert there is not None
    kept = replace(there, older_specs=(), snapshot=None)
    never = replace(kept, spec=UNPARTITIONED, last_partition_id=999)
    declared = TableName(("market",), "t")

    def planned(*tables: TableName, base: Table = kept) -> PlanResult:
        plans = tuple(TablePlan(name, name, base, name) for name in tables)
        migrations = (MigrationPlan("0002", "m", "", plans),) if plans else ()
        plan = Plan("market", "local", "sqlite", "lake", migrations, base=DeclaredState({declared: base}))
        return with_unplanned_tables(PlanResult(plan), catalog, lambda name: NAME)

    (one,) = planned().old_partition_tables
    assert (one.table, one.name, one.old_files) == (
        "market.t",
        "db.t",
        find_old_partition_files(there, catalog),
    )
    assert planned(TableName(("market",), "other")).old_partition_tables == (one,)
    assert planned(declared).old_partition_tables == (), "its own plan says it"
    assert planned(base=never).old_partition_tables == ()
    assert not was_repartitioned(never)
    of_old = replace(kept, spec=replace(kept.spec, id=0, fields=kept.spec.fields[:1]))
    assert was_repartitioned(of_old), "more field ids were given than there are fields"
    settled = with_catalog_ids(replace(there, spec=UNPARTITIONED, older_specs=()), there)
    assert was_repartitioned(settled)
    monkeypatch.setattr("icemigrate.evidence.old_partition_files.MAX_INSPECTED_TABLES", 0)
    unasked = planned()
    assert (unasked.old_partition_tables, unasked.uncounted_tables) == ((), 1)
    assert [*old_partition_lines(unasked)] == [
        "1 more table had another partitioning before; "
        "`icemigrate status` shows how many files still have it."
    ]
    catalog.close()


def test_deleted_files_do_not_count(lake: Lake) -> None:
    lake.table.delete("region = 'c'")
    assert lake.sizes()[1].files == 3
    assert layout_of(lake.metadata, read_local) == FilesBySpec(lake.sizes())


def test_sizes_are_left_out_where_they_would_take_long(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_layouts, "MAX_ENTRIES", 0)
    found = layout_of(lake.metadata, read_local)
    assert found is not None
    assert {spec: p.bytes for spec, p in found.by_spec.items()} == {1: None, 2: None}
    assert {spec: p.files for spec, p in found.by_spec.items()} == {
        s: p.files for s, p in lake.sizes().items()
    }


def test_what_cannot_be_read_is_not_known(lake: Lake) -> None:
    def refuse(location: str) -> bytes:
        raise PermissionError(location)

    assert layout_of(lake.metadata, refuse) is None
    assert layout_of(lake.metadata, lambda location: b"Obj\x01") is None
    assert layout_of({**lake.metadata, "snapshots": [], "current-snapshot-id": None}, refuse) == FilesBySpec(
        {}
    )


def test_every_cut_of_a_file_is_damage_or_less_of_it(lake: Lake) -> None:
    whole = read_local(lake.metadata["snapshots"][-1]["manifest-list"])
    every = list(read_records(whole, (500, 502)))
    for end in range(0, len(whole), 7):
        try:
            found = list(read_records(whole[:end], (500, 502)))
        except BadAvro:
            continue
        assert found == every[: len(found)]


def _avro(schema: object, block: bytes, count: bytes = b"\x02", size: int | None = None) -> bytes:
    """A file of one block; a count is one record unless given, and a size that of the block."""
    header = b"Obj\x01\x04\x16avro.schema" + _of_size(json.dumps(schema).encode())
    header += b"\x14avro.codec\x0edeflate\x00" + b"s" * 16
    return header + count + _long(len(block) if size is None else size) + block + b"s" * 16


def _of_size(value: bytes) -> bytes:
    return _long(len(value)) + value


def _long(number: int) -> bytes:
    left, found = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def _deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


NULLS = {"type": "array", "items": "null"}
TEXT = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string", "field-id": 1}]}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (_avro(TEXT, _deflate(b" " * (MIB + 1))), "holds more than 1 MiB"),
        (_avro(TEXT, _deflate(b"\x02a")[:-1]), "it ends early"),
        (_avro(TEXT, _deflate(b"\x01")), "a value has -1 bytes"),
        (_avro(TEXT, b"", size=-40), "a value has -40 bytes"),
        (_avro(TEXT, _deflate(b"\xff" * 4000)), "a number has more than 64 bits"),
        (_avro("null", _deflate(b""), _long(1 << 60)), "a block of 0 bytes has 1152921504606846976 values"),
        (_avro(NULLS, _deflate(_long(1 << 60) + b"\x00")), "has 1152921504606846976 values"),
        (
            _avro({**TEXT, "fields": [{"name": "a", "type": NULLS}]}, _deflate(_long(1 << 60) + b"\x00")),
            "has 1152921504606846976 values",
        ),
        (_avro(17, _deflate(b"\x02a")), "it is damaged"),
    ],
)
def test_a_file_that_would_never_end_or_fill_the_memory_is_damaged(
    content: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro, "_MOST_BLOCK_BYTES", MIB)
    assert list(read_records(_avro(TEXT, _deflate(b"\x02a")), (1,))) == [{1: "a"}], "the builder is right"
    with pytest.raises(BadAvro, match=why):
        list(read_records(content, (1,)))


def test_names_and_order_of_partition_fields_make_no_old_way(lake: Lake) -> None:
    table = lake.catalog().load([NAME])[NAME]
    assert table is not None
    layout = FilesBySpec({1: FileTotals(3, 300), 2: FileTotals(2, None)})
    assert old_spec_files(layout, table, table.spec) == OldSpecFiles(3, 5, 300, None)
    assert old_spec_files(layout, table, UNPARTITIONED) == OldSpecFiles(5, 5, None, None)
    (region, bucket) = table.spec.fields
    renamed = replace(table.spec, fields=(replace(bucket, name="other"), region), id=7)
    assert old_spec_files(layout, table, renamed).files == 3


def test_a_share_is_told_in_a_few_words() -> None:
    assert str(OldSpecFiles(12, 20, 3_400_000_000, 5_100_000_000)) == "12 of 20 files, 3.4 GB of 5.1 GB,"
    assert str(OldSpecFiles(12, 20)) == "12 of 20 files, of unknown size,"
