"""What the kinds of change of columns say in Spark SQL, on real tables, against what they foretell.

Every comparison is of the schema read back from the table's metadata with the fold of the changes: field
ids, identifier fields, the last id and the properties that name a column included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from icemigrate.changes.alter_column import single_field_statements
from icemigrate.changes.change import MetadataCommit, SqlStatement
from icemigrate.errors import EngineError
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_edits import edit_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import find_difference, remaining_differences
from icemigrate.spark.publish import apply_step
from icemigrate.spark.spark_engine import SparkEngine
from icemigrate.spark_sql.identifiers import quote
from icemigrate.spark_sql.literals import string_sql
from icemigrate.spark_sql.type_sql import spark_loads
from tests.support.column_edits import COLUMN_KINDS, METRICS, pairs
from tests.support.small_tables import table, with_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.conftest import Warehouse

BLOOM = "write.parquet.bloom-filter-enabled.column."
STATS = "write.parquet.stats-enabled.column."
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])
_numbers = count(1)


@dataclass(frozen=True)
class Lake:
    """Runs changes in a namespace of its own."""

    engine: SparkEngine
    catalog: str
    namespace: str

    def make(self, declared: Table) -> Table:
        """The table, really there."""
        name = TableName((self.namespace,), f"c{next(_numbers)}")
        made = self.engine.create(replace(declared, name=name))
        assert made.schema.fields == declared.schema.fields
        assert made.schema.identifier_ids == declared.schema.identifier_ids
        return made

    def go(self, before: Table, target: Table) -> tuple[Table, list[str]]:
        """Lead a table to another state; how it then is, and the statements, the table's name taken out."""
        outcome = find_difference(before, target, COLUMN_KINDS)
        assert set(remaining_differences(outcome, COLUMN_KINDS)) <= {"properties"}
        said = []
        for step in as_steps(outcome.found, self.catalog):
            for statement in step.statements:
                if isinstance(statement, SqlStatement):
                    self.engine.sql(statement.text)
                    said.append(statement.text.split(before.name.name, 1)[1].strip())
                else:
                    assert isinstance(statement, MetadataCommit)

                    def fold(now: Table, changes: tuple = step.changes) -> Table:  # type: ignore[type-arg]
                        for planned in changes:
                            now = planned.change.apply(now)
                        return now

                    self.engine.commit(before.name, fold)
                    said.append(f"[{statement.summary}]")
        there = self.engine.table(before.name)
        assert there is not None
        assert there.schema.fields == outcome.after.schema.fields
        assert there.schema.identifier_ids == outcome.after.schema.identifier_ids
        assert there.last_column_id == outcome.after.last_column_id
        assert dict(there.properties) == dict(outcome.after.properties)
        return there, said


@pytest.fixture(scope="module")
def lake(spark: SparkSession, warehouse: Warehouse) -> Lake:
    spark.sql(f"CREATE NAMESPACE {warehouse.catalog}.columns")
    return Lake(SparkEngine(spark, warehouse.catalog), warehouse.catalog, "columns")


def described(base: Table, docs: Mapping[tuple[str, ...], str | None]) -> Table:
    """The table with descriptions."""
    schema = base.schema
    for path, doc in docs.items():

        def describe(f: Field, doc: str | None = doc) -> Field:
            return replace(f, doc=doc)

        field = schema.find(path)
        assert field is not None
        schema = edit_by_id(schema, field.id, describe)
    return replace(base, schema=schema)


@VERSIONS
def test_columns_come(lake: Lake, version: int) -> None:
    before = lake.make(
        table(
            "a: int, s: struct<x: int>, l: list<struct<x: int>>, m: map<string, struct<x: int>>",
            format_version=version,
        )
    )
    target = with_columns(
        before,
        "n: decimal(9,2), a: int, `zip.code`: string 'it''s \\ \"x\" ${spark.master}', ts: timestamp,"
        " tz: timestamptz, s: struct<`1st`: int, x: int, n: struct<u: int,"
        " v: list<struct<w: map<string, int>>>>>,"
        " l: list<struct<`d.d`: int, x: int>>, m: map<string, struct<x: int, y: binary>>, z: boolean,"
        " `a``b`: date",
    )
    _, said = lake.go(before, target)
    (statement,) = said
    assert statement.startswith("ADD COLUMNS (n DECIMAL(9, 2) FIRST, `zip.code` STRING COMMENT 'it\\'s ")
    assert statement.endswith(" m.value.y BINARY)")


