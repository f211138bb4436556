"""Texts of `ingest` while it runs."""

from __future__ import annotations

from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_result import BatchResult
from icemigrate.pipeline.table_retries import TableOutcomes
from icemigrate.render.ingest_text import batch_text


def test_a_batch_has_a_line_and_each_new_problem_has_one() -> None:
    failed = tuple(TableBatch("t", f"t{number}", "logs", 1, 0, "no\nright") for number in range(30))
    done = TableBatch("t", "acme", "logs", 2, 5)
    outcomes = TableOutcomes(failed, (done,), (TableBatch("t", "a", "logs", 9, 9, future=2),))
    lines = batch_text(BatchResult(4, (*failed, done), 30, outcomes)).splitlines()
    assert lines[:2] == [
        "batch 4: 2 entries of 1 tenant and kind, 30 stay in the log",
        "deferred  t0, logs: no right",
    ]
    assert lines[-3:] == [
        "and 10 more with a problem",
        "recovered acme, logs",
        "warning   a, logs: 2 entries are from the future",
    ]
    assert len(lines) == 24
    assert batch_text(BatchResult(5, (done,))) == "batch 5: 2 entries of 1 tenant and kind\n"
    # The result of a run that ends by itself has the problems.
    lines = batch_text(BatchResult(4, (*failed, done), 30, outcomes), shows_problems=False).splitlines()
    assert [line.split()[0] for line in lines] == ["batch", "recovered", "warning"]
