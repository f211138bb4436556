"""The JSON of requests that change tables on a REST server; the names of the schemas are in brackets."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.table_store import Json, TableCommit


def identifier(name: TableName) -> Json:
    """A table's name (``TableIdentifier``)."""
    return {"namespace": list(name.namespace), "name": name.name}


def table_change(name: TableName, requirements: Sequence[Json], updates: Sequence[Json]) -> Json:
    """One change of a table (``CommitTableRequest``)."""
    return {
        "identifier": identifier(name),
        "requirements": [dict(one) for one in _once(requirements)],
        "updates": [dict(one) for one in updates],
    }


def _once(requirements: Sequence[Json]) -> list[Json]:
    return [one for number, one in enumerate(requirements) if one not in requirements[:number]]


def own_requirements(commit: TableCommit) -> tuple[Json, ...]:
    """The requirements of a commit, and that the table is the one that was read, or is missing."""
    if commit.base is None:
        return ({"type": "assert-create"}, *commit.requirements)
    return ({"type": "assert-table-uuid", "uuid": commit.base.json["table-uuid"]}, *commit.requirements)
