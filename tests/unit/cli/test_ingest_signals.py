"""Signals of `ingest`: at once while Spark starts, after the batch later."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from icemigrate.cli.ingest import _StopAfterBatch
from icemigrate.render.ingest_text import ingest_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.results.ingest_results import IngestResult


class Early(Exception):
    """What the handler of other commands raises."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_those_of_any_command_until_spark_runs(number: signal.Signals) -> None:
    def end(_number: int, _frame: Any) -> None:
        raise Early

    before = signal.signal(number, end)
    try:
        with _StopAfterBatch() as stopping:
            with pytest.raises(Early):
                os.kill(os.getpid(), number)
            stopping.begin()
            os.kill(os.getpid(), number)
            assert stopping.event.is_set()
            with pytest.raises(SystemExit) as second:
                os.kill(os.getpid(), number)
            assert second.value.code == 128 + number
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("waiting", "uncounted", "line"),
    [
        (0, 0, "Stopped: no other entry waits in sealed segments of the log."),
        (1, 0, "Stopped: 1 other entry waits in the log. Run the command again to drain the log."),
        (
            2000,
            3,
            "Stopped: 2,000 other entries wait in the log, and 3 segments with entries that are not counted. "
            "Run the command again to drain the log.",
        ),
    ],
)
def test_a_run_that_was_stopped_shows_what_waits(waiting: int, uncounted: int, line: str) -> None:
    result = IngestResult("p", "local", 1, 0, 0, 0, (), True, waiting, uncounted)
    assert ingest_text(result, PLAIN_STYLE).splitlines()[-1] == line
    assert "Stopped" not in ingest_text(IngestResult("p", "local", 1, 0, 0, 0, ()), PLAIN_STYLE)
