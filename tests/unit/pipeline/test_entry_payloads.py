"""The payloads of entries, read from the segments that have them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from icemigrate.pipeline.entry_payloads import entries_with_payloads
from icemigrate.pipeline.segment_entries import entry_batches, segment_batches
from icemigrate.spark.task_errors import TaskError
from icemigrate.wal import Entry, EntryKind
from icemigrate.wal.entries import UnreadableBytes
from icemigrate.wal.log_folder import LogError
from icemigrate.wal.segment_format import SegmentEncoder

TENANTS = ("acme", "../é", "acme")


def segment(path: Path, is_whole: bool = True) -> bytes:
    """A segment with entries, other bytes, and damaged bytes."""
    encoder = SegmentEncoder()
    parts = [
        encoder.encode_entry(Entry(tenant, EntryKind.LOGS, number, tenant.encode() * number))
        if tenant.isascii()
        else encoder.encode_unreadable(UnreadableBytes(b"x" * 10, "no request"))
        for number, tenant in enumerate(TENANTS)
    ]
    damaged = encoder.encode_entry(Entry("globex", EntryKind.LOGS, 9, b"damaged"))[:-1] + b"?"
    content = encoder.header + b"".join(parts) + damaged + encoder.encode_footer(4)
    content = content if is_whole else content[:-5]
    path.write_bytes(content)
    return content


def test_payloads_are_those_of_the_decoded_segments(tmp_path: Path) -> None:
    names = ("1.wal", "2.wal")
    contents = [(name, segment(tmp_path / name, name == "1.wal")) for name in names]
    paths = pa.record_batch([pa.array([f"file:{tmp_path / name}" for name in names])], names=["path"])
    placed = list(entry_batches([paths]))
    assert {row["payload"] for batch in placed for row in batch.to_pylist()} == {None}
    with entries_with_payloads(tmp_path, placed) as entries:
        found = [{**entry, "payload_at": None, "payload_size": None} for entry in entries]
    assert found == [row for batch in segment_batches(contents) for row in batch.to_pylist()]
    assert {b"", b"x" * 10, b"acmeacme"} < {entry["payload"] for entry in found}


def test_a_payload_that_the_system_gives_in_pieces_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = tmp_path / "1.wal", os.pread
    segment(path)
    placed = list(entry_batches([pa.record_batch([pa.array([f"file:{path}"])], names=["path"])]))
    monkeypatch.setattr(os, "pread", lambda number, size, at: read(number, min(size, 3), at))
    with entries_with_payloads(tmp_path, placed) as entries:
        assert b"acmeacme" in {entry["payload"] for entry in entries}


def test_a_segment_that_is_missing_or_shorter_ends_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "1.wal"
    segment(path)
    placed = list(entry_batches([pa.record_batch([pa.array([f"file:{path}"])], names=["path"])]))
    path.write_bytes(path.read_bytes()[:80])
    with (
        entries_with_payloads(tmp_path, placed) as entries,
        pytest.raises(LogError, match=r"bytes at offset \d+$"),
    ):
        list(entries)
    path.unlink()
    with entries_with_payloads(tmp_path, placed) as entries, pytest.raises(LogError, match="is missing"):
        list(entries)
    with pytest.raises(TaskError, match="is missing"):
        list(entry_batches([pa.record_batch([pa.array([str(path)])], names=["path"])]))
