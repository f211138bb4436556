"""Segments of deferred entries: when they go back into the log."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from icemigrate.pipeline.deferred_entries import DEFERRED, drop_deferred, take_back
from icemigrate.wal import Entry, EntryKind
from icemigrate.wal.log_folder import (
    LogError,
    open_segments,
    remove_abandoned,
    sealed_segments,
    write_sealed,
)
from icemigrate.wal.log_lock import lock_log

QUERY = "7439b67c-3a39-4e32-8f20-a29bf516c4fa"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with deferred segments of three batches."""
    (tmp_path / DEFERRED).mkdir()
    for number in (2, 12, 13):
        path = tmp_path / DEFERRED / f"{QUERY}-{number}-00000.wal"
        write_sealed(path, [Entry("acme", EntryKind.LOGS, number, b"x")])
        os.utime(path, (1, 1))
    return tmp_path


def names(folder: Path) -> list[str]:
    return [path.name for path in sealed_segments(folder)]


def test_segments_of_complete_batches_go_back_with_a_new_time(log: Path) -> None:
    began = time.time()
    assert take_back(QUERY, 12, log) == 2
    assert names(log) == [f"0-{QUERY}-12-00000.wal", f"0-{QUERY}-2-00000.wal"]
    assert names(log / DEFERRED) == [f"{QUERY}-13-00000.wal"]
    # Their retention begins with this time.
    assert all(path.stat().st_mtime >= int(began) for path in sealed_segments(log))
    assert take_back(QUERY, 12, log) == 0


def test_segments_of_another_stream_and_of_no_batch_stay(log: Path) -> None:
    assert take_back("other", 99, log) == 0
    assert take_back(QUERY, -1, log) == 0


def test_a_new_checkpoint_takes_the_segments_of_other_streams_back(log: Path) -> None:
    assert take_back(None, -1, log) == 3
    assert len(names(log)) == 3
    assert names(log / DEFERRED) == []


def test_a_repeated_batch_drops_what_it_held(log: Path) -> None:
    drop_deferred(QUERY, 1, log)
    assert len(names(log / DEFERRED)) == 3, "12 and 13 are not batch 1"
    drop_deferred(QUERY, 12, log)
    assert names(log / DEFERRED) == [f"{QUERY}-13-00000.wal", f"{QUERY}-2-00000.wal"]


def test_a_segment_whose_entries_fail_is_abandoned(tmp_path: Path) -> None:
    def entries() -> Iterator[Entry]:
        yield Entry("acme", EntryKind.LOGS, 1, b"x")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(LogError, match="o space left on device"):
        write_sealed(tmp_path / "1.wal", entries())
    assert len(open_segments(tmp_path)) == 1
    remove_abandoned(tmp_path)
    assert not list(tmp_path.iterdir())


def test_one_process_drains_a_log(log: Path) -> None:
    with lock_log(log), pytest.raises(LogError, match="another process drains the log"), lock_log(log):
        pass
    with lock_log(log):
        pass
    with pytest.raises(BlockingIOError), lock_log(log):
        raise BlockingIOError("of the block")