@VERSIONS
def test_columns_go(lake: Lake, version: int) -> None:
    before = lake.make(
        table(
            "a: int, `b.c`: int, s: struct<x: int, y: struct<z: int>>, t: struct<p: int>,"
            " l: list<struct<x: int, y: int>>, m: map<string, struct<x: int, y: int>>",
            properties={
                METRICS + "b.c": "full",
                METRICS + "t": "full",
                METRICS + "t.p": "full",
                BLOOM + "l.element.y": "true",
                STATS + "s.y": "false",
                STATS + "s.x": "false",
            },
            format_version=version,
        )
    )
    target = with_columns(
        before, "a: int, s: struct<x: int>, l: list<struct<x: int>>, m: map<string, struct<y: int>>"
    )
    after, said = lake.go(before, replace(target, properties=before.properties))
    assert said == ["DROP COLUMNS (`b.c`, s.y, t, l.element.y, m.value.x)"]
    assert after.properties.get(METRICS + "t.p") == "full"
    assert STATS + "s.y" not in after.properties
    _, said = lake.go(after, with_columns(after, "a: int, s: struct<x: int>, l: list<struct<x: int>>"))
    assert said == ["DROP COLUMN m"]


@VERSIONS
def test_names_change(lake: Lake, version: int) -> None:
    before = lake.make(
        table(
            "a: int, b: int, c: int, note: int, x: int, y: int,"
            " s: struct<p: int, q: int, `r.r`: int>, l: list<struct<u: int, v: int>>, m: map<string,"
            " struct<w: int>>",
            properties={
                METRICS + "a": "none",
                METRICS + "b": "full",
                BLOOM + "note": "true",
                METRICS + "s.p": "full",
                METRICS + "s": "none",
                STATS + "l.element.u": "false",
                STATS + "l.element.v": "true",
            },
            format_version=version,
        )
    )
    target = with_columns(
        before,
        "b: int, c: int, a: int, Note: int, y: int, `z z`: int,"
        " S2: struct<q: int, p: int, `R.R`: int>, l: list<struct<v: int, u: int>>, m: map<string,"
        " struct<W: int>>",
        {
            "b": "a",
            "c": "b",
            "a": "c",
            "Note": "note",
            "y": "x",
            "`z z`": "y",
            "S2": "s",
            "S2.q": "s.p",
            "S2.p": "s.q",
            "S2.`R.R`": "s.`r.r`",
            "l.element.v": "l.element.u",
            "l.element.u": "l.element.v",
            "m.value.W": "m.value.w",
        },
    )
    after, said = lake.go(before, target)
    assert all(s.startswith("RENAME COLUMN ") for s in said)
    assert len(said) == 19
    columns = {k: v for k, v in after.properties.items() if ".column." in k}
    assert columns == {
        METRICS + "b": "none",
        METRICS + "c": "full",
        BLOOM + "Note": "true",
        METRICS + "s.q": "full",
        METRICS + "S2": "none",
        STATS + "l.element.v": "false",
        STATS + "l.element.u": "true",
    }


def test_values_follow_their_field_through_a_swap(lake: Lake, spark: SparkSession) -> None:
    before = lake.make(table("bid: int, ask: int, gone: int"))
    full = f"{lake.catalog}.{before.name}"
    spark.sql(f"INSERT INTO {full} VALUES (1, 2, 3)")
    target = with_columns(before, "ask: int, bid: int", {"ask": "bid", "bid": "ask"})
    lake.go(before, target)
    (row,) = spark.sql(f"SELECT * FROM {full}").collect()
    assert row.asDict() == {"ask": 1, "bid": 2}


