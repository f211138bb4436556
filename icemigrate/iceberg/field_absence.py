"""Times at which a field did not exist, from a table's snapshots: rows written then have no value of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.iceberg.metadata_parts import schema_jsons, snapshot_from_json
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.schema_json import schema_from_json


class FieldAbsence(Frozen):
    """Sequence numbers at which a field existed.

    :param since: that of the snapshot with the values.
    :param there: ranges of later ones, inclusive, in which a row was or may have been written with the field;
        the last range has no end.
    :param is_exact: whether it certainly existed in all of them: expired snapshots leave gaps.
    """

    since: int
    there: tuple[tuple[int, int | None], ...]
    is_exact: bool = True


def find_field_absence(metadata: Mapping[str, Any], field_id: int, version: str) -> FieldAbsence:
    """When a field did not exist.

    Every commit of rows has its own number, one more than the last.  So expired snapshots leave unknown
    numbers, also between two snapshots without the field: it may have existed there.  They count as numbers
    with it, so that rows written then are never taken for older ones.

    :param metadata: the JSON of a metadata file of format version 2 or later.
    :param version: a tag, or the id of a snapshot, that has the field.
    """
    with_field = {
        json.get("schema-id", 0)
        for json in schema_jsons(metadata)
        if field_id in schema_index(schema_from_json(json))
    }
    snapshots = [snapshot_from_json(json) for json in metadata.get("snapshots", ())]
    ref = metadata.get("refs", {}).get(version)
    is_id = version.isascii() and version.isdigit()
    then = int(version) if ref is None and is_id else ref and ref["snapshot-id"]
    since = next((s.sequence_number for s in snapshots if s.id == then), 0)
    # A snapshot without a schema id may have been written under any schema.
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
    return FieldAbsence(
        since,
        (*there, (start, None)),
        all(later.get(number) is not None for number in range(since + 1, max(later, default=since) + 1)),
    )
