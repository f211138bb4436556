"""When a field was not there, as a table's snapshots tell: a row that was written then has no value of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.model.json_form import schema_from_json
from icemigrate.model.metadata_parts import schema_jsons, snapshot_from_json
from icemigrate.model.schema import index


class Absence(Frozen):
    """What sequence numbers tell of rows: whether a field was there when they were written.

    :param since: of the snapshot whose values are looked at.
    :param there: ranges of later ones, their ends included, under which a row was written with the field, or
        may have been; the last of them has no end.
    :param is_exact: whether it surely was there in all of them: snapshots that have expired tell nothing.
    """

    since: int
    there: tuple[tuple[int, int | None], ...]
    is_exact: bool = True


def absence(metadata: Mapping[str, Any], field_id: int, version: str) -> Absence:
    """When a field was not there.

    Every commit of rows has a number of its own, one more than the last.  So where snapshots have expired
    there are numbers of which nothing tells, also between two snapshots without the field: it may have been
    back.  They are taken for ones with it, so that what was written then is never taken for older than it is.

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
    # One that does not say under which schema it was written may have been under any.
    later = {
        s.sequence_number: None if s.schema_id is None else s.schema_id in with_field
        for s in snapshots
        if s.sequence_number > since
    }
    there: list[tuple[int, int | None]] = []
    start = since + 1
    for number in sorted(number for number, has in later.items() if has is False):
        if number > start:
            there.append((start, number - 1))
        start = number + 1
    return Absence(
        since,
        (*there, (start, None)),
        all(later.get(number) is not None for number in range(since + 1, max(later, default=since) + 1)),
    )
