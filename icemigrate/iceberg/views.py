"""Views of a catalog, as Iceberg's view specification stores them.

Their names and their SQL come from anyone who may create a view: the SQL is parsed, never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import BadMetadata


class ViewQuery(Frozen):
    """The query of a view in one dialect."""

    dialect: str
    sql: str


class View(Frozen):
    """A view, in its current version.

    :param queries: the same query in each dialect; empty where the view cannot be read.
    :param namespace: the namespace of table names without one.
    :param problem: why it cannot be read; ``None`` where it can.
    :param properties: empty where the view cannot be read.
    :param created_ms: when its oldest known version was created, in milliseconds since 1970.
    """

    name: TableName
    queries: tuple[ViewQuery, ...] = ()
    namespace: tuple[str, ...] = ()
    problem: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    created_ms: int | None = None


def view_from_json(json: Any, name: TableName) -> View:
    """The view of a metadata file.

    :raises BadMetadata: it does not match the specification.
    """
    try:
        (version,) = (v for v in json["versions"] if v["version-id"] == json["current-version-id"])
        stored = [r for r in version["representations"] if r["type"] == "sql"]
        queries = tuple(ViewQuery(_text(r["dialect"]).lower(), _text(r["sql"])) for r in stored)
        namespace = tuple(map(_text, version["default-namespace"]))
        properties = {_text(key): _text(value) for key, value in (json.get("properties") or {}).items()}
        created_ms = min(
            (int(v["timestamp-ms"]) for v in json["versions"] if "timestamp-ms" in v), default=None
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BadMetadata("it is not the metadata of a view") from error
    if not queries:
        raise BadMetadata("it has no SQL")
    return View(name, queries, namespace, None, properties, created_ms)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
