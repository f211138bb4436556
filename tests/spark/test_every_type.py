"""Every type of every format version, wherever a type can stand: made, added, dropped, widened, undone.

Tables that Spark cannot load (``time``, nanoseconds, some geometries and geographies) go the same way as all
others, through the commands that a user has.  Those that it can load have rows, which are read back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icemigrate.errors import Mistakes
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName, parse_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_promotions import promotion_since
from icemigrate.iceberg.type_text import parse_type
from icemigrate.iceberg.types import Field, since_version
from icemigrate.planning.undo.undo_inputs import UndoOptions
from icemigrate.spark_sql.identifiers import table_sql
from icemigrate.spark_sql.type_sql import spark_loads
from tests.support.random_rows import differing
from tests.support.undo_project import UndoWorld, facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = (
    *(
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "decimal(9, 2)",
        "date",
        "timestamp",
        "timestamptz",
        "string",
    ),
    *("uuid", "fixed[4]", "binary", "time", "timestamp_ns", "timestamptz_ns", "unknown", "variant"),
    *("geometry", "geography", "geometry(EPSG:3857)", "geometry(srid:4326)"),
    *("geography(OGC:CRS84, karney)", "geography(srid:4326, vincenty)"),
)
NOT_LOADED = ("time", "timestamp_ns", "timestamptz_ns", "geometry(srid", "geography(")
"""How the types begin that keep Spark from loading a table."""
WIDER = (
    *("long", "double", "decimal(12, 2)", "timestamp", "timestamp_ns"),
    *(t for t in TYPES if t not in ("unknown", "long", "double", "timestamp", "timestamp_ns")),
)
"""What something is widened to; from ``unknown`` all of them are reached."""
NO_PARTS = ("unknown",)
"""Types that stand in no list and in no map alone, since no file has a place for them there."""
NO_KEYS = ("unknown", "variant", "binary", "fixed", "float", "double", "geo")
"""How the types begin that are no keys of a map, or none that Python can hold."""
T = TableName(("db",), "t")
GEOSPATIAL = "spark.sql.geospatial.enabled"


@dataclass(frozen=True)
class Kind:
    """A format version, and whether Spark can load the table."""

    version: int
    is_loaded: bool

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(
            t
            for t in TYPES
            if since_version(parse_type(t)) <= self.version and t.startswith(NOT_LOADED) is not self.is_loaded
        )

    @property
    def promotions(self) -> tuple[tuple[str, str], ...]:
        """From and to; whatever the table then has, Spark could load it before."""
        return tuple(
            (old, new)
            for old in TYPES
            for new in WIDER
            if (since := promotion_since(parse_type(old), parse_type(new))) is not None
            and since <= self.version
            and new.startswith(NOT_LOADED) is not self.is_loaded
        )

    def __str__(self) -> str:
        return f"v{self.version}-{'loaded' if self.is_loaded else 'not-loaded'}"


KINDS = [Kind(version, is_loaded) for version in (1, 2, 3) for is_loaded in (True, False)]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


@pytest.fixture
def world(tmp_path: Path, spark: SparkSession) -> UndoWorld:
    return UndoWorld(tmp_path, spark)


def columns(types: Mapping[str, str]) -> str:
    return "".join(f'      - {{name: {name}, type: "{t}"}}\n' for name, t in types.items())


def places(types: tuple[str, ...], prefix: str) -> Iterator[tuple[str, str]]:
    """New columns: each type for itself, in a struct, and in lists and maps where a file can have it."""
    for n, t in enumerate(types):
        yield f"{prefix}{n}", t
        yield f"{prefix}{n}_s", f"struct<k: int, x: {t}>"
        if t not in NO_PARTS:
            yield f"{prefix}{n}_l", f"list<{t}>"
            yield f"{prefix}{n}_m", f"map<string, struct<k: int, x: {t}>>"
        if not t.startswith(NO_KEYS):
            yield f"{prefix}{n}_k", f"map<{t}, int>"


def migrate(world: UndoWorld, version: str, entry: str, allow: str = "") -> None:
    head = f"allow: [{allow}]\n" if allow else ""
    world.file(version, f"{head}tables:\n  - name: db.t\n{entry}")
    world.project.apply(spark=world.spark)


def types_of(schema: Schema) -> dict[str, str]:
    """The columns and fields by dotted path, with the types that have no fields below them."""
    return {
        ".".join(path): primitive_text(f.type)
        for path, f in schema.walk()
        if type(f.type).__name__ not in ("Struct", "List", "Map")
    }


@each_kind
def test_it_is_made_added_dropped_and_brought_back_everywhere(world: UndoWorld, kind: Kind) -> None:
    made, added = dict(places(kind.types, "a")), dict(places(kind.types, "b"))
    into = {
        f"{place}.{name}": t
        for n, t in enumerate(kind.types)
        for place in ("s", "l.element", "m.value")
        for name in (f"n{n}",)
    }
    nests = {"s": "struct<k: int>", "l": "list<struct<k: int>>", "m": "map<string, struct<k: int>>"}
    migrate(
        world,
        "0001",
        f"    format_version: {kind.version}\n    columns:\n{columns({'id': 'int', **nests, **made})}",
    )
    migrate(world, "0002", f"    columns:\n{columns({**added, **into})}")
    before = world.actual(T)
    found = types_of(before.schema)
    assert {p: found[p] for p in into} == into
    plain = {n: t for n, t in {**made, **added}.items() if "<" not in t}
    assert {n: found[n] for n in plain} == plain
    assert spark_loads(before.schema) is kind.is_loaded
    if kind.is_loaded:
        # Spark 4.1 writes no geometry without it; all else that is done to such a table needs it not.
        world.spark.conf.set(GEOSPATIAL, "true")
        world.write(T, 1, 2)
        world.spark.conf.unset(GEOSPATIAL)
    rows = world.rows(T) if kind.is_loaded else {}

    gone = [*made, *(p for p in into if not p.startswith("m"))]
    migrate(world, "0003", f"    drop_columns: [{', '.join(gone)}]\n", "destructive")
    less = world.actual(T)
    assert [p for p in gone if less.schema.find(parse_path(p)) is not None] == []
    world.project.rollback(spark=world.spark)
    assert facts(world.actual(T)) == facts(before)
    assert [f.id for f in world.actual(T).schema.fields] == [f.id for f in before.schema.fields]
    again = world.rows(T) if kind.is_loaded else {}
    for number, row in rows.items():
        assert list(differing(row, again[number], before.schema)) == []


@pytest.mark.parametrize("kind", [k for k in KINDS if k.promotions], ids=str)
def test_it_is_widened_everywhere_and_back(world: UndoWorld, kind: Kind) -> None:
    narrow: dict[str, str] = {}
    wide: dict[str, str] = {}
    for n, (old, new) in enumerate(kind.promotions):
        # A map's key never changes.
        here = {name: t for name, t in places((old,), f"c{n}_") if not name.endswith("_k")}
        narrow |= here
        wide |= {name: t for name, t in places((new,), f"c{n}_") if name in here}
    first = f"    format_version: {kind.version}\n    columns:\n"
    migrate(world, "0001", first + columns({"id": "int", **narrow}))
    before = world.actual(T)
    migrate(world, "0002", f"    columns:\n{columns(wide)}")
    after = world.actual(T)
    assert types_of(after.schema) == {"id": "int", **types_of(schema_of(wide))}
    assert [f.id for _, f in after.schema.walk()] == [f.id for _, f in before.schema.walk()]
    world.project.rollback(spark=world.spark)
    assert facts(world.actual(T)) == facts(before)


def test_a_type_that_spark_cannot_load_comes_and_goes_beside_other_changes(world: UndoWorld) -> None:
    """Statements of one migration before, between and behind the ones that only a commit can say."""
    migrate(
        world,
        "0001",
        "    format_version: 3\n    columns:\n" + columns({"id": "int", "n": "int", "s": "string"}),
    )
    before = world.actual(T)
    migrate(
        world,
        "0002",
        """    renames: {s: title}
    columns:
      - {name: at, type: time, first: true}
      - {name: n, type: long, description: counted}
      - {name: of, type: "struct<g: geometry, v: variant, u: uuid>", after: id}
      - {name: more, type: int, default: 7}
    sort_by: [at]
    partition_by: ["bucket(4, at)"]
    properties: {k: v}
