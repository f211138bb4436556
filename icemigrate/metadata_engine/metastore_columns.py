"""The columns that Hive and Glue show of an Iceberg table, as Iceberg's Java library writes them.

Iceberg's readers ignore them; Hive, Athena and the consoles list them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icemigrate.errors import EngineError
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName

ZONED_TIMESTAMP = "timestamp with local time zone"
"""Hive's type of a timestamp with a time zone, since Hive 3; Hive 2 has only ``timestamp``."""

_COMMON = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "fixed": "binary",
}
_HIVE = {**_COMMON, "timestamptz": ZONED_TIMESTAMP, "variant": "unknown"}
_GLUE = {
    **_COMMON,
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp_nano",
    "timestamptz_ns": "timestamp_nano",
}


Column = tuple[str, str, "str | None"]
"""Name, type and comment."""


def hive_columns(metadata: Json, name: TableName, zoned: Callable[[], str]) -> list[Column]:
    """The columns of a table in Hive (``HiveSchemaUtil.convert``).

    :param zoned: gives Hive's type of ``timestamptz``; called only for tables with such a column.
    :raises EngineError: Hive has no such type; the Java library refuses it too.
    """

    def primitive(text: str) -> str:
        found = _HIVE.get(_base_of(text))
        if found is None:
            raise EngineError(
                f"table `{name}` has a column of type `{text}`, which Hive does not have",
                "keep the table in another catalog, or use another type",
            )
        return zoned() if found == ZONED_TIMESTAMP else found

    fields = current_schema(metadata)["fields"]
    return [(field["name"], _type_text(field["type"], primitive), field.get("doc")) for field in fields]


def glue_columns(metadata: Json, known: Json | None) -> list[dict[str, Any]]:
    """The current columns, then former ones (``IcebergToGlueConverter.toColumns``).

    :param known: the table as Glue has it; its comments stay where the schema has none.
    """
    before = ((known or {}).get("StorageDescriptor") or {}).get("Columns") or ()
    comments: dict[str, str] = {}
    for column in before:
        if column.get("Comment"):
            comments.setdefault(column["Name"], column["Comment"])
    columns: dict[str, dict[str, Any]] = {}
    current = current_schema(metadata)
    for schema in (current, *metadata["schemas"]):
        for field in schema["fields"]:
            column = {
                "Name": field["name"],
                "Type": _type_text(field["type"], lambda text: _GLUE.get(_base_of(text), _base_of(text))),
                "Parameters": {
                    "iceberg.field.id": str(field["id"]),
                    "iceberg.field.optional": str(not field["required"]).lower(),
                    "iceberg.field.current": str(schema is current).lower(),
                },
            }
            comment = field.get("doc") or comments.get(field["name"])
            columns.setdefault(field["name"], {**column, "Comment": comment} if comment else column)
    return list(columns.values())


def current_schema(metadata: Json) -> Json:
    """The current schema of a table."""
    current = metadata["current-schema-id"]
    found: Json = next(schema for schema in metadata["schemas"] if schema["schema-id"] == current)
    return found


def _base_of(text: str) -> str:
    """A primitive type without its parameters: ``fixed`` of ``fixed[16]``."""
    return text.partition("[")[0].partition("(")[0]


def _type_text(type_: Any, primitive: Callable[[str], str]) -> str:
    if isinstance(type_, str):
        if _base_of(type_) == "decimal":
            return type_.replace(" ", "")
        return primitive(type_)
    if type_["type"] == "list":
        return f"array<{_type_text(type_['element'], primitive)}>"
    if type_["type"] == "map":
        return f"map<{_type_text(type_['key'], primitive)},{_type_text(type_['value'], primitive)}>"
    fields = (f"{field['name']}:{_type_text(field['type'], primitive)}" for field in type_["fields"])
    return f"struct<{','.join(fields)}>"