@VERSIONS
def test_identifier_fields_are_renamed(lake: Lake, version: int) -> None:
    before = lake.make(
        table(
            "id: required long, other: int, place: required struct<lat: required long,"
            " in: required struct<x: required int>>",
            identifier="id, place.lat, place.in.x",
            format_version=version,
        )
    )
    inner = with_columns(
        before,
        "key: required long, other: int, place: required struct<Lat: required long,"
        " in: required struct<y: required int>>",
        {"key": "id", "place.Lat": "place.lat", "place.in.y": "place.in.x"},
    )
    after, said = lake.go(before, inner)
    assert said[0] == "DROP IDENTIFIER FIELDS place.lat, place.`in`.x"
    assert said[-1] == "SET IDENTIFIER FIELDS key, place.Lat, place.`in`.y"
    outer = with_columns(
        after,
        "KEY: required long, other: int, spot: required struct<Lat: required long,"
        " in: required struct<y: required int>>",
        {"KEY": "key", "spot": "place"},
    )
    lake.go(after, outer)


@VERSIONS
def test_places_change(lake: Lake, version: int) -> None:
    before = lake.make(
        table(
            "a: int, b: int, `c c`: int, d: int, s: struct<x: int, y: int, z: int>, l: list<struct<x: int,"
            " y: int>>,"
            " m: map<string, struct<x: int, y: int>>",
            format_version=version,
        )
    )
    target = with_columns(
        before,
        "`c c`: int, b: int, d: int, n: int, a: int, s: struct<z: int, x: int, y: int>,"
        " l: list<struct<y: int, x: int>>,"
        " m: map<string, struct<y: int, k: int, x: int>>",
    )
    lake.go(before, target)


@VERSIONS
def test_types_widen(lake: Lake, version: int) -> None:
    before = lake.make(
        table(
            "i: int, f: float, d: decimal(9,2), s: struct<x: float>, l: list<int>, m: map<int, decimal(5,0)>"
        )
    )
    target = with_columns(
        before,
        "i: long, f: double, d: decimal(38,2), s: struct<x: double>, l: list<long>, m: map<int,"
        " decimal(6,0)>",
    )
    _, said = lake.go(before, target)
    paths = ("i", "f", "d", "s.x", "l.element", "m.value")
    types = ("BIGINT", "DOUBLE", "DECIMAL(38, 2)", "DOUBLE", "BIGINT", "DECIMAL(6, 0)")
    each = ",\n  ".join(f"{path} TYPE {type_}" for path, type_ in zip(paths, types, strict=True))
    assert said == [f"ALTER COLUMN\n  {each}"]


@VERSIONS
def test_nulls_are_let_in(lake: Lake, version: int) -> None:
    before = lake.make(
        table(
            "a: required int, s: required struct<x: required int>, l: list<required struct<x: required int>>,"
            " m: map<string, required int>",
            format_version=version,
        )
    )
    target = with_columns(before, "a: int, s: struct<x: int>, l: list<struct<x: int>>, m: map<string, int>")
    _, said = lake.go(before, target)
    # No field stands beside one that it holds.
    assert said == [
        "ALTER COLUMN a DROP NOT NULL, s DROP NOT NULL",
        "ALTER COLUMN s.x DROP NOT NULL, l.element DROP NOT NULL",
        "ALTER COLUMN l.element.x DROP NOT NULL, m.value DROP NOT NULL",
    ]


def test_alterations_of_every_kind_are_one_statement_and_one_commit(lake: Lake, warehouse: Warehouse) -> None:
    before = lake.make(table("a: required int, b: int, c: int, s: struct<x: int, y: int>, d: int"))
    target = with_columns(before, "c: int, a: int, b: long, s: struct<y: int, x: int>, d: int")
    target = described(target, {("d",): "Said, with a comma"})
    folder = warehouse.path / "columns" / before.name.name / "metadata"
    made = len(list(folder.glob("*.metadata.json")))
    _, said = lake.go(before, target)
    assert said == [
        "ALTER COLUMN\n  b TYPE BIGINT,\n  a DROP NOT NULL,\n  d COMMENT 'Said, with a comma',\n"
        "  c FIRST,\n  s.x AFTER y"
    ]
    assert len(list(folder.glob("*.metadata.json"))) == made + 1