""",
    )
    after = world.actual(T)
    assert [f.name for f in after.schema.fields] == ["at", "id", "of", "n", "title", "more"]
    migrate(
        world, "0003", "    sort_by: []\n    partition_by: []\n    drop_columns: [at, of]\n", "destructive"
    )
    assert spark_loads(world.actual(T).schema)
    world.project.rollback(spark=world.spark)
    assert facts(world.actual(T)) == facts(after)
    world.project.rollback(spark=world.spark)
    assert facts(world.actual(T)) == facts(before)


def test_a_date_with_rows_becomes_no_timestamp(world: UndoWorld) -> None:
    migrate(world, "0001", "    format_version: 3\n    columns:\n" + columns({"id": "int", "d": "date"}))
    world.write(T, 1, 3)
    with pytest.raises(Mistakes) as refused:
        migrate(world, "0002", "    columns: [{name: d, type: timestamp}]\n")
    assert [d.code for d in refused.value.diagnostics] == ["promotion-not-read"]
    # Why: whoever goes past the plan finds other values.
    before = world.actual(T)
    world.engine.commit(T, lambda t: widened(t, "d", "timestamp"))
    at = table_sql(world.catalog, T)
    rows = world.spark.sql(f"SELECT max(d) AS d FROM {at}").collect()
    assert rows[0]["d"].year == 1970
    with pytest.raises(Exception, match="ClassCastException"):
        world.rows(T)
    world.engine.commit(T, lambda t: replace(t, schema=before.schema))
    assert world.rows(T)
    # The way on that the refusal names.
    (told,) = refused.value.diagnostics
    assert told.hint is not None
    retype = told.hint.split("`")[1]
    days = world.spark.sql(f"SELECT d FROM {at} ORDER BY id").collect()
    migrate(world, "0002", f"    {retype}\n", "destructive")
    times = world.spark.sql(f"SELECT CAST(d AS date) AS d, d AS t FROM {at} ORDER BY id").collect()
    assert [row["d"] for row in times] == [row["d"] for row in days] != []
    assert {row["t"].time() for row in times if row["t"] is not None} == {time(0)}


def test_a_date_becomes_a_timestamp_and_is_one_again_beside_its_partitions(world: UndoWorld) -> None:
    first = "    format_version: 3\n    columns:\n" + columns({"id": "int", "d": "date"})
    migrate(world, "0001", f"{first}    partition_by: [month(d)]\n    sort_by: [day(d)]\n")
    before = world.actual(T)
    promoted = "    columns: [{name: d, type: timestamp}]\n"
    migrate(world, "0002", f"{promoted}    partition_by: []\n    sort_by: []\n")
    migrate(world, "0003", "    partition_by: [month(d)]\n    sort_by: [day(d)]\n")
    assert world.actual(T).spec.live[0].definition == before.spec.live[0].definition
    world.project.rollback(spark=world.spark, to="0001")
    assert facts(world.actual(T)) == facts(before)
    # Nobody could load a table with a date that an earlier spec takes the hour of.
    migrate(world, "0004", f"{promoted}    partition_by: [hour(d)]\n    sort_by: []\n")
    with pytest.raises(Mistakes) as refused:
        world.project.rollback(spark=world.spark)
    assert [d.code for d in refused.value.diagnostics] == ["narrow-type"]
    world.project.rollback(spark=world.spark, options=UndoOptions(partial=True))
    assert types_of(world.actual(T).schema)["d"] == "timestamp"
    assert [str(f.transform) for f in world.actual(T).spec.live] == ["month"]


def widened(table: Table, name: str, type_: str) -> Table:
    fields = tuple(replace(f, type=parse_type(type_)) if f.name == name else f for f in table.schema.fields)
    return replace(table, schema=replace(table.schema, fields=fields))


def schema_of(types: Mapping[str, str]) -> Schema:
    fields = [Field(0, name, parse_type(t)) for name, t in types.items()]
    return Schema(tuple(fields))
