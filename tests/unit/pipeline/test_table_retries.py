"""Tables with a problem: when they are tried again, and what is reported of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate.frozen import replace
from icemigrate.pipeline import ingest_stream
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.created_tables import without_paused
from icemigrate.pipeline.deferred_entries import DEFERRED
from icemigrate.pipeline.table_retries import FIRST_PAUSE_S, LONGEST_PAUSE_S, TableRetries, pause_seconds
from icemigrate.project.tenant_tables import tenant_tables
from tests.support.log_streams import write_log
from tests.unit.pipeline.test_batches import QUARANTINE

FAILED = TableBatch("otel.acme_traces", "acme", "traces", 3, 0, "there is no table")
KEY = ("acme", "traces")


def test_pauses_double_up_to_the_longest_one() -> None:
    assert [pause_seconds(attempts) for attempts in (1, 2, 3, 6, 7, 10_000)] == [30, 60, 120, 960, 960, 960]


def test_a_table_is_tried_again_after_its_pause() -> None:
    retries, now_s, pauses = TableRetries(), 1000.0, list[float]()
    for number in range(8):
        retries.record(number, [FAILED], (), now_s)
        waited = 0
        while KEY in retries.paused(now_s + waited):
            waited += 1
        assert retries.due_batches(now_s + waited - 1) == frozenset()
        assert retries.due_batches(now_s + waited) == frozenset(range(number + 1))
        pauses.append(waited)
        now_s += waited
    for attempts, waited in enumerate(pauses, 1):
        assert pause_seconds(attempts) / 2 <= waited <= pause_seconds(attempts) * 1.5
    # Tables that failed for long are tried at the same time.
    assert now_s % LONGEST_PAUSE_S == 0


def test_a_problem_is_reported_once_and_its_end_too() -> None:
    retries = TableRetries()
    assert retries.record(0, [FAILED], (), 0).failed == (FAILED,)
    assert retries.record(1, [FAILED], [KEY], 1).failed == ()
    assert retries.record(2, [FAILED], (), 100).failed == ()
    other = replace(FAILED, problem="no right")
    assert retries.record(3, [other], (), 900).failed == (other,)
    done = replace(FAILED, rows=3, problem=None)
    assert retries.record(4, [replace(done, entries=0)], (), 9000).recovered == ()
    assert retries.record(5, [done], (), 9000).recovered == (done,)
    assert retries.record(6, [done], (), 9000).recovered == ()
    assert retries.paused(0) == {}
    assert retries.due_batches(0) == {0, 1, 2, 3}


def test_entries_from_the_future_are_reported_once_for_each_table() -> None:
    retries, done = TableRetries(), replace(FAILED, rows=3, problem=None)
    ahead = replace(done, future=2)
    other = replace(ahead, kind="logs")
    assert retries.record(0, [done], (), 0).ahead == ()
    assert retries.record(1, [ahead], (), 0).ahead == (ahead,)
    assert retries.record(2, [ahead, other], (), 0).ahead == (other,)


def test_a_paused_table_is_not_created() -> None:
    other = replace(FAILED, table="otel.acme_logs", kind="logs")
    assert without_paused([FAILED, other], {KEY: "there is no table"}) == (other,)


def test_what_no_table_has_is_never_retried() -> None:
    retries = TableRetries()
    retries.record(0, [TableBatch("q", None, None, 1, 0, "x"), replace(FAILED, entries=0)], (), 0)
    assert retries.due_batches(LONGEST_PAUSE_S) == frozenset()


def test_only_the_entries_of_due_batches_are_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = write_log(tmp_path)
    stream.retention_s = 2**33
    stream.run()
    waiting = list((tmp_path / DEFERRED).iterdir())
    assert len(waiting) == 4
    settings = ingest_stream.IngestSettings(
        tmp_path, stream.checkpoint, tenant_tables(["logs=o.${tenant}"]), QUARANTINE, interval_s=1
    )
    retries = TableRetries()
    retries.record(1, [FAILED], (), 0)
    retries.record(9, [FAILED], [KEY], 0)  # this batch is not complete yet
    monkeypatch.setattr(ingest_stream.time, "monotonic", lambda: 0)
    ingest_stream._retry_tables(settings, retries)
    assert len(list((tmp_path / DEFERRED).iterdir())) == 4
    monkeypatch.setattr(ingest_stream.time, "monotonic", lambda: 2 * FIRST_PAUSE_S)
    ingest_stream._retry_tables(settings, retries)
    left = {path.name.rpartition("-")[0][-1] for path in (tmp_path / DEFERRED).iterdir()}
    assert left == {"0", "2", "3"}
    assert retries.due_batches(LONGEST_PAUSE_S) == {9}
