"""Under which schema a file was written, as far as snapshots tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from icemigrate.engine.manifests import File, Look, each
from icemigrate.model.schema import Schema


@dataclass(slots=True)
class WrittenUnder:
    """The schema of the snapshot that added a file (specification, "Snapshots", ``schema-id``).

    That snapshot has the file's sequence number; where format version 1 has none, the snapshot that wrote its
    manifest stands for it, which is no older.
    """

    look: Look
    _snapshots: dict[int, Any] = field(default_factory=dict)
    _schemas: dict[int, Schema | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for snapshot in each(self.look.table.snapshots()):
            self._snapshots[snapshot.sequenceNumber()] = snapshot
        self._snapshots.pop(0, None)

    def __call__(self, file: File) -> Schema | None:
        """The schema; ``None`` where the snapshot has expired, or does not say it."""
        snapshot = self._snapshots.get(file.sequence or 0)
        if snapshot is None and file.carrier is not None:
            snapshot = self.look.table.snapshot(file.carrier)
        number = None if snapshot is None else snapshot.schemaId()
        if number is None:
            return None
        if number not in self._schemas:
            java = self.look.table.schemas().get(number)
            self._schemas[number] = None if java is None else self.look.schema(java)
        return self._schemas[number]
