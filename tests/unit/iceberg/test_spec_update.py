"""What Iceberg makes of a spec; the numbers are those that its own tests and Spark give."""

from __future__ import annotations

from icemigrate.frozen import replace
from icemigrate.iceberg.partition_evolution import (
    add_partition_field,
    drop_partition_field,
    rename_partition_field,
    replace_partition_field,
)
from icemigrate.iceberg.partitioning import Transform
from icemigrate.iceberg.table import Table
from tests.support.small_tables import table

COLUMNS = "id: required long, ts: timestamptz, kind: string"
ID, TS, KIND = 1, 2, 3
DAY, MONTH, IDENTITY = Transform("day"), Transform("month"), Transform("identity")


def fields(t: Table) -> list[tuple[int, str, str]]:
    return [(f.id, str(f.transform), f.name) for f in t.spec.fields]


def partitioned(*names: tuple[int, Transform, str], version: int = 2) -> Table:
    t = table(COLUMNS, format_version=version)
    for source, transform, name in names:
        t = add_partition_field(t, source, transform, name)
    return replace(t, spec=replace(t.spec, id=0), older_specs=())


def test_a_dropped_field_goes_and_the_others_keep_their_ids() -> None:
    t = partitioned((KIND, IDENTITY, "kind"), (TS, DAY, "ts_day"), (ID, Transform("bucket", 16), "shard"))
    t = drop_partition_field(t, "kind")
    assert fields(t) == [(1001, "day", "ts_day"), (1002, "bucket[16]", "shard")]
    assert (t.spec.id, t.last_partition_id, [s.id for s in t.older_specs]) == (1, 1002, [0])


def test_an_equal_spec_is_taken_again() -> None:
    t = add_partition_field(table(COLUMNS), KIND, IDENTITY, "kind")
    assert t.spec.id == 1
    t = drop_partition_field(t, "kind")
    assert (t.spec.id, fields(t), [s.id for s in t.older_specs]) == (0, [], [1])


def test_bucket_counts_there_and_back() -> None:
    t = partitioned((ID, Transform("bucket", 16), "id_bucket"))
    t = replace_partition_field(t, "id_bucket", ID, Transform("bucket", 32), "id_bucket_32")
    assert (t.spec.id, fields(t)) == (1, [(1001, "bucket[32]", "id_bucket_32")])
    t = replace_partition_field(t, "id_bucket_32", ID, Transform("bucket", 16), "id_bucket")
    assert (t.spec.id, fields(t), t.last_partition_id) == (0, [(1000, "bucket[16]", "id_bucket")], 1001)


def test_an_id_comes_back_only_under_the_same_name() -> None:
    t = drop_partition_field(partitioned((TS, DAY, "a"), (ID, IDENTITY, "id")), "a")
    assert fields(add_partition_field(t, TS, DAY, "b")) == [(1001, "identity", "id"), (1002, "day", "b")]
    again = add_partition_field(t, TS, DAY, "a")
    assert (fields(again), again.last_partition_id) == ([(1001, "identity", "id"), (1000, "day", "a")], 1001)


def test_version_1_keeps_dropped_fields_as_void() -> None:
    t = partitioned((TS, DAY, "period"), version=1)
    t = replace_partition_field(t, "period", TS, MONTH, "period")
    assert fields(t) == [(1000, "void", "period_1000"), (1001, "month", "period")]


def test_version_1_renames_a_void_field_for_a_new_one() -> None:
    t = drop_partition_field(partitioned((KIND, IDENTITY, "kind"), version=1), "kind")
    assert fields(t) == [(1000, "void", "kind")]
    t = add_partition_field(t, KIND, IDENTITY, "kind")
    assert (fields(t), t.spec.id) == ([(1000, "void", "kind_1000"), (1001, "identity", "kind")], 2)


def test_void_fields_make_way_for_each_other() -> None:
    t = partitioned((TS, DAY, "a_1001"), (KIND, IDENTITY, "a"), (ID, IDENTITY, "id"), version=1)
    t = drop_partition_field(drop_partition_field(t, "a"), "a_1001")
    t = rename_partition_field(t, "id", "a")
    assert [f.name for f in t.spec.fields] == ["a_1001_1000", "a_1001", "a"]


def test_a_renamed_field_keeps_id_and_place() -> None:
    t = rename_partition_field(partitioned((TS, DAY, "a"), (ID, IDENTITY, "id")), "a", "b")
    assert (fields(t), t.spec.id) == ([(1000, "day", "b"), (1001, "identity", "id")], 1)
