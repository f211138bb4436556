"""Tables that are metadata and files in a folder, without a catalog: for tests of the metadata engine."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from icemigrate.catalog.metadata_files import read_local
from icemigrate.errors import EngineError
from icemigrate.iceberg.json_text import Json
from icemigrate.metadata_engine.apply_updates import apply_updates
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.snapshot_files import NewSnapshot, append_snapshot

COLUMNS = ({"id": 1, "name": "id", "type": "long"}, {"id": 2, "name": "region", "type": "string"})


class LocalFiles:
    """Files below a folder of this machine.

    :ivar refused: the end of locations that cannot be written.
    """

    def __init__(self) -> None:
        self.refused = "no such file"

    def read(self, location: str) -> bytes:
        return read_local(location)

    def write(self, location: str, *content: bytes) -> None:
        if location.endswith(self.refused):
            raise EngineError(f"{location} cannot be written")
        path = Path(location)
        assert not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(content))

    def write_file(self, location: str, source: Path) -> None:
        self.write(location, source.read_bytes())

    def delete(self, location: str) -> None:
        Path(location).unlink(missing_ok=True)


class FolderTable:
    """A table in a folder: unpartitioned, of a format version, with any columns."""

    def __init__(
        self, folder: Path, version: int, columns: tuple[Json, ...] = COLUMNS, **properties: str
    ) -> None:
        fields = [{"required": False, **column} for column in columns]
        schema = {"type": "struct", "schema-id": 0, "fields": fields}
        updates = [
            {"action": "assign-uuid", "uuid": str(uuid.uuid4())},
            {"action": "upgrade-format-version", "format-version": version},
            {"action": "set-location", "location": str(folder)},
            {"action": "add-schema", "schema": schema, "last-column-id": 99},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-properties", "updates": {k.replace("_", "."): v for k, v in properties.items()}},
        ]
        self.folder = folder
        self.files = LocalFiles()
        self.metadata = apply_updates(None, updates, previous_location=None, now_ms=1_700_000_000_000)

    @property
    def head(self) -> int | None:
        """The current snapshot's id."""
        main = self.metadata["refs"].get("main")
        return None if main is None else int(main["snapshot-id"])

    @property
    def snapshot(self) -> dict[str, Any]:
        """The newest snapshot, staged or not."""
        found: dict[str, Any] = self.metadata["snapshots"][-1]
        return found

    def append(self, *data: DataFile, is_staged: bool = False, **summary: str) -> NewSnapshot:
        """Commit a snapshot; a staged one moves no branch."""
        new = append_snapshot(
            self.metadata, self.files, summary, data=data, parent_id=self.head, now_ms=1_700_000_001_000
        )
        self.commit({"action": "add-snapshot", "snapshot": new.json})
        if not is_staged:
            number = new.json["snapshot-id"]
            ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
            self.commit(ref)
        return new

    def commit(self, *updates: Json) -> None:
        """Apply updates of the REST protocol."""
        self.metadata = apply_updates(
            self.metadata, updates, previous_location=None, now_ms=1_700_000_001_000
        )

    def write_metadata(self) -> Path:
        """Write the metadata for readers; the file."""
        path = self.folder / "metadata" / f"{uuid.uuid4()}.metadata.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.metadata), encoding="utf-8")
        return path
