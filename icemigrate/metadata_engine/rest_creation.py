"""Requests that create a table on a REST server with field ids that the client chooses.

The protocol has no such request: servers number the fields of a new table themselves.  So a creation is
staged (``stage-create``), which returns its uuid, location and credentials, and then committed by updates
with the requirement ``assert-create``.  Where a server creates a staged table at once, a second commit sets
the ids; a property of the request shows that the table is this one, until that commit removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.table_properties import CREATION_PROPERTY

_OF_CREATION = frozenset({"assign-uuid", "upgrade-format-version", "set-location"})


def create_request(name: str, updates: Sequence[Json], creation: str, is_staged: bool) -> dict[str, Any]:
    """The body of a request to create a table (schema ``CreateTableRequest``).

    It has no partition spec and no sort order: they would refer to fields by ids that the server changes.

    :param creation: a text that no other creation has.
    :param is_staged: whether a commit creates the table, and not this request.
    """
    properties = {CREATION_PROPERTY: creation}
    for update in updates:
        if update["action"] == "set-properties":
            properties |= update["updates"]
        elif update["action"] == "upgrade-format-version":
            properties["format-version"] = str(update["format-version"])
    body: dict[str, Any] = {
        "name": name,
        "schema": next(dict(u["schema"]) for u in updates if u["action"] == "add-schema"),
        "stage-create": is_staged,
        "properties": properties,
    }
    location = next((u["location"] for u in updates if u["action"] == "set-location"), None)
    return body if location is None else {**body, "location": location}


def with_staged_identity(updates: Sequence[Json], staged: Json) -> tuple[Json, ...]:
    """The updates with the uuid and the location of a staged table, and without the request's property.

    :param staged: the metadata that the server answered.
    """
    others = [update for update in updates if update["action"] not in ("assign-uuid", "set-location")]
    return (
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        *others,
        {"action": "set-location", "location": staged["location"]},
        {"action": "remove-properties", "removals": [CREATION_PROPERTY]},
    )


def was_created_by(metadata: Json, creation: str) -> bool:
    """Whether a request created a table, which still has the server's ids."""
    return bool(metadata.get("properties", {}).get(CREATION_PROPERTY) == creation)


def missing_changes(updates: Sequence[Json]) -> tuple[Json, ...]:
    """The updates that a table still needs which the server created: all that a creation cannot give it."""
    return tuple(update for update in updates if update["action"] not in _OF_CREATION)
