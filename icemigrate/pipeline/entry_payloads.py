"""The payloads of entries in a local log, which tasks read where they need them.

Spark orders and distributes the places of payloads instead of the payloads: its memory and its disk have
some bytes of each entry.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from icemigrate.errors import os_error_reason
from icemigrate.pipeline.segment_entries import missing_segment
from icemigrate.wal.log_folder import LogError, open_sealed
from icemigrate.wal.storage_path import AnyPath


class EntryPayloads:
    """Reads payloads; the segment that was read last is open.

    :param log: the folder of the segments.
    """

    def __init__(self, log: AnyPath) -> None:
        self._log, self._name, self._number = log, "", -1

    def of(self, batch: Any) -> Iterator[Mapping[str, Any]]:
        """The entries of an Arrow batch, each with its payload; no more than one is in memory.

        :param batch: with the columns of :data:`~icemigrate.pipeline.segment_entries.ENTRY_COLUMNS`.
        :raises LogError: a segment cannot be read.
        """
        names = [name for name in batch.schema.names if name != "payload"]
        payloads = batch.column("payload")
        for number, entry in enumerate(batch.select(names).to_pylist()):
            payload = payloads[number].as_py()
            if payload is None:
                payload = self._read(entry["segment"], entry["payload_at"], entry["payload_size"])
            yield {**entry, "payload": payload}

    def close(self) -> None:
        """Close the segment that is open."""
        if self._number >= 0:
            os.close(self._number)
        self._name, self._number = "", -1

    def _read(self, name: str, at: int, size: int) -> bytes:
        path = self._log / name
        assert isinstance(path, Path), "a task of a remote log has the payloads"
        try:
            if name != self._name:
                self.close()
                self._number = open_sealed(path)
                self._name = name
            found = _read_up_to(self._number, size, at)
        except FileNotFoundError:
            raise missing_segment(path) from None
        except OSError as error:
            raise LogError(
                f"the segment {path} cannot be read: {os_error_reason(error)}",
                "run the command as a user who can read the log",
            ) from error
        if len(found) != size:
            raise LogError(
                f"the segment {path} is shorter than it was: it has no {size:,} bytes at offset {at}",
                "restore the segment: the next run repeats its batch",
            )
        return found


def _read_up_to(number: int, size: int, at: int) -> bytes:
    """So many bytes of an open file, or fewer at its end; one call of the operating system may give fewer."""
    parts = list[bytes]()
    while size and (part := os.pread(number, size, at)):
        parts.append(part)
        size, at = size - len(part), at + len(part)
    return b"".join(parts)


@contextmanager
def entries_with_payloads(log: AnyPath, batches: Iterable[Any]) -> Iterator[Iterator[Mapping[str, Any]]]:
    """The entries of a task's Arrow batches with their payloads, until the block ends.

    :param log: the folder of the segments.
    """
    payloads = EntryPayloads(log)
    try:
        yield (entry for batch in batches for entry in payloads.of(batch))
    finally:
        payloads.close()
