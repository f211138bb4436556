"""Whether a table can have values from before a moment, by the bounds in its manifests and without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from icemigrate.catalog.avro import AvroRecord, read_records
from icemigrate.catalog.file_layouts import DATA_FILE, STATUS, STATUS_DELETED, read_manifest_list
from icemigrate.catalog.metadata_files import ReadBytes

_VALUES, _NULLS, _LOWER_BOUNDS = (109, 119, 120), (110, 121, 122), (125, 126, 127)
"""Maps by field id: the ids of the map, its key and its value (specification, "Manifests")."""
_WANTED = (STATUS, DATA_FILE, *_VALUES, *_NULLS, *_LOWER_BOUNDS)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_UNITS: Mapping[str, tuple[timedelta, int]] = {
    "date": (timedelta(days=1), 4),
    "timestamp": (timedelta(microseconds=1), 8),
    "timestamptz": (timedelta(microseconds=1), 8),
}
"""By type: what a bound counts since 1970, and its number of bytes."""


def may_have_older_values(
    metadata: Mapping[str, Any], read: ReadBytes, field_id: int, type_: str, before: datetime
) -> bool:
    """Whether a data file of the current snapshot may have a value before a moment.

    ``False`` is certain.  Iceberg's own planning looks at the same bounds, so it finds no file then either.

    :param metadata: the table's complete metadata.
    :param type_: of the field: ``date``, ``timestamp`` or ``timestamptz``.
    :param before: in UTC; also for a timestamp without zone.
    """
    unit, length = _UNITS[type_]
    limit = (before - _EPOCH) // unit
    # The reader of the file may raise any exception, and Iceberg's library may read what this one cannot.
    try:
        found = read_manifest_list(metadata, read)
        return found is None or any(
            _may_be_older(entry[DATA_FILE], field_id, length, limit)
            for manifest in found.manifests
            for entry in read_records(read(manifest.path), _WANTED)
            if entry[STATUS] != STATUS_DELETED
        )
    except Exception:
        return True


def _may_be_older(file: AvroRecord, field_id: int, length: int, limit: int) -> bool:
    """Whether a file may have a value below the limit; one without a bound has none if all rows are null."""
    bound = _of_field(file, _LOWER_BOUNDS, field_id)
    if bound is None:
        values, nulls = _of_field(file, _VALUES, field_id), _of_field(file, _NULLS, field_id)
        return values is None or values != nulls
    # The bound of a file from before a promotion of the type counts in another unit.
    return len(bound) != length or int.from_bytes(bound, "little", signed=True) < limit


def _of_field(file: AvroRecord, ids: tuple[int, int, int], field_id: int) -> Any:
    whole, key, value = ids
    return next((pair[value] for pair in file.get(whole) or () if pair[key] == field_id), None)
