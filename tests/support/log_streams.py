"""A log that a stream drains, without Spark: its checkpoint, its batches, and processes that are killed."""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_limit import BatchLimit
from icemigrate.pipeline.checkpoint_copy import CheckpointCopy
from icemigrate.pipeline.deferred_entries import DEFERRED, defer_entries, drop_deferred, take_back
from icemigrate.pipeline.drained_segments import remove_drained
from icemigrate.pipeline.drained_totals import record_totals
from icemigrate.pipeline.entry_payloads import entries_with_payloads
from icemigrate.pipeline.segment_entries import entry_batches
from icemigrate.pipeline.segment_source import SegmentReader
from icemigrate.pipeline.stream_checkpoint import last_complete, last_planned, source_number, stream_id
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.log_folder import OPEN, SEALED, seal_abandoned, sealed_segments
from icemigrate.wal.segment_format import decode_segment
from icemigrate.wal.storage_path import AnyPath, StoragePath
from tests.support.storage_folders import bucket

QUERY = "7439b67c-3a39-4e32-8f20-a29bf516c4fa"
TENANTS = ("acme", "globex", "initech")
LATER = 2**32


class Killed(BaseException):
    """The end of the process."""


class Process:
    """Ends before one of its steps; without a number, it goes on to its end."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.left = kill_at
        self.opened = set[int]()

    def step(self) -> None:
        """Count a step."""
        if self.left == 0:
            raise Killed
        if self.left is not None:
            self.left -= 1


class Entries:
    """A ``DataFrame`` of entries, with what deferring them uses."""

    def __init__(self, batches: list[Any]) -> None:
        self._batches = batches

    def mapInArrow(self, function: Callable[..., Iterator[Any]], _columns: str) -> Entries:  # noqa: N802
        return Entries(list(function(self._batches)))

    def collect(self) -> list[Any]:
        return [type("Row", (), row)() for batch in self._batches for row in batch.to_pylist()]


class LogStream:
    """Spark's stream and its checkpoint; a segment is a batch, and the source compacts its list often.

    :ivar tables: payloads by table and batch; tables are created by the test.
    """

    def __init__(self, log: AnyPath) -> None:
        self.log, self.checkpoint = log, log / "checkpoint"
        self.copy = self.checkpoint
        self.tables: dict[str, dict[int, list[bytes]]] = {"quarantine": {}, "acme": {}, "globex": {}}
        self.process = Process()
        self.retention_s = 0
        self.now_s = 1_700_000_000.0

    def run(self) -> None:
        """What a run of the command does."""
        seal_abandoned(self.log)
        take_back(stream_id(self.checkpoint), last_complete(self.checkpoint), self.log)
        for name in ("sources/0", "offsets", "commits"):
            (self.checkpoint / name).mkdir(parents=True, exist_ok=True)
        self._write("metadata", json.dumps({"id": QUERY}))
        while self._begin():
            self._batch(last_complete(self.checkpoint) + 1)
        remove_drained(self.log, self.checkpoint, self.retention_s, LATER)

    def _write(self, name: str, text: str) -> None:
        self.process.step()
        (self.copy / name).write_bytes(text.encode())

    def _sources(self) -> dict[str, dict[str, Any]]:
        files = (self.checkpoint / "sources/0").iterdir()
        lines = (line for path in files for line in path.read_bytes().splitlines()[1:])
        return {entry["path"]: entry for entry in map(json.loads, lines)}

    def _begin(self) -> bool:
        """Whether there is a batch: one that is not complete, or one with the next segment."""
        number = last_complete(self.checkpoint) + 1
        if (self.checkpoint / "offsets" / str(number)).exists():
            return True
        seen = self._sources()
        if len(seen) == number:
            new = [one for one in sealed_segments(self.log) if _uri(one) not in seen]
            if not new:
                return False
            entries = [{"path": _uri(new[0]), "timestamp": 1, "batchId": number}]
            is_compact = number % 3 == 2
            lines = [*(seen.values() if is_compact else ()), *entries]
            suffix = ".compact" if is_compact else ""
            self._write(f"sources/0/{number}{suffix}", "\n".join(["v1", *map(json.dumps, lines)]))
            if is_compact:
                for earlier in range(number):
                    (self.checkpoint / f"sources/0/{earlier}").unlink(missing_ok=True)
        self._write(f"offsets/{number}", "\n".join(["v1", "{}", json.dumps({"logOffset": number})]))
        return True

    def _batch(self, number: int) -> None:
        remove_drained(self.log, self.checkpoint, self.retention_s, LATER)  # as a continuous run does
        drop_deferred(QUERY, number, self.log)
        batches = self._entries(number)
        with entries_with_payloads(self.log, batches) as found:
            rows = list(found)
        readable = [row for row in rows if row["payload"].startswith(b"{")]
        bad = [row for row in rows if row not in readable]
        self._commit("quarantine", number, bad)
        done = [TableBatch("quarantine", None, None, len(bad), len(bad))]
        for tenant in TENANTS:
            of_tenant = [row for row in readable if row["tenant"] == tenant]
            if tenant in self.tables:
                self._commit(tenant, number, of_tenant)
            elif of_tenant:
                failed = batches[0].filter(pa.array([row["tenant"] == tenant for row in rows]))
                defer_entries(Entries([failed]), QUERY, number, self.log)
            unreadable = sum(row["tenant"] == tenant for row in bad)
            count, problem = len(of_tenant), None if tenant in self.tables else "there is no table"
            done.append(TableBatch(tenant, tenant, "logs", count, count, problem, unreadable))
        record_totals(self.checkpoint, number, done, self.now_s, self.now_s + 10)
        self.now_s += 60
        self._write(f"commits/{number}", "v1\n{}")

    def _entries(self, number: int) -> list[Any]:
        (uri,) = (path for path, one in self._sources().items() if one["batchId"] == number)
        path = next(one for one in sealed_segments(self.log) if _uri(one) == uri)
        segment = pa.record_batch([pa.array([f"file:{path}"])], names=["path"])
        return list(entry_batches([segment]))

    def _commit(self, table: str, number: int, rows: list[dict[str, Any]]) -> None:
        self.process.step()
        self.tables[table].setdefault(number, [row["payload"] for row in rows])

    def in_tables(self) -> Counter[bytes]:
        """How often each payload is in a table."""
        return Counter(one for table in self.tables.values() for batch in table.values() for one in batch)

    def in_log(self) -> set[bytes]:
        """The payloads of the log."""
        folders = (self.log, self.log / DEFERRED)
        found = [one for folder in folders if folder.is_dir() for one in folder.iterdir()]
        segments = [one for one in found if one.name.endswith((SEALED, OPEN))]
        decoded = (decode_segment(one.read_bytes()) for one in segments)
        return {part.entry.payload for content in decoded for part in content.entries}


class StorageStream(LogStream):
    """A stream of a log on a remote storage, which has the checkpoint, too."""

    def __init__(self, name: str) -> None:
        super().__init__(bucket(name))
        self.reader: SegmentReader | None = None

    def run(self) -> None:
        """What a run of the command does."""
        assert isinstance(self.checkpoint, StoragePath)
        take_back(stream_id(self.checkpoint), last_complete(self.checkpoint), self.log)
        checkpoint = CheckpointCopy(self.checkpoint)
        self.copy = checkpoint.folder
        try:
            for name in ("offsets", "commits"):
                (checkpoint.folder / name).mkdir(exist_ok=True)
            self._write("metadata", json.dumps({"id": QUERY}))
            self._drain(checkpoint)
        finally:
            checkpoint.close()
        remove_drained(self.log, self.checkpoint, self.retention_s, LATER)

    def _drain(self, checkpoint: CheckpointCopy) -> None:
        assert isinstance(self.log, StoragePath)
        planned = last_planned(self.checkpoint)
        found = -1 if planned < 0 else source_number(self.checkpoint, planned)
        self.reader = SegmentReader(self.log, self.checkpoint, BatchLimit(1), 2, found)
        while True:
            number = last_complete(self.copy) + 1
            if last_planned(self.copy) < number:
                offset = self.reader.latestOffset()
                if offset == self._offset(number - 1):
                    checkpoint.save()
                    return
                self._write(f"offsets/{number}", "\n".join(["v1", "{}", json.dumps(offset)]))
            checkpoint.save()
            self._batch(number)

    def _offset(self, number: int) -> dict[str, int]:
        return {"logOffset": -1 if number < 0 else source_number(self.copy, number)}

    def _entries(self, number: int) -> list[Any]:
        assert self.reader is not None
        segments = self.reader.partitions(self._offset(number - 1), self._offset(number))
        return [batch for one in pickle.loads(pickle.dumps(segments)) for batch in self.reader.read(one)]


def _uri(path: AnyPath) -> str:
    return f"file://{quote(str(path))}"


def payload(number: int) -> bytes:
    """Every seventh cannot be read."""
    return b"bad %d" % number if number % 7 == 0 else json.dumps({"number": number}).encode()


def write_log(folder: Path, *, is_remote: bool = False) -> LogStream:
    """A log of four segments, each with an entry of every tenant.

    :param is_remote: whether it is on a storage, under the name of the folder, which is the spool.
    """
    made = StorageStream(folder.name) if is_remote else LogStream(folder)
    with Writer(str(made.log), spool=folder if is_remote else None) as writer:
        for number in range(12):
            writer.append(TENANTS[number % 3], EntryKind.LOGS, payload(number))
            if number % 3 == 2:
                writer.flush()
    return made


def count_steps(monkeypatch: pytest.MonkeyPatch, stream: LogStream) -> None:
    """Let each call that changes or flushes a file be a step of the process; a flush takes no time."""
    monkeypatch.setattr(os, "fsync", lambda _number: None)
    for owner, name in ((Path, "unlink"), (Path, "rename"), (os, "fsync"), (os, "utime"), (os, "pwrite")):
        real = getattr(owner, name)

        def call(*args: Any, real: Callable[..., Any] = real, **options: Any) -> Any:
            stream.process.step()
            return real(*args, **options)

        monkeypatch.setattr(owner, name, call)
    real_open, real_close = os.open, os.close

    def open_file(*args: Any, **options: Any) -> int:
        number = real_open(*args, **options)
        stream.process.opened.add(number)
        return number

    def close_file(number: int) -> None:
        stream.process.opened.discard(number)
        real_close(number)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "close", close_file)
