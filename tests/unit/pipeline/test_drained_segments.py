"""Removal of drained segments: a process may end before any step, and no entry is lost or read twice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from icemigrate.commands.ingest_status import ingest_status
from icemigrate.errors import EngineError
from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.checkpoint_copy import CheckpointCopy
from icemigrate.pipeline.drained_segments import drained_segments, remove_drained
from icemigrate.pipeline.segment_entries import entry_batches
from icemigrate.pipeline.segment_lists import SegmentLists
from icemigrate.pipeline.segment_source import SegmentReader
from icemigrate.pipeline.stream_checkpoint import planned_names
from icemigrate.pipeline.stream_source import FolderSource, stream_source
from icemigrate.spark.task_errors import TaskError
from icemigrate.wal import Entry, EntryKind, Writer
from icemigrate.wal.log_folder import LogError, sealed_segments, write_sealed
from tests.support.log_streams import LATER, Killed, LogStream, Process, count_steps, payload, write_log
from tests.support.storage_folders import bucket, use_storage

ALL = {payload(number) for number in range(12)}
WAITING = {payload(number) for number in (2, 5, 8, 11)}


def run_killed(stream: LogStream, kill_at: int) -> bool:
    """Run until a step, check that each entry is somewhere, and run to the end; whether it was killed."""
    stream.process = Process(kill_at)
    try:
        stream.run()
    except Killed:
        was_killed = True
        for number in tuple(stream.process.opened):
            os.close(number)
    else:
        was_killed = False
    assert stream.in_tables().keys() | stream.in_log() == ALL
    stream.process = Process()
    stream.run()
    return was_killed


def counted(stream: LogStream) -> dict[str | None, tuple[int, int, int]]:
    """By tenant: the entries that are ingested, quarantined and waiting, as `ingest status` counts them."""
    status = ingest_status(stream.log, stream.checkpoint, LATER)
    return {one.tenant: (one.ingested, one.quarantined, one.waiting) for one in status.tenants}


@pytest.mark.parametrize("is_remote", [False, True], ids=["local", "remote"])
def test_no_entry_is_lost_or_repeated_whenever_a_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_remote: bool
) -> None:
    storage = use_storage(monkeypatch, tmp_path / "storage")
    kills = kill_at = 0
    while kills == kill_at:
        storage.before_change = lambda: None
        stream = write_log(tmp_path / f"log{kill_at}", is_remote=is_remote)
        storage.before_change = lambda stream=stream: stream.process.step()  # type: ignore[misc]
        with monkeypatch.context() as patch:
            count_steps(patch, stream)
            kills += run_killed(stream, kill_at)
            assert stream.in_tables() == Counter(ALL - WAITING)
            assert stream.in_log() == WAITING, "only entries that wait for a table stay"
            assert counted(stream) == {"acme": (3, 1, 0), "globex": (3, 1, 0), "initech": (0, 0, 4)}
            stream.tables["initech"] = {}
            run_killed(stream, kill_at)
        assert stream.in_tables() == Counter(ALL)
        assert stream.in_log() == set()
        assert counted(stream) == {"acme": (3, 1, 0), "globex": (3, 1, 0), "initech": (4, 0, 0)}
        kill_at += 1
    assert kills > 50


def test_a_segment_stays_for_its_retention_and_while_it_is_open(tmp_path: Path) -> None:
    stream = write_log(tmp_path / "log")
    stream.retention_s = 10
    for number, path in enumerate(sealed_segments(stream.log)):
        os.utime(path, (LATER - 12 + number, LATER - 12 + number))
    with Writer(stream.log) as writer:
        writer.append("acme", EntryKind.LOGS, b"{}", time_ns=1)
        stream.run()
        assert len(drained_segments(stream.log, stream.checkpoint, 3)) == 1
        assert [path.stat().st_mtime for path in sealed_segments(stream.log)] == [LATER - 9]
        assert b"{}" in stream.in_log()
    assert remove_drained(stream.log, stream.checkpoint, 0, LATER) == 1
    # The writer sealed its segment, and no batch has it.
    assert b"{}" in stream.in_log()


@pytest.mark.parametrize("writes_at", range(4))
def test_a_saved_offset_has_its_list_whenever_spark_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes_at: int
) -> None:
    use_storage(monkeypatch, tmp_path / "storage")
    remote = bucket("checkpoint")
    checkpoint = CheckpointCopy(remote)
    for name in ("sources/0", "commits", "offsets"):
        (checkpoint.folder / name).mkdir(parents=True)
    (checkpoint.folder / "metadata").write_text("{}", encoding="utf-8")
    listed = Path.iterdir
    count = 0

    def list_then_write(folder: Path) -> Iterator[Path]:
        nonlocal count
        names = list(listed(folder))
        if folder.is_relative_to(checkpoint.folder):
            if count == writes_at:
                for name in ("sources/0/0", "offsets/0"):
                    (checkpoint.folder / name).write_text("v1", encoding="utf-8")
            count += 1
        return iter(names)

    monkeypatch.setattr(Path, "iterdir", list_then_write)
    checkpoint.save()
    assert (remote / "sources/0/0").exists() or not (remote / "offsets/0").exists()
    checkpoint.save()
    assert (remote / "offsets/0").exists() is (remote / "sources/0/0").exists() is True
    checkpoint.close()


def test_a_process_that_lost_the_lock_replaces_no_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_storage(monkeypatch, tmp_path / "storage")
    log = bucket("log")
    for name in ("a", "b", "c"):
        write_sealed(log / f"{name}.wal", [Entry("acme", EntryKind.LOGS, 1, b"{}")])
    stale, current = (SegmentReader(log, log / "checkpoint", BatchLimit(1), 1, -1) for _ in range(2))
    assert stale.latestOffset() == {"logOffset": 0}
    write_sealed(log / "0.wal", [Entry("acme", EntryKind.LOGS, 1, b"{}")])
    current.latestOffset()
    assert current.latestOffset() == {"logOffset": 1}
    before = SegmentLists(log / "checkpoint").read()
    assert before == {0: ["a.wal"], 1: ["0.wal"]}
    with pytest.raises(TaskError, match="another process wrote list 1 of segments"):
        stale.latestOffset()
    assert SegmentLists(log / "checkpoint").read() == before


def test_a_list_that_is_merged_is_not_replaced(tmp_path: Path) -> None:
    lists = SegmentLists(tmp_path)
    for number in range(50):
        lists.add(number, [f"{number}.wal"])
    assert len(list((tmp_path / "segments").iterdir())) == 1
    with pytest.raises(EngineError, match="another process wrote list 30 of segments"):
        lists.add(30, ["x.wal"])
    lists.add(50, ["50.wal"])
    assert lists.read()[30] == ["30.wal"]


def test_nothing_is_drained_before_the_first_batch(tmp_path: Path) -> None:
    stream = write_log(tmp_path)
    assert remove_drained(stream.log, stream.checkpoint, 0, LATER) == 0
    assert drained_segments(stream.log, stream.checkpoint, -1) == ()


@pytest.mark.parametrize(
    ("name", "text"), [("sources/0/0", "v1\n{"), ("offsets/3", "v1\n{}"), ("offsets/3", "v1\n{}\n+")]
)
def test_a_damaged_checkpoint_removes_nothing(tmp_path: Path, name: str, text: str) -> None:
    stream = write_log(tmp_path)
    stream.retention_s = 2 * LATER
    stream.run()
    (stream.checkpoint / name).write_text(text, encoding="utf-8")
    with pytest.raises(EngineError, match="the list of segments is damaged"):
        remove_drained(stream.log, stream.checkpoint, 0, LATER)
    assert len(sealed_segments(stream.log)) == 4


def test_a_log_that_spark_would_read_with_other_files_is_refused(tmp_path: Path) -> None:
    for name in ("log[1]", "a*b", "{a,b}", "x?"):
        with pytest.raises(LogError, match="in its path for a pattern"):
            stream_source(tmp_path / name, tmp_path, BatchLimit(1))
    log = tmp_path / "log"
    nested = log / "x=1"
    nested.mkdir(parents=True)
    (nested / "notes.txt").touch()
    stream_source(log, tmp_path, BatchLimit(1))
    (log / "[12].wal").touch()
    stream_source(log, tmp_path, BatchLimit(1))
    for name in ("_1.wal", ".1.wal"):
        (log / name).touch()
        with pytest.raises(LogError, match=f"{name} cannot be drained: Spark reads no file"):
            stream_source(log, tmp_path, BatchLimit(1))
        (log / name).unlink()
    (nested / "1.wal").touch()
    with pytest.raises(LogError, match="takes its folder x=1 for a partition"):
        stream_source(log, tmp_path, BatchLimit(1))


def test_names_that_are_patterns_are_found_in_the_list_of_a_batch(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "sources" / "0").mkdir(parents=True)
    for number, names in enumerate((["a"], ["b", "c%5B1%5D"], ["d"], ["e%20f", "*"])):
        (tmp_path / "offsets" / str(number)).write_text(
            f'v1\n{{}}\n{{"logOffset": {number}}}', encoding="utf-8"
        )
        lines = [f'{{"path": "file:///log/{name}.wal", "batchId": {number}}}' for name in names]
        (tmp_path / "sources" / "0" / str(number)).write_text("\n".join(["v1", *lines]), encoding="utf-8")
    assert planned_names(tmp_path, 1) == {"b.wal", "c[1].wal"}
    source = FolderSource(tmp_path, BatchLimit(1))
    assert [source.may_repeat(tmp_path, number) for number in range(4)] == [False, True, False, True]
    with pytest.raises(LogError, match=r"b\.wal is missing"):
        source.require_segments(tmp_path, 1)
    (tmp_path / "d.wal").touch()
    source.require_segments(tmp_path, 2)


def test_a_link_in_the_log_has_no_entry(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.append("acme", EntryKind.LOGS, b"{}", time_ns=1)
    (path,) = tmp_path.glob("*.wal")
    link = tmp_path / "1-link.wal"
    link.symlink_to(path)
    for scheme in ("file:", "file://"):
        segments = pa.record_batch([pa.array([f"{scheme}{path}", f"{scheme}{link}"])], names=["path"])
        (rows,) = (batch.to_pylist() for batch in entry_batches([segments]))
        assert [(row["segment"], row["tenant"], row["problem"]) for row in rows] == [
            (path.name, "acme", None),
            ("1-link.wal", None, "the segment is a symbolic link, which is not read"),
        ]
