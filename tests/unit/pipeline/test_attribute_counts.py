"""Counts of attributes without a column: their bounds, and their files in the checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.errors import EngineError
from icemigrate.otlp.attribute_columns import AttributeSource
from icemigrate.pipeline import attribute_records
from icemigrate.pipeline.attribute_counts import (
    COUNTED_TENANTS,
    NAMES_PER_KIND,
    NAMES_PER_TABLE,
    AttributeCount,
    AttributeCounter,
    KindAttributes,
    add_counts,
    pack_counts,
    unpack_counts,
)
from icemigrate.pipeline.attribute_records import read_attributes, record_attributes
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.task_results import TableEntries

ROUTE = AttributeSource("attributes", "http.route")


def counted(*names: str, rows: int = 1, type_: str = "string") -> KindAttributes:
    return KindAttributes(
        tuple(AttributeCount(AttributeSource("attributes", name), {type_: rows}) for name in names)
    )


def test_rows_are_counted_by_type_and_known_attributes_are_left_out() -> None:
    counter = AttributeCounter()
    for type_, rows in (("string", 2), ("long", 1), ("string", 1)):
        counter.observe("attributes", "http.route", type_, rows)
    counter.observe("resource_attributes", "http.route", "string", 5)
    (found,) = counter.result([AttributeSource("resource_attributes", "http.route")]).attributes
    assert (found.source, found.types, found.rows) == (ROUTE, {"string": 3, "long": 1}, 4)


def test_a_task_keeps_the_most_frequent_of_a_million_names() -> None:
    counter = AttributeCounter()
    for number in range(100_000):
        counter.observe("attributes", f"flood.{number}", "string", 1)
        if number % 100 == 0:
            counter.observe("attributes", "http.route", "string", 1)
    found = counter.result([])
    assert len(found.attributes) == NAMES_PER_TABLE
    assert found.has_more
    assert found.attributes[0].source == ROUTE


def test_names_that_cannot_be_columns_are_only_counted() -> None:
    counter = AttributeCounter()
    for name in ("a\x1b[31m" + "x" * 10_000, "x" * 10_000, "", "\u202e"):
        counter.observe("attributes", name, "string", 2)
    found = counter.result([])
    assert found.attributes == ()
    assert found.unusable_rows == 8
    assert found.unusable_sample is not None
    assert found.unusable_sample.startswith("a\\u001b[31mxxx")
    assert len(found.unusable_sample) < 100
    assert unpack_counts(pack_counts(found)) == found


def test_counts_of_tenants_are_added_within_bounds() -> None:
    found = KindAttributes()
    for number in range(30):
        names = [f"{number}.{one}" for one in range(100)]
        packed = pack_counts(counted("http.route", *names))
        found = add_counts(found, [(f"t{number}", packed)], began_s=float(number))
    assert len(found.attributes) == NAMES_PER_KIND
    assert found.has_more
    route = found.attributes[0]
    assert (route.source, route.rows, route.first_seen_s) == (ROUTE, 30, 0.0)
    assert len(route.tenants) == COUNTED_TENANTS


def test_names_in_another_case_are_other_attributes() -> None:
    packed = [("acme", pack_counts(counted("a", "A"))), ("globex", pack_counts(counted("A", type_="long")))]
    found = {one.source.name: one for one in add_counts(KindAttributes(), packed, 5.0).attributes}
    assert found["A"].types == {"string": 1, "long": 1}
    assert found["A"].tenants == ("acme", "globex")
    assert found["a"].tenants == ("acme",)


def record(checkpoint: Path, number: int, *names: str, problem: str | None = None) -> None:
    """What a batch records; it is complete afterwards."""
    packed = pack_counts(counted(*names))
    results = [TableEntries("otel.acme_logs", "acme", "logs", attributes=packed), TableEntries("q")]
    tables = [TableBatch("otel.acme_logs", "acme", "logs", 1, 1, problem), TableBatch("q", None, None, 1, 1)]
    record_attributes(checkpoint, number, results, tables, began_s=100.0 + number)


def complete(checkpoint: Path, number: int) -> None:
    (checkpoint / "commits").mkdir(exist_ok=True)
    (checkpoint / "commits" / str(number)).write_text("v1\n{}")


def rows(checkpoint: Path) -> dict[str, int]:
    kinds = read_attributes(checkpoint).kinds
    return {one.source.name: one.rows for kind in kinds.values() for one in kind.attributes}


def test_a_repeated_batch_counts_once_and_deferred_entries_count_later(tmp_path: Path) -> None:
    assert read_attributes(tmp_path).kinds == {}
    record(tmp_path, 3, "a")
    assert rows(tmp_path) == {}  # the batch is not complete
    complete(tmp_path, 3)
    assert rows(tmp_path) == {"a": 1}
    record(tmp_path, 4, "a", problem="there is no table")
    record(tmp_path, 7, "a", "b")
    assert rows(tmp_path) == {"a": 1}
    record(tmp_path, 7, "a", "b")
    complete(tmp_path, 7)
    assert rows(tmp_path) == {"a": 2, "b": 1}
    record(tmp_path, 8, "b")
    complete(tmp_path, 8)
    assert rows(tmp_path) == {"a": 2, "b": 2}
    assert len(list((tmp_path / "attributes").iterdir())) == 2


def test_a_reader_beside_a_stream_reads_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, 5, "a")
    complete(tmp_path, 5)
    real, stale = attribute_records.last_complete, [4]
    monkeypatch.setattr(attribute_records, "last_complete", lambda path: stale.pop() if stale else real(path))
    assert rows(tmp_path) == {"a": 1}


def test_a_damaged_file_is_one_error(tmp_path: Path) -> None:
    record(tmp_path, 0, "a")
    complete(tmp_path, 0)
    (tmp_path / "attributes/0.json").write_text("{")
    with pytest.raises(EngineError, match="a file is damaged"):
        read_attributes(tmp_path)