def test_a_spark_that_takes_one_column_is_told_one_after_another(lake: Lake) -> None:
    before = lake.make(table("a: required int, b: int, c: int"))
    target = with_columns(before, "c: int, a: long, b: long")
    (first, second) = as_steps(find_difference(before, target, COLUMN_KINDS).found, lake.catalog)
    now = before
    for step in (first, second):
        changes = [planned.change for planned in step.changes]
        for statement in single_field_statements(changes, now, lake.catalog):
            assert isinstance(statement, SqlStatement)
            assert "," not in statement.text
            lake.engine.sql(statement.text)
        now = apply_step(step, now)
    there = lake.engine.table(before.name)
    assert there is not None
    assert there.schema.fields == now.schema.fields == target.schema.fields


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        'it\'s "so"',
        "a\\b \\n",
        "line\ntwo\ttab\r",
        "50% _x_ \\%",
        "${spark.master} $5",
        "é🧊",
        "",
        "--;/*x*/",
        "a\0b\x07",
    ],
)
def test_every_description_arrives(lake: Lake, text: str) -> None:
    before = lake.make(table("a: int 'old', s: struct<x: int>"))
    lake.go(before, described(before, {("a",): text, ("s", "x"): text}))


@VERSIONS
def test_what_spark_cannot_say_is_committed(lake: Lake, version: int) -> None:
    whole = table(
        "id: int 'said', gone: struct<a: int, b: string>, s: struct<x: int, y: int>", format_version=version
    )
    before = lake.make(whole)
    less, said = lake.go(before, with_columns(before, "id: int 'said', s: struct<x: int>"))
    assert len(said) == 1
    target = described(
        with_columns(
            less,
            "id: required int, g: uuid, n: int, s: struct<x: int, u: required fixed[4]>,"
            " l: list<required int>",
        ),
        {("id",): None},
    )
    gone = before.schema.fields[1]
    fields = target.schema.fields
    target = replace(target, schema=replace(target.schema, fields=(fields[0], gone, *fields[1:])))
    after, said = lake.go(less, target)
    assert after.schema.fields[1] == gone
    assert after.last_column_id > before.last_column_id
    assert said == [
        "[make id required; remove the description of id;"
        " restore gone struct<a: int, b: string>, under its own field id 2, after id;"
        " add g uuid, after gone]",
        "ADD COLUMNS (n INT AFTER g)",
        "[add l list<required int>; add s.u fixed[4], required]",
    ]


@pytest.mark.parametrize("type_", ["time", "timestamp_ns", "timestamptz_ns"])
def test_a_table_that_spark_cannot_load_takes_metadata_commits_alone(lake: Lake, type_: str) -> None:
    before = lake.make(table(f"id: int, t: {type_}", format_version=3))
    assert not spark_loads(before.schema)
    with pytest.raises(EngineError):
        lake.engine.sql(f"ALTER TABLE {lake.catalog}.{before.name} ADD COLUMNS (n INT)")
    after, said = lake.go(before, with_columns(before, f"n: int, id: long, t: {type_}"))
    assert [s[0] for s in said] == ["["]
    after, said = lake.go(after, with_columns(after, "n: int, id: long"))
    assert [s[0] for s in said] == ["["]
    assert spark_loads(after.schema)
    _, said = lake.go(after, with_columns(after, "id: long, n: int"))
    assert [s.split(" ")[0] for s in said] == ["ALTER"]


@pytest.mark.parametrize("type_", ["uuid", "fixed[4]", "unknown", "variant", "binary"])
def test_other_types_are_loaded(lake: Lake, type_: str) -> None:
    before = lake.make(table(f"id: int, l: list<struct<t: {type_}>>", format_version=3))
    assert spark_loads(before.schema)
    _, said = lake.go(before, with_columns(before, f"n: int, id: long, l: list<struct<t: {type_}>>"))
    assert not any(s.startswith("[") for s in said)


def test_promotions_of_version_3(lake: Lake) -> None:
    before = lake.make(table("d: date, u: unknown, i: int, l: list<date>", format_version=3))
    target = with_columns(before, "d: timestamp, u: string, i: long, l: list<timestamp_ns>")
    _, said = lake.go(before, target)
    assert said == [
        "[widen d date → timestamp; widen u unknown → string]",
        "ALTER COLUMN i TYPE BIGINT",
        "[widen l.element date → timestamp_ns]",
    ]


