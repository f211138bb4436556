"""The JSON of requests that change tables on a REST server; the names of the schemas are in brackets."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.table_store import TableCommit


def identifier(name: TableName) -> Json:
    """A table's name (``TableIdentifier``)."""
    return {"namespace": list(name.namespace), "name": name.name}


def table_change(commit: TableCommit) -> Json:
    """One change of a table (``CommitTableRequest``), with a condition for the table itself."""
    return {
        "identifier": identifier(commit.name),
        "requirements": [dict(one) for one in _once(_requirements(commit))],
        "updates": [dict(one) for one in commit.updates],
    }


def _once(requirements: Sequence[Json]) -> list[Json]:
    return [one for number, one in enumerate(requirements) if one not in requirements[:number]]


def _requirements(commit: TableCommit) -> tuple[Json, ...]:
    """The requirements of a commit, and that the table is the one that was read, or is missing."""
    if commit.base is None:
        return ({"type": "assert-create"}, *commit.requirements)
    return ({"type": "assert-table-uuid", "uuid": commit.base.json["table-uuid"]}, *commit.requirements)
