"""Kinds of change of a whole table, each for itself."""

from __future__ import annotations

import pytest

from icemigrate.changes import CHANGE_KINDS, UNDO_CHANGE_KINDS, find_change_kind
from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.changes.change import (
    Change,
    ChangePhase,
    HazardKind,
    MetadataCommit,
    Reversibility,
    SqlStatement,
    Statement,
    TablePair,
)
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.rename_table import RenameTable
from icemigrate.changes.upgrade_format import UpgradeFormat
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import (
    DESC,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    Transform,
)
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.types import Field, Primitive, Struct, map_fields
from tests.support.small_tables import NAME, table

BLANK = Table(NAME, Schema())


def texts(statements: tuple[Statement, ...]) -> list[str]:
    return [s.text if isinstance(s, SqlStatement) else f"[{s.summary}]" for s in statements]


def declared(base: Table) -> Table:
    """The table as a declaration has it: every id is negative, in an order that says nothing."""
    ids = {f.id: -100 + (f.id * 7) % 50 for _, f in base.schema.walk()}
    root = map_fields(base.schema.root, lambda f: replace(f, id=ids[f.id]))
    assert isinstance(root, Struct)
    schema = Schema(root.fields, frozenset(ids[i] for i in base.schema.identifier_ids))
    spec = PartitionSpec(
        tuple(
            replace(f, source_ids=tuple(ids[i] for i in f.source_ids), id=-1 - n)
            for n, f in enumerate(base.spec.fields)
        )
    )
    order = SortOrder(
        tuple(replace(f, source_ids=tuple(ids[i] for i in f.source_ids)) for f in base.sort_order.fields)
    )
    return replace(base, schema=schema, spec=spec, sort_order=order, last_column_id=0, last_partition_id=0)


FULL = table(
    "id: required long 'it''s one', ts: timestamptz, s: required struct<k: required string, v: list<int>>",
    partition="day(ts)",
    sort="ts, s.k",
    identifier="id, s.k",
    properties={"comment": "All of it", "a": "1", "write.distribution-mode": "hash"},
)


def test_a_creation() -> None:
    change = CreateTable(NAME, declared(FULL))
    assert texts(change.statements(BLANK, "lake")) == [
        "CREATE TABLE lake.db.t (\n"
        "  id BIGINT NOT NULL COMMENT 'it\\'s one',\n"
        "  ts TIMESTAMP,\n"
        "  s STRUCT<k: STRING NOT NULL, v: ARRAY<INT>> NOT NULL\n"
        ")\n"
        "USING iceberg\n"
        "PARTITIONED BY (days(ts))\n"
        "COMMENT 'All of it'\n"
        "TBLPROPERTIES ('format-version' = '2', 'a' = '1', 'write.distribution-mode' = 'hash')",
        "ALTER TABLE lake.db.t WRITE LOCALLY ORDERED BY ts, s.k",
        "ALTER TABLE lake.db.t SET IDENTIFIER FIELDS id, s.k",
    ]
    made = change.apply(BLANK)
    assert made == replace(FULL, older_orders=(SortOrder(),))
    assert (change.describe(), change.reversal(BLANK).answer) == (
        "create table with 3 columns",
        Reversibility.YES,
    )
    assert (change.hazards(BLANK), list(change.problems(BLANK))) == ((), [])


def test_partitions_may_come_afterwards() -> None:
    change = CreateTable(NAME, declared(FULL), partition_afterwards=True)
    assert texts(change.statements(BLANK, "lake"))[1] == (
        "ALTER TABLE lake.db.t ADD PARTITION FIELD days(ts) AS ts_day"
    )
    assert change.apply(BLANK).spec.id == 1
    plain = CreateTable(NAME, declared(table("id: long")), partition_afterwards=True)
    assert len(plain.statements(BLANK, "lake")) == 1


def test_partition_names_that_the_creation_would_not_give() -> None:
    named = replace(FULL.spec.fields[0], name="on_day")
    bucket = PartitionField((1,), Transform("bucket", 4), "id_bucket", 1001)
    t = replace(table("id: long, ts: date"), spec=PartitionSpec((named, bucket)), location="s3://lake/t")
    change = CreateTable(NAME, declared(t))
    assert texts(change.statements(BLANK, "lake")) == [
        "CREATE TABLE lake.db.t (\n  id BIGINT,\n  ts DATE\n)\nUSING iceberg\nLOCATION 's3://lake/t'\n"
        "TBLPROPERTIES ('format-version' = '2')",
        "ALTER TABLE lake.db.t ADD PARTITION FIELD days(ts) AS on_day",
        "ALTER TABLE lake.db.t ADD PARTITION FIELD bucket(4, id) AS id_bucket",
    ]
    made = change.apply(BLANK)
    assert [(f.id, f.source_ids, f.name) for f in made.spec.fields] == [
        (1000, (2,), "on_day"),
        (1001, (1,), "id_bucket"),
    ]
    assert (made.spec.id, [s.id for s in made.older_specs], made.location) == (2, [0, 1], "s3://lake/t")


