"""A table that was not as declared before a migration goes back to what was there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import PartitionField, PartitionSpec, Transform
from icemigrate.iceberg.schema_edits import edit_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Primitive
from tests.support.memory_lake import Lake, columns, notes, problems

CREATE = """
    tables:
      - name: db.t
        columns: [{name: a, type: int}, {name: b, type: string}, {name: at, type: timestamp}]
        properties: {k: declared}
"""
WIDEN = "tables: [{name: db.t, columns: [{name: a, type: long}]}]"
ONE_FILE = Evidence(files=1, rows=1)


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", CREATE)
    return lake


def field(field_id: int, **changes: object) -> Callable[[Table], Table]:
    def change(table: Table) -> Table:
        schema = edit_by_id(table.schema, field_id, lambda f: replace(f, **changes))  # type: ignore[arg-type]
        return replace(table, schema=schema)

    return change


def new_column(name: str) -> Callable[[Table], Table]:
    def change(table: Table) -> Table:
        new = Field(table.last_column_id + 1, name, Primitive("string"))
        schema = replace(table.schema, fields=(*table.schema.fields, new))
        return replace(table, schema=schema, last_column_id=new.id)

    return change


def properties(**values: str) -> Callable[[Table], Table]:
    return lambda table: replace(table, properties={**table.properties, **values})


def declared(lake: Lake) -> Table:
    return lake.state.tables[TableName.parse("db.t")]


def test_an_overwritten_fact_goes_back_to_what_was_there(lake: Lake) -> None:
    lake.by_hand(properties(k="theirs"))
    lake.apply("0002", "tables: [{name: db.t, properties: {k: ours}}]", "db.t:properties.k")
    planned = lake.rollback("0002")
    assert lake.table().properties["k"] == "theirs"
    assert declared(lake).properties["k"] == "declared"
    assert notes(planned) == [
        "db.t:properties.k goes back to theirs, as it was before the migration, and not to declared"
    ]


def test_an_overwritten_partitioning_goes_back_as_a_whole(lake: Lake) -> None:
    theirs = PartitionField((3,), Transform("month"), "theirs", 1000)
    lake.by_hand(lambda t: replace(t, spec=PartitionSpec((theirs,), 1), last_partition_id=1000))
    lake.apply("0002", "tables: [{name: db.t, partition_by: [day(at)]}]", "db.t:partition_by")
    assert [f.name for f in lake.table().spec.live] == ["at_day"]
    lake.rollback("0002")
    assert [f.definition for f in lake.table().spec.live] == [theirs.definition]
    assert declared(lake).spec.live == ()


def test_a_column_that_somebody_had_added_stays(lake: Lake) -> None:
    lake.by_hand(new_column("venue"))
    lake.apply("0002", "tables: [{name: db.t, columns: [{name: venue, type: string, description: Where}]}]",
               "db.t:columns.venue.description")  # fmt: skip
    planned = lake.rollback("0002")
    assert columns(lake.table()) == ["a#1", "b#2", "at#3", "venue#4"]
    assert lake.table().schema.fields[3].doc is None
    assert columns(declared(lake)) == ["a#1", "b#2", "at#3"]
    assert notes(planned)[0].startswith("stays: db.t:columns.venue (name, type")
    lake.apply("0003", "tables: [{name: db.t, columns: [{name: venue, type: string}]}]")
    assert columns(lake.table())[3] == "venue#4"


def test_a_type_that_was_wide_already_stays_wide_whatever_was_written(lake: Lake) -> None:
    lake.by_hand(field(1, type=Primitive("long")))
    lake.apply("0002", WIDEN)
    planned = lake.undo("0002", evidence=ONE_FILE)
    assert problems(planned) == []
    assert notes(planned) == ["stays: db.t:columns.a.type; it was the same before the migration"]
    lake.rollback("0002", evidence=ONE_FILE)
    assert lake.table().schema.fields[0].type == Primitive("long")
    assert declared(lake).schema.fields[0].type == Primitive("int")


def test_a_dropped_column_comes_back_as_it_was_and_not_as_it_was_declared(lake: Lake) -> None:
    lake.by_hand(field(1, type=Primitive("long"), doc="Theirs"))
    metrics = "write.metadata.metrics.column.a"
    lake.by_hand(properties(**{metrics: "counts"}))
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [a]}]}")
    assert metrics not in lake.table().properties
    lake.rollback("0002")
    assert lake.table().schema.fields[0] == Field(1, "a", Primitive("long"), doc="Theirs")
    assert lake.table().properties[metrics] == "counts"


def test_a_column_that_was_dropped_already_stays_away(lake: Lake) -> None:
    lake.by_hand(lambda t: replace(t, schema=replace(t.schema, fields=t.schema.fields[:2])))
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop_columns: [at]}]}")
    lake.rollback("0002")
    assert columns(lake.table()) == ["a#1", "b#2"]
    assert columns(declared(lake)) == ["a#1", "b#2", "at#3"]


def test_columns_go_back_to_the_order_that_they_really_had(lake: Lake) -> None:
    lake.by_hand(lambda t: replace(t, schema=replace(t.schema, fields=t.schema.fields[::-1])))
    lake.apply("0002", "tables: [{name: db.t, columns: [{name: b, first: true}]}]")
    assert columns(lake.table()) == ["b#2", "at#3", "a#1"]
    lake.rollback("0002")
    assert columns(lake.table()) == ["at#3", "b#2", "a#1"]


def test_a_table_that_was_renamed_already_keeps_its_name(lake: Lake) -> None:
    lake.by_hand(lambda t: replace(t, name=TableName.parse("db.u")))
    lake.apply("0002", "tables: [{name: db.u, renamed_from: db.t}]")
    planned = lake.rollback("0002")
    assert lake.names() == {"db.u"}
    assert set(map(str, lake.state.tables)) == {"db.t"}
    assert notes(planned) == ["stays: the name db.u; it was called so before the migration"]


def test_a_table_that_was_gone_already_is_declared_again_and_no_more(lake: Lake) -> None:
    del lake.engine.tables[TableName.parse("db.t")]
    lake.apply("0002", "{allow: [destructive], tables: [{name: db.t, drop: true}]}")
    planned = lake.rollback("0002")
    assert lake.names() == set()
    assert set(map(str, lake.state.tables)) == {"db.t"}
    assert notes(planned) == ["was already gone before the migration"]


def test_an_identifier_of_a_column_that_no_file_declares_comes_back(lake: Lake) -> None:
    entry = "{name: db.t, columns: [{name: a, type: int, required: true}], identifier: [a]}"
    lake.apply("0002", f"{{allow: [incompatible], tables: [{entry}]}}")

    def identified(table: Table) -> Table:
        theirs = Field(table.last_column_id + 1, "theirs", Primitive("int"), required=True)
        schema = replace(
            table.schema, fields=(*table.schema.fields, theirs), identifier_ids=frozenset({theirs.id})
        )
        return replace(table, schema=schema, last_column_id=theirs.id)

    lake.by_hand(identified)
    lake.apply("0003", "tables: [{name: db.t, identifier: []}]", "db.t:identifier")
    assert lake.table().schema.identifier_ids == frozenset()
    lake.rollback("0003")
    assert lake.table().schema.identifier_ids == {4}
