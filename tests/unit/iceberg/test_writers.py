"""Who writes a table, by what its snapshots say."""

from __future__ import annotations

from json import dumps
from typing import Any

import pytest

from icemigrate.iceberg.json_text import Raw, read_json
from icemigrate.iceberg.metadata import FORM
from icemigrate.iceberg.snapshot_writers import WATCHED_DAYS, Writer, WriterKind, writers_of

NOW = 1_790_000_000_000
HOUR_MS = 3_600_000


def metadata(*snapshots: tuple[float, dict[str, str]]) -> dict[str, Any]:
    """Snapshots by the hours since each was made, oldest first."""
    return {
        "snapshots": [
            {"snapshot-id": number, "timestamp-ms": NOW - round(hours * HOUR_MS), "summary": summary}
            for number, (hours, summary) in enumerate(snapshots, start=1)
        ]
    }


SPARK = {
    "operation": "append",
    "spark.app.id": "local-1",
    "app-id": "local-1",
    "app-name": "nightly load",
    "engine-name": "spark",
    "engine-version": "4.1.4",
    "iceberg-version": "Apache Iceberg 1.12.0 (commit 1)",
}
STREAM = {**SPARK, "spark.sql.streaming.queryId": "q-7", "spark.sql.streaming.epochId": "12"}
FLINK = {
    "operation": "append",
    "flink.job-id": "ab12",
    "flink.operator-id": "7df3",
    "flink.max-committed-checkpoint-id": "9",
    "engine-name": "flink",
    "engine-version": "1.20.1",
}
KAFKA = {
    "operation": "append",
    "kafka.connect.commit-id": "c-1",
    "kafka.connect.task-id": "0-0",
    "kafka.connect.offsets.control-iceberg.cg-control-trades": '{"0":5}',
    "engine-name": "kafka-connect",
    "engine-version": "3.9.0",
}
TRINO = {"operation": "overwrite", "trino_query_id": "20260921_1", "trino_user": "ana"}
PYICEBERG = {"operation": "append", "added-records": "2", "total-records": "2"}


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (SPARK, Writer("spark", False, "nightly load", "local-1", "4.1.4")),
        (STREAM, Writer("spark", True, "q-7", "local-1", "4.1.4")),
        (FLINK, Writer("flink", True, "7df3", "ab12", "1.20.1")),
        (KAFKA, Writer("kafka-connect", True, "control-iceberg.cg-control-trades", None, "3.9.0")),
        (TRINO, Writer("trino", False, "ana", "20260921_1")),
        (PYICEBERG, Writer()),
        ({"operation": "append", "spark.app.id": "local-1"}, Writer("spark", id="local-1")),
        ({"operation": "append", "engine-name": "other", "app-id": "9"}, Writer("other", id="9")),
    ],
)
def test_each_engine_is_known_by_its_keys(summary: dict[str, str], expected: Writer) -> None:
    (found,) = writers_of(metadata((1, summary)), NOW)
    assert (found.commits, found.a_day, found.last_ms) == (1, 1.0, NOW - HOUR_MS)
    assert (found.engine, found.stream, found.name) == (expected.engine, expected.stream, expected.name)
    assert (found.id, found.version) == (expected.id, expected.version)


def test_writers_are_read_from_summaries_that_are_still_text() -> None:
    json = metadata((9999, FLINK), (2, SPARK), (1, KAFKA))
    text = dumps(json).encode()
    read = read_json(text, FORM)
    summaries = [snapshot["summary"] for snapshot in read["snapshots"]]
    assert {type(summary) for summary in summaries} == {Raw}, "a plan does not read all summaries"
    assert writers_of(read, NOW) == writers_of(json, NOW) != ()
    # Half a character, which no reader of JSON accepts.
    damaged = text.replace(b'"nightly load"', b'"\xe2"')
    assert {writer.engine for writer in writers_of(read_json(damaged, FORM), NOW)} == {"kafka-connect", None}


def test_a_job_of_many_runs_is_one_writer_and_the_busiest_stands_first() -> None:
    runs = [(24.0 * day, {**SPARK, "spark.app.id": f"local-{day}"}) for day in (3, 2, 1)]
    stream = [(hours / 4, FLINK) for hours in range(40, 0, -1)]
    nightly, flink = (w for _, w in sorted((w.commits, w) for w in writers_of(metadata(*runs, *stream), NOW)))
    assert writers_of(metadata(*runs, *stream), NOW) == (flink, nightly)
    assert (nightly.commits, nightly.id, nightly.a_day) == (3, "local-1", 1.0)
    assert (flink.commits, flink.a_day, flink.last_ms) == (40, 13.3, NOW - HOUR_MS // 4)


def test_the_days_are_those_that_the_snapshots_go_back() -> None:
    old = (24.0 * 30, TRINO)
    daily = [(24.0 * day - 1, SPARK) for day in range(WATCHED_DAYS, 0, -1)]
    (found,) = writers_of(metadata(old, *daily), NOW)
    assert (found.engine, found.commits, found.a_day) == ("spark", WATCHED_DAYS, 1.0)
    assert writers_of(metadata(old), NOW) == ()
    # Expired to the last two days: so many a day all the same.
    (found,) = writers_of(metadata((48, SPARK), (30, SPARK), (20, SPARK), (1, SPARK)), NOW)
    assert (found.commits, found.a_day) == (4, 2.0)


def test_what_is_no_write_names_nobody() -> None:
    ours = {"operation": "append", "icemigrate.version": "0003", "engine-name": "spark"}
    compaction = {**SPARK, "operation": "replace"}
    assert writers_of(metadata((2, ours), (1, compaction)), NOW) == ()
    assert writers_of({}, NOW) == writers_of({"snapshots": None}, NOW) == ()


def test_a_damaged_snapshot_is_for_others_to_refuse() -> None:
    broken: list[Any] = [
        None,
        7,
        {"timestamp-ms": "x"},
        {"timestamp-ms": NOW},
        {"timestamp-ms": NOW, "summary": 3},
    ]
    (found,) = writers_of({"snapshots": broken}, NOW)
    assert found == Writer(commits=2, a_day=2.0, last_ms=NOW)


def test_a_commit_of_a_clock_that_is_ahead_counts() -> None:
    (found,) = writers_of(metadata((-2, SPARK)), NOW)
    assert (found.a_day, found.last_ms) == (1.0, NOW + 2 * HOUR_MS)


@pytest.mark.parametrize(
    ("writer", "kind"),
    [
        (Writer("flink", stream=True), WriterKind.OTHER_STREAM),
        (Writer("kafka-connect", stream=True), WriterKind.OTHER_STREAM),
        (Writer("spark", stream=True), WriterKind.SPARK_STREAM),
        (Writer("spark"), WriterKind.SPARK),
        (Writer("trino"), WriterKind.TRINO),
        (Writer(), WriterKind.UNNAMED),
        (Writer("other"), WriterKind.OTHER),
    ],
)
def test_of_which_kind_a_writer_is(writer: Writer, kind: WriterKind) -> None:
    assert writer.kind is kind
    assert (kind in WriterKind.STREAMS) is writer.stream
    assert kind in WriterKind.ALL