@pytest.mark.parametrize(
    "columns",
    [
        "id: long, t: timestamp_ns",
        "id: long, t: uuid",
        "id: long, t: list<required int>",
        "id: long, t: map<string, required int>",
        "id: long, t: struct<a: fixed[3]>",
    ],
)
def test_what_spark_has_no_words_for_is_one_commit(columns: str) -> None:
    t = table(columns, partition="bucket[4](id)", sort="id", format_version=3)
    change = CreateTable(NAME, declared(t))
    assert change.statements(BLANK, "lake") == (
        MetadataCommit("create the table; Spark SQL cannot express t"),
    )
    made = change.apply(BLANK)
    assert made == t
    assert (made.spec.id, made.sort_order.id, made.older_specs, made.older_orders) == (0, 1, (), ())


def test_a_default_is_one_commit() -> None:
    t = table("id: long", format_version=3)
    field = Field(2, "n", Primitive("int"), initial_default=1, write_default=1)
    t = replace(t, schema=replace(t.schema, fields=(*t.schema.fields, field)))
    assert isinstance(CreateTable(NAME, declared(t)).statements(BLANK, "lake")[0], MetadataCommit)


def test_references_of_a_new_table() -> None:
    t = declared(table("id: long"))
    branch = CreateTable(NAME, replace(t, refs={"dev": Ref("branch", -1)}))
    assert texts(branch.statements(BLANK, "lake"))[1:] == ["ALTER TABLE lake.db.t CREATE BRANCH dev"]
    assert list(branch.problems(BLANK)) == []


def test_an_adoption() -> None:
    change = AdoptTable(NAME)
    assert change.apply(FULL) == FULL
    assert change.statements(FULL, "lake") == ()
    assert change.reversal(FULL).answer is Reversibility.YES
    assert change.describe() == "adopt the existing table"


def test_a_rename() -> None:
    change = RenameTable(NAME, TableName.parse("other.`new t`"))
    assert texts(change.statements(FULL, "lake")) == ["ALTER TABLE lake.db.t RENAME TO other.`new t`"]
    assert change.apply(FULL) == replace(FULL, name=change.new)
    assert change.reversal(FULL).answer is Reversibility.YES
    assert change.describe() == "rename table to other.`new t`"


def test_a_drop() -> None:
    change = DropTable(NAME, TableName.parse("icemigrate_trash.db__t__0007"))
    assert texts(change.statements(FULL, "lake")) == [
        "CREATE NAMESPACE IF NOT EXISTS lake.icemigrate_trash",
        "ALTER TABLE lake.db.t RENAME TO icemigrate_trash.db__t__0007",
    ]
    assert change.apply(FULL).name == change.trash
    (hazard,) = change.hazards(FULL)
    assert (hazard.kind, hazard.scope) == (HazardKind.DESTRUCTIVE, "db.t")
    assert change.reversal(FULL).answer is Reversibility.WHILE
    assert "icemigrate_trash.db__t__0007" in change.describe()


def test_a_format_upgrade() -> None:
    (change,) = UpgradeFormat.detect(TablePair(FULL, replace(FULL, format_version=3)))
    assert texts(change.statements(FULL, "lake")) == [
        "ALTER TABLE lake.db.t SET TBLPROPERTIES ('format-version' = '3')"
    ]
    assert change.apply(FULL) == replace(FULL, format_version=3)
    assert [h.kind for h in change.hazards(FULL)] == [HazardKind.IRREVERSIBLE]
    assert change.reversal(FULL).answer is Reversibility.NO
    assert list(change.problems(FULL)) == []
    assert (change.subject, change.describe()) == (("format_version",), "format version 2 → 3")


@pytest.mark.parametrize(("to", "rule"), [(1, "format-downgrade"), (4, "unknown-format-version")])
def test_no_other_format(to: int, rule: str) -> None:
    (change,) = UpgradeFormat.detect(TablePair(FULL, replace(FULL, format_version=to)))
    (problem,) = change.problems(FULL)
    assert (problem.rule, problem.subject) == (rule, ("format_version",))


# All kinds


def test_kinds_have_names_and_stand_in_running_order() -> None:
    names = [kind.kind for kind in CHANGE_KINDS]
    assert len(set(names)) == len(names)
    assert [find_change_kind(name) for name in names] == list(CHANGE_KINDS)
    phases = [kind.phase for kind in CHANGE_KINDS]
    assert phases == sorted(phases)
    assert {*phases, *(kind.phase for kind in UNDO_CHANGE_KINDS)} == set(ChangePhase)
    with pytest.raises(KeyError):
        find_change_kind("invent_column")


@pytest.mark.parametrize("kind", CHANGE_KINDS)
def test_nothing_is_found_where_nothing_differs(kind: type[Change]) -> None:
    pairs = (TablePair(FULL, FULL), TablePair(None, FULL), TablePair(FULL, None), TablePair(None, None))
    assert [list(kind.detect(pair)) for pair in pairs] == [[], [], [], []]


def test_the_order_of_a_creation_goes_both_ways() -> None:
    t = replace(FULL, sort_order=SortOrder((SortField((2,), direction=DESC),)))
    order = CreateTable(NAME, declared(t)).statements(BLANK, "lake")[1]
    assert order == SqlStatement("ALTER TABLE lake.db.t WRITE LOCALLY ORDERED BY ts DESC NULLS FIRST")
