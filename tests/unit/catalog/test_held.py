"""How many rows have values of a field, out of manifests as PyIceberg writes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, StructType

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.catalog_port import Catalog
from icemigrate.evidence.old_partition_files import with_old_partition_files
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.file_evidence_values import ValueShare
from icemigrate.iceberg.names import TableName
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from tests.support.planned_migrations import make_plan, pending

NAME = TableName(("db",), "t")
FIELDS = {2: frozenset({2}), 3: frozenset({4}), 9: frozenset({9})}


def lake(folder: Path, properties: dict[str, str], kind: str = "sqlite", wide: int = 0) -> Catalog:
    """A table that got two rows, lost its second column, and got one more row.

    :param wide: how many more fields there are in its struct.
    """
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("db")
    more = (NestedField(10 + i, f"f{i}", LongType(), required=False) for i in range(wide))
    struct = StructType(NestedField(4, "a", LongType(), required=False), *more)
    schema = Schema(
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "region", StringType(), required=False),
        NestedField(3, "s", struct, required=False),
    )
    table = catalog.create_table("db.t", schema, properties=properties)
    rows = pa.table({"id": [1, 2], "region": ["eu", None], "s": [{"a": 1}, {"a": 2}]})
    table.append(rows)
    with table.update_schema() as update:
        update.delete_column("region")
    table.append(pa.table({"id": [3], "s": [{"a": 3}]}))
    return open_catalog(
        CatalogSettings("lake", kind, f"sqlite:///{folder}/catalog.db", f"file://{folder}/lake")
    )


@pytest.mark.parametrize("kind", ["sqlite", "sql"])
def test_rows_are_counted_whose_files_have_a_field(tmp_path: Path, kind: str) -> None:
    catalog = lake(tmp_path, {}, kind)
    assert catalog.rows_with_values(NAME, FIELDS) == {
        2: ValueShare(2, 0, 3),
        3: ValueShare(3, 0, 3),
        9: ValueShare(0, 0, 3),
    }
    assert catalog.rows_with_values(TableName(("db",), "nowhere"), FIELDS) is None


def test_where_metrics_are_limited_a_file_without_them_says_nothing(tmp_path: Path) -> None:
    catalog = lake(tmp_path, {"write.metadata.metrics.column.region": "none"})
    found = catalog.rows_with_values(NAME, FIELDS)
    assert found is not None
    assert (found[2].unknown, str(found[3])) == (1, "3 of 3 rows (100 %)")


def test_fields_in_structs_count_to_the_hundred_that_are_measured(tmp_path: Path) -> None:
    found = lake(tmp_path, {}, wide=110).rows_with_values(NAME, {999: frozenset({999})})
    assert found is not None
    assert found[999].unknown == 3


def test_a_manifest_that_is_gone_fails_no_plan(tmp_path: Path) -> None:
    catalog = lake(tmp_path, {})
    for file in tmp_path.rglob("*-m0.avro"):
        file.unlink()
    assert catalog.rows_with_values(NAME, FIELDS) is None


CREATE = """
    tables:
      - name: db.t
        columns:
          - {name: id, type: long}
          - {name: region, type: string}
          - {name: s, type: "struct<a: long>"}
"""
DROP = "{allow: [destructive], tables: [{name: db.t, drop_columns: [region]}]}"
RESTORE = "{tables: [{name: db.t, restore_columns: [region]}]}"
SOME = "values of region that are still in the files: 2 of 3 rows (66 %)"
HINT = "; `{name: region, refill: true}` restores the values that a tag or a snapshot still has"


@pytest.mark.parametrize(
    ("text", "redo", "note"),
    [
        (RESTORE, None, SOME + HINT),
        (RESTORE, "0002", SOME),
        (RESTORE.replace("region", "{name: region, refill: true}"), None, SOME),
    ],
)
def test_a_plan_says_what_of_a_column_comes_back(
    tmp_path: Path, text: str, redo: str | None, note: str
) -> None:
    catalog = lake(tmp_path, {})
    there = catalog.load([NAME])[NAME]
    assert there is not None
    around = PlanningContext("market", "local")
    files = [pending("0001", CREATE), pending("0002", DROP)]
    base = plan_migrations(files, EMPTY_STATE, {}, around).state
    plan = make_plan({"0003": text}, {NAME: there}, base=base, namespaces=[("db",)])
    told = with_old_partition_files(replace(plan, based_on={NAME: there}, redo=redo), catalog)
    assert [n for m in told.migrations for t in m.tables for n in t.notes] == [note]
