"""The parameters of an Iceberg table in a Hive metastore, as Iceberg's Java library writes them.

The rules are those of ``HMSTablePropertyHelper`` and ``HiveTableOperations``: parameters that Hive or another
client set stay, and the table's properties are copied.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.errors import EngineError
from icemigrate.iceberg.json_text import Json, write_json
from icemigrate.metadata_engine.location_swaps import LocationSwap
from icemigrate.metadata_engine.metastore_columns import current_schema

LOCATION_PARAMETER = "metadata_location"
OWNER_PROPERTY = "hive.metastore.table.owner"
"""The property that names the owner of a new table in Hive; it is no parameter."""

_LONGEST_VALUE = 32672
"""``iceberg.hive.table-property-max-size``: the longest value of a parameter in Hive 2.3 and later."""
_TRANSLATED = {"gc.enabled": "external.table.purge"}
_STATISTICS = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}
_STORAGE_HANDLER = "storage_handler"
_HIVE_HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
_ENGINE_ENABLED = "engine.hive.enabled"


def hive_parameters(swap: LocationSwap, known: Mapping[str, str]) -> dict[str, str]:
    """The parameters after a commit.

    :param known: the parameters before.
    :raises EngineError: the table is encrypted: Hive keeps a hash of the metadata, which only Java computes.
    """
    metadata, base = swap.after.json, swap.base
    properties: Mapping[str, str] = metadata["properties"]
    if "encryption.key-id" in properties:
        raise EngineError(f"table `{swap.name}` is encrypted", "use `--apply-with spark` for it")
    found = dict(known)
    for key, value in properties.items():
        if key.lower() != OWNER_PROPERTY:
            found[_TRANSLATED.get(key, key)] = value
    for key in set() if base is None else base.json["properties"].keys() - properties.keys():
        found.pop(key, None)
    found |= {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "uuid": metadata["table-uuid"],
        LOCATION_PARAMETER: swap.after.location,
    }
    if base is not None:
        found["previous_metadata_location"] = base.location
    if has_hive_engine(metadata, known):
        found[_STORAGE_HANDLER] = _HIVE_HANDLER
    else:
        found.pop(_STORAGE_HANDLER, None)
    found.pop("COLUMN_STATS_ACCURATE", None)
    found["DO_NOT_UPDATE_STATS"] = "true"
    return found | _replaced(found, _described(metadata))


def has_hive_engine(metadata: Json, known: Mapping[str, str]) -> bool:
    """Whether Hive itself can query the table: its property decides, else the last writer's configuration."""
    own = metadata["properties"].get(_ENGINE_ENABLED)
    return known.get(_STORAGE_HANDLER) == _HIVE_HANDLER if own is None else str(own).lower() == "true"


def _replaced(found: dict[str, str], described: Mapping[str, str | None]) -> dict[str, str]:
    """The descriptions that fit into a parameter; older ones are removed."""
    for key in described:
        found.pop(key, None)
    given = {key: value for key, value in described.items() if value is not None}
    return {key: value for key, value in given.items() if len(value) <= _LONGEST_VALUE}


def _described(metadata: Json) -> dict[str, str | None]:
    current = metadata.get("current-snapshot-id")
    snapshot = next((one for one in metadata.get("snapshots") or () if one["snapshot-id"] == current), None)
    summary = {} if snapshot is None else dict(snapshot.get("summary") or {})
    summary.pop("operation", None)
    spec = _by_id(metadata["partition-specs"], "spec-id", metadata["default-spec-id"])
    order = _by_id(metadata["sort-orders"], "order-id", metadata["default-sort-order-id"])
    statistics = {key: summary[name] for key, name in _STATISTICS.items() if name in summary}
    return {
        **statistics,
        "current-schema": write_json(dict(current_schema(metadata))),
        "current-snapshot-id": None if snapshot is None else str(snapshot["snapshot-id"]),
        "current-snapshot-timestamp-ms": None if snapshot is None else str(snapshot["timestamp-ms"]),
        "current-snapshot-summary": None if snapshot is None else write_json(summary),
        "snapshot-count": str(len(metadata.get("snapshots") or ())),
        "default-partition-spec": write_json(spec) if spec["fields"] else None,
        "default-sort-order": write_json(order) if order["fields"] else None,
    }


def _by_id(parts: list[Json], key: str, number: int) -> Json:
    return next(part for part in parts if part[key] == number)
