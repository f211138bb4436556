"""Nulls counted by queries: which heads of branches are asked, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from icemigrate.catalog.snapshot_manifests import TableManifests
from icemigrate.iceberg.schema import Schema
from icemigrate.spark.row_counts import count_nulls
from tests.support.small_tables import table

NOW = table("id: long, a: long, b: long").schema
WITH_TIME = table("id: long, a: long, b: long, at: time").schema
ONLY_A = table("id: long, a: long").schema
A, B = 2, 3


def look(now: Schema, *heads: Schema) -> TableManifests:
    """A table whose branches stand at snapshots 0, 1, …, each under a schema of its own."""
    snapshots = [SimpleNamespace(id=at, schema_id=at) for at in range(len(heads))]
    there = SimpleNamespace(schema=now, schema_of=lambda at: heads[at], heads=lambda: snapshots)
    return cast(TableManifests, there)


class Asked:
    """Answers with 1, 2, … for the columns of a query, and keeps the queries."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def __call__(self, text: str) -> Sequence[tuple[Any, ...]]:
        self.queries.append(text)
        return [tuple(range(1, text.count("count_if") + 1))]


def test_the_branch_with_most_nulls_counts() -> None:
    ask = Asked()
    assert count_nulls(ask, "lake.db.t", look(NOW, NOW, NOW), [A, B]) == {A: 1, B: 2}
    assert [q.split("VERSION AS OF ")[1].split()[0] for q in ask.queries] == ["0", "1"]
    assert count_nulls(ask, "lake.db.t", look(NOW, NOW), []) == {}


def test_what_one_head_does_not_have_is_asked_of_no_other() -> None:
    ask = Asked()
    assert count_nulls(ask, "lake.db.t", look(NOW, ONLY_A, NOW), [A, B]) == {A: 1, B: None}
    assert [q.count("count_if") for q in ask.queries] == [1, 1]


def test_a_head_that_spark_cannot_load_is_not_asked() -> None:
    """Its snapshot is from before a column of type time was dropped."""
    for heads in ((WITH_TIME, NOW), (NOW, WITH_TIME)):
        ask = Asked()
        assert count_nulls(ask, "lake.db.t", look(NOW, *heads), [A, B]) == {A: None, B: None}
        assert len(ask.queries) == heads.index(WITH_TIME)
    ask = Asked()
    assert count_nulls(ask, "lake.db.t", look(WITH_TIME, NOW), [A, B]) == {A: None, B: None}
    assert ask.queries == []
