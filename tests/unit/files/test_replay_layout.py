"""Identifier, partitioning and sort order: replaced as a whole."""

from __future__ import annotations

import pytest

from icemigrate.iceberg.partitioning import PartitionField, SortField, Transform
from tests.support.replayed_migrations import T, column, entry, field_ids, mistake, state, table

CREATE = """
columns:
  - {name: id, type: long, required: true}
  - {name: ts, type: timestamp}
  - {name: s, type: "struct<x: required int>", required: true}
identifier: [id]
partition_by: [day(ts) as at, "bucket(16, id)"]
sort_by: [ts desc]
"""
BEFORE = state(entry(CREATE))
TABLE = BEFORE.tables[T]
IDS = field_ids(TABLE)


def test_the_first_mention() -> None:
    t = table(entry(CREATE))
    ids = field_ids(t)
    assert t.schema.identifier_ids == {ids["id"]}
    assert [(f.name, f.id, f.source_ids) for f in t.spec.fields] == [
        ("at", -1, (ids["ts"],)),
        ("id_bucket_16", -2, (ids["id"],)),
    ]
    assert t.sort_order.fields == (SortField((ids["ts"],), direction="desc", null_order="nulls-last"),)


def test_omitted_means_unchanged() -> None:
    t = table(entry("columns: [{name: n, type: int}]"), BEFORE)
    assert (t.spec, t.sort_order, t.schema.identifier_ids) == (
        TABLE.spec,
        TABLE.sort_order,
        frozenset({IDS["id"]}),
    )


def test_an_empty_list_clears() -> None:
    t = table(entry("identifier: []\npartition_by: []\nsort_by: []"), BEFORE)
    assert (t.schema.identifier_ids, t.spec.live, t.sort_order.fields) == (frozenset(), (), ())


def test_a_term_that_is_there_keeps_its_id_and_unless_another_is_said_its_name() -> None:
    day, bucket = TABLE.spec.fields
    t = table(entry('partition_by: ["bucket(16, id)  as shard", day(ts), s.x]'), BEFORE)
    assert [f.id for f in t.spec.fields] == [bucket.id, day.id, -1]
    assert [f.name for f in t.spec.fields] == ["shard", "at", "s.x"]


def test_the_same_terms_change_nothing() -> None:
    t = table(entry('partition_by: [days(ts), "BUCKET(16, id)"]\nsort_by: [ts DESC NULLS LAST]'), BEFORE)
    assert (t.spec, t.sort_order) == (TABLE.spec, TABLE.sort_order)


def test_sources_are_named_by_their_new_names_and_may_be_new() -> None:
    t = table(entry("renames: {ts: at}\ncolumns: [{name: n, type: int}]\nsort_by: [at, n]"), BEFORE)
    assert [f.source_ids for f in t.sort_order.fields] == [(IDS["ts"],), (column(t, "n").id,)]


def test_a_nested_field_may_identify() -> None:
    t = table(entry("identifier: [id, s.x]"), BEFORE)
    assert t.schema.identifier_ids == {IDS["id"], IDS["s.x"]}


def test_a_new_partition_field_has_an_id_below_those_that_are_there() -> None:
    t = table(entry("partition_by: [month(ts)]"), BEFORE)
    assert t.spec.fields == (PartitionField((IDS["ts"],), Transform("month"), "ts_month", -1),)


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("partition_by: [day(tss)]", "unknown-column", "no column `tss`", "did you mean `ts`?"),
        ("partition_by: [dya(ts)]", "bad-term", "unknown transform `dya`", "did you mean `day`?"),
        ("partition_by: [day(ts), days(ts) as d]", "listed-twice", "is equivalent to", None),
        ("partition_by: [day(ts) as d, hour(ts) as d]", "name-in-use", "would have the name `d`", None),
        ("partition_by: [ts as id, id]", "name-in-use", "would have the name `id`", "`id as …`"),
        ("renames: {ts: at}\npartition_by: [day(ts)]", "unknown-column", "no column `ts`", "write `at`"),
        ("sort_by: [x]", "unknown-column", "no column `x`", "did you mean `s.x`?"),
        ("sort_by: [ts asc, ts desc]", "listed-twice", "is equivalent to", None),
        ("sort_by: [ts down]", "bad-term", "unexpected `down`", "`asc` or `desc`"),
        ("identifier: [idd]", "unknown-column", "no column `idd`", "did you mean `id`?"),
        ("identifier: ['i`d']", "bad-name", "backtick", None),
    ],
)
def test_mistakes(text: str, code: str, message: str, hint: str | None) -> None:
    found = mistake(entry(text), BEFORE)
    assert found.code == code, found
    assert message in found.message
    assert found.hint is None if hint is None else hint in (found.hint or "")
