"""When a continuous run starts a batch: what waits is merged by size and by age."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.errors import EngineError
from icemigrate.pipeline.batch_trigger import BatchTrigger, TriggeredStreams, WaitingLog
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.log_folder import SegmentFile

START = BatchTrigger(100, 60)
HOUR_S = 3600


def segment(size: int, sealed_s: float) -> SegmentFile:
    return SegmentFile(Path("1.wal"), size, sealed_s)


@pytest.mark.parametrize(
    ("waiting", "waits_for_s", "is_due"),
    [
        ((), 1000, False),
        ((segment(99, 1000),), 0, False),
        ((segment(50, 1000), segment(50, 1000)), 0, True),
        ((segment(1, 941), segment(1, 999)), 0, False),
        ((segment(1, 999), segment(1, 940)), 0, True),
        ((segment(1, 9999),), 59, False),  # sealed by a clock that is ahead
        ((segment(1, 9999),), 60, True),
    ],
)
def test_a_batch_triggers_by_size_or_by_age(
    waiting: tuple[SegmentFile, ...], waits_for_s: float, is_due: bool
) -> None:
    assert START.is_due(waiting, waits_for_s, 1000) is is_due


class Log:
    """A log and its checkpoint, with a clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkpoint, self.now_s = folder, folder / "checkpoint", 1000.0
        for name in ("offsets", "commits", "sources/0"):
            (self.checkpoint / name).mkdir(parents=True)

    def waiting(self, size: int = 10**9, has_topics: bool = False) -> WaitingLog:
        start = BatchTrigger(size, HOUR_S)
        return WaitingLog(self.folder, self.checkpoint, start, has_topics, lambda: self.now_s)

    def write(self) -> None:
        with Writer(self.folder) as writer:
            writer.append("acme", EntryKind.LOGS, b"{}")

    def begin(self, number: int) -> None:
        """Begin a batch with all segments."""
        paths = [path.as_uri() for path in self.folder.glob("*.wal")]
        entries = [json.dumps({"path": path, "batchId": number}) for path in paths]
        for name, lines in {
            f"sources/0/{number}": ["v1", *entries],
            f"offsets/{number}": ["v1", "{}", json.dumps({"logOffset": number})],
        }.items():
            (self.checkpoint / name).write_text("\n".join(lines), encoding="utf-8")

    def complete(self, number: int) -> None:
        (self.checkpoint / f"commits/{number}").write_text("v1\n{}", encoding="utf-8")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_what_is_there_at_the_start_is_drained_at_once(log: Log) -> None:
    log.write()
    assert log.waiting().is_due()


def test_entries_wait_until_the_oldest_is_old_enough(log: Log) -> None:
    waiting = log.waiting()
    assert not waiting.is_due()
    log.write()
    log.now_s += HOUR_S - 1
    assert not waiting.is_due()
    log.write()
    log.now_s += 1
    assert waiting.is_due()
    log.begin(0)
    assert waiting.is_due()  # a batch that was interrupted is repeated
    log.complete(0)
    waiting.drained()
    log.now_s += HOUR_S
    assert not waiting.is_due()  # nothing waits
    log.write()
    assert not waiting.is_due()


def test_segments_of_complete_batches_do_not_wait(log: Log) -> None:
    waiting = log.waiting(size=1)
    log.write()
    assert waiting.is_due()
    log.begin(0)
    log.complete(0)
    assert not waiting.is_due()
    log.write()
    assert waiting.is_due()


def test_records_of_topics_are_read_after_each_delay(log: Log) -> None:
    waiting = log.waiting(has_topics=True)
    assert waiting.is_due()
    waiting.drained()
    assert not waiting.is_due()
    log.now_s += HOUR_S
    assert waiting.is_due()


class Streams:
    """Streams that end after some seconds, and what happens."""

    def __init__(self, seconds: int, fails: bool = False) -> None:
        self.events, self._seconds, self._fails = list[str](), seconds, fails
        self._left = 0
        self.is_drained = False

    def start(self) -> Streams:
        self._left = self._seconds
        self.events.append("start")
        return self

    def awaitTermination(self, timeout: int) -> bool:  # noqa: N802
        self._left -= timeout
        if self._fails:
            raise EngineError("the batch failed")
        return self._left <= 0

    def end(self, stream: Streams) -> None:
        assert stream is self
        self.events.append("end")

    def stop(self) -> None:
        self.events.append("stop")

    def merged(self, waiting: WaitingLog, interval_s: float) -> TriggeredStreams:
        return TriggeredStreams(
            waiting, interval_s, self.start, lambda: self.is_drained, self.end, lambda _: self._sleep()
        )

    def _sleep(self) -> None:
        self.events.append("sleep")


def test_a_stream_runs_whenever_a_batch_is_due(log: Log) -> None:
    streams = Streams(seconds=2)
    merged = streams.merged(log.waiting(size=1), interval_s=3)
    for _ in range(2):
        assert merged.awaitTermination(1) is False
    log.write()
    for _ in range(3):  # it looks at the log once in an interval
        assert merged.awaitTermination(1) is False
    assert streams.events == ["sleep"] * 3 + ["start", "end"]
    log.begin(0)
    log.complete(0)
    merged.awaitTermination(1)
    merged.stop()  # with no stream that runs
    assert streams.events[5:] == ["sleep"]
    log.write()
    for _ in range(3):
        merged.awaitTermination(1)
    merged.stop()
    assert streams.events[6:] == ["sleep", "sleep", "start", "stop"]


def test_a_stream_that_does_not_end_is_ended_when_everything_is_drained(log: Log) -> None:
    log.write()
    streams = Streams(seconds=100)
    merged = streams.merged(log.waiting(), interval_s=1)
    merged.awaitTermination(1)
    assert streams.events == ["start"]
    streams.is_drained = True
    merged.awaitTermination(1)
    assert streams.events == ["start", "end"]


def test_the_error_of_a_stream_ends_the_run(log: Log) -> None:
    log.write()
    merged = Streams(seconds=9, fails=True).merged(log.waiting(), interval_s=1)
    with pytest.raises(EngineError, match="the batch failed"):
        merged.awaitTermination(1)
