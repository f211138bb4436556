"""The write-ahead log that an observability backend fills and the pipeline drains.

.. code-block:: python

    from icemigrate.wal import EntryKind, Writer

    with Writer("/var/lib/telemetry/wal") as log:
        log.append("acme", EntryKind.TRACES, payload)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icemigrate.wal.entries import BadEntry, Entry, EntryKind, PayloadEncoding

if TYPE_CHECKING:
    from icemigrate.wal.log_writer import Fsync, Writer

__all__ = ["BadEntry", "Entry", "EntryKind", "Fsync", "PayloadEncoding", "Writer"]


def __getattr__(name: str) -> Any:
    # `check` needs the kinds of entries, and starts without the writer of the log.
    if name in {"Fsync", "Writer"}:
        from icemigrate.wal import log_writer

        return getattr(log_writer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
