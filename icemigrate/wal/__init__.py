"""The write-ahead log that an observability backend fills and the pipeline drains.

.. code-block:: python

    from icemigrate.wal import EntryKind, Writer

    with Writer("/var/lib/telemetry/wal") as log:
        log.append("acme", EntryKind.TRACES, payload)
"""

from __future__ import annotations

from icemigrate.wal.entries import BadEntry, Entry, EntryKind, PayloadEncoding
from icemigrate.wal.log_writer import Fsync, Writer

__all__ = ["BadEntry", "Entry", "EntryKind", "Fsync", "PayloadEncoding", "Writer"]