def test_defaults_of_version_3(lake: Lake) -> None:
    before = lake.make(table("id: int", format_version=3))
    target = with_columns(before, "id: int, qty: required int, name: string, t: uuid")
    fields = (
        target.schema.fields[0],
        replace(target.schema.fields[1], initial_default=7, write_default=7),
        replace(target.schema.fields[2], initial_default="x", write_default="x"),
        target.schema.fields[3],
    )
    after, said = lake.go(before, replace(target, schema=replace(target.schema, fields=fields)))
    assert len(said) == 1
    first, qty, *others = after.schema.fields
    changed = (first, replace(qty, write_default=8), *others)
    lake.go(after, replace(after, schema=replace(after.schema, fields=changed)))


def test_the_last_column_may_be_made_anew(lake: Lake) -> None:
    before = lake.make(table("a: int, s: struct<x: int>"))
    fields = (
        replace(before.schema.fields[0], id=-1),
        replace(before.schema.fields[1], id=-2, type=table("x: string").schema.root),
    )
    target = replace(before, schema=replace(before.schema, fields=fields))
    new = with_columns(table("z: int"), "a: string, s: struct<x: string>").schema
    after, said = lake.go(before, replace(target, schema=replace(target.schema, fields=new.fields)))
    assert [s.split(" ")[0] for s in said] == ["DROP", "ADD"]
    assert [f.id for f in after.schema.fields] == [4, 5]


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(pair=pairs())
def test_random_tables_and_edits(lake: Lake, pair: tuple[Table, Table]) -> None:
    before, target = pair
    made = lake.make(before)
    lake.go(made, replace(made, schema=target.schema))


@pytest.mark.parametrize("reserved", ["false", "true"])
def test_no_word_of_the_grammar_is_taken_for_something_else(spark: SparkSession, reserved: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enforceReservedKeywords", reserved)
    parser = session._jsparkSession.sessionState().sqlParser()
    words = [row.keyword for row in session.sql("SELECT keyword FROM sql_keywords()").collect()]
    assert len(words) > 300
    for name in map(quote, [*words, "RETENTION", "1st", "x-y", "größe", "a`b", "a.b"]):
        for statement in (
            f"ALTER TABLE lake.{name}.{name} ADD COLUMNS ({name} STRUCT<{name}: INT> FIRST)",
            f"ALTER TABLE t ADD COLUMNS (s.{name} INT AFTER {name})",
            f"ALTER TABLE {name}.db.t DROP COLUMNS ({name}, s.{name})",
            f"ALTER TABLE t RENAME COLUMN {name}.{name} TO {name}",
            f"ALTER TABLE t ALTER COLUMN {name} AFTER {name}",
            f"ALTER TABLE t ALTER COLUMN {name} COMMENT {string_sql('x')}",
            f"ALTER TABLE t ADD PARTITION FIELD bucket(16, {name}.{name}) AS {name}",
            f"ALTER TABLE t WRITE ORDERED BY {name} DESC, {name}.{name}",
            f"ALTER TABLE t SET IDENTIFIER FIELDS {name}, {name}.{name}",
        ):
            parser.parsePlan(statement)


@pytest.mark.parametrize(
    "action",
    [
        "ADD COLUMNS (m.key.n INT)",
        "DROP COLUMN m.key.a",
        "RENAME COLUMN m.key.a TO z",
        "ALTER COLUMN m.key.a TYPE BIGINT",
        "ALTER COLUMN m.key.a COMMENT 'x'",
        "ALTER COLUMN m.key.r DROP NOT NULL",
    ],
)
def test_iceberg_changes_nothing_in_the_key_of_a_map(lake: Lake, action: str) -> None:
    """What the rule ``map-key`` refuses, Iceberg refuses as well."""
    before = lake.make(table("m: map<struct<a: int, b: int, r: required int>, int>"))
    with pytest.raises(EngineError):
        lake.engine.sql(f"ALTER TABLE {lake.catalog}.{before.name} {action}")
    assert lake.engine.table(before.name) == before


def test_a_move_in_the_key_of_a_map_changes_nothing(lake: Lake) -> None:
    """Iceberg lets it pass and leaves the order as it was, so that the rule ``map-key`` must refuse it."""
    before = lake.make(table("m: map<struct<a: int, b: int>, int>"))
    lake.engine.sql(f"ALTER TABLE {lake.catalog}.{before.name} ALTER COLUMN m.key.b FIRST")
    assert lake.engine.table(before.name) == before
