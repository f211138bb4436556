"""Properties that a table had when it was created or adopted are its base."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.commands.drift import drift
from icemigrate.commands.plan import plan
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Field, Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Primitive
from icemigrate.planning.plan import TablePlan
from icemigrate.project import open_project
from tests.support.embedded_project import Embedded

T = TableName(("db",), "t")
CODEC = "write.parquet.compression-codec"
CREATE = "tables: [{name: db.t, columns: [{name: id, type: long}]}]\n"
ADOPT = "tables: [{name: db.t, adopt: true, columns: [{name: id, type: long}]}]\n"


def sets(properties: str) -> str:
    return f"tables: [{{name: db.t, properties: {{{properties}}}}}]\n"


@pytest.fixture
def created(tmp_path: Path) -> Embedded:
    """A table that a migration created, with the codec that Iceberg's library sets on it."""
    shop = Embedded(tmp_path)
    shop.write("0001_create.yaml", CREATE)
    shop.apply()
    shop.edit("db.t", {CODEC: "zstd"})
    return shop


@pytest.fixture
def adopted(tmp_path: Path) -> Embedded:
    """A table of another tool that a migration adopted."""
    shop = Embedded(tmp_path)
    schema = Schema((Field(1, "id", Primitive("long")),))
    shop.engine.tables[T] = Table(T, schema, properties={CODEC: "gzip", "team": "1"}, last_column_id=1)
    shop.save()
    shop.write("0001_adopt.yaml", ADOPT)
    shop.apply()
    return shop


def planned(shop: Embedded) -> TablePlan:
    (migration,) = plan(open_project(shop.folder)).plan.migrations
    (table,) = migration.tables
    return table


def test_what_the_library_sets_on_a_new_table_is_its_base(created: Embedded) -> None:
    created.write("0002_codec.yaml", sets(f"{CODEC}: snappy"))
    table = planned(created)
    assert table.conflicts == ()
    assert [c.change.describe() for c in table.changes()] == [f"set {CODEC} (zstd → snappy)"]
    created.apply()
    assert created.engine.tables[T].properties[CODEC] == "snappy"


def test_what_an_adopted_table_had_is_its_base(adopted: Embedded) -> None:
    adopted.write("0002_set.yaml", sets(f"{CODEC}: snappy, team: '2'"))
    assert planned(adopted).conflicts == ()
    adopted.apply()
    assert {CODEC: "snappy", "team": "2"}.items() <= adopted.engine.tables[T].properties.items()


@pytest.mark.parametrize(("key", "theirs"), [(CODEC, "lz4"), ("team", "9")])
def test_what_another_client_set_since_is_a_conflict(adopted: Embedded, key: str, theirs: str) -> None:
    adopted.edit("db.t", {key: theirs})
    adopted.write("0002_set.yaml", sets(f"{CODEC}: snappy, team: '2'"))
    (conflict,) = planned(adopted).conflicts
    assert (conflict.fact, conflict.base, conflict.actual) == (
        f"db.t:properties.{key}",
        "(absent)",
        theirs,
    )


def test_a_property_that_nothing_sets_stays(adopted: Embedded) -> None:
    adopted.write("0002_set.yaml", sets("other: x"))
    adopted.apply()
    assert {CODEC: "gzip", "team": "1", "other": "x"}.items() <= adopted.engine.tables[T].properties.items()


@pytest.mark.parametrize("mode", ["range", "none", "hash"])
def test_drift_shows_the_distribution_that_a_sort_by_hand_sets(created: Embedded, mode: str) -> None:
    """`WRITE ORDERED BY` sets `range`, `WRITE UNORDERED` sets `none`."""
    created.engine.tables[T] = replace(created.engine.tables[T])
    created.edit("db.t", {"write.distribution-mode": mode})
    (table,) = drift(open_project(created.folder)).tables
    assert [(f.fact, f.actual) for f in table.facts] == [("properties.write.distribution-mode", mode)]
