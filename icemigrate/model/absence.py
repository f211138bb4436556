"""When a field was not there, as a table's snapshots tell: a row that was written then has no value of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.model.json_form import schema_from_json
from icemigrate.model.metadata_parts import schema_jsons, snapshot_from_json
from icemigrate.model.schema import index


class Absence(Frozen):
    """Sequence numbers around the time without a field.

    :param since: of the snapshot whose values are looked at.
    :param last: of the last snapshot with the field before it went; ``since`` or later.
    :param back: of the first snapshot with it after it came back; ``None`` where nothing was written since.
    """

    since: int
    last: int
    back: int | None


def absence(metadata: Mapping[str, Any], field_id: int, version: str) -> Absence:
    """When a field was last not there.

    Where snapshots have expired the time may be told too short, and never too long.

    :param metadata: the JSON of a metadata file of format version 2 or later.
    :param version: a tag, or the id of a snapshot, that has the field.
    """
    with_field = {
        json.get("schema-id", 0)
        for json in schema_jsons(metadata)
        if field_id in index(schema_from_json(json))
    }
    snapshots = [snapshot_from_json(json) for json in metadata.get("snapshots", ())]
    ref = metadata.get("refs", {}).get(version)
    then = int(version) if ref is None and version.isdigit() else ref and ref["snapshot-id"]
    since = next((s.sequence_number for s in snapshots if s.id == then), 0)
    back: int | None = None
    was_gone = False
    for snapshot in sorted(snapshots, key=lambda s: s.sequence_number, reverse=True):
        if snapshot.sequence_number <= since:
            break
        # One that does not say under which schema it was written may have been under any.
        if snapshot.schema_id is not None and snapshot.schema_id not in with_field:
            was_gone = True
        elif was_gone:
            return Absence(since, snapshot.sequence_number, back)
        else:
            back = snapshot.sequence_number
    return Absence(since, since, back)
