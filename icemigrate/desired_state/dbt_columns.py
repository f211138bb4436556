"""Reads the columns of a dbt model, a seed or a snapshot from its properties file (``schema.yml``).

A column without ``data_type`` keeps its type.  The order of the columns counts for new ones only, and only a
constraint ``not_null`` says that a column is required: a test is not enforced.
"""

from __future__ import annotations

from typing import Any

from icemigrate.desired_state.desired_table import DesiredTable, FieldBuilder, TypeReading
from icemigrate.desired_state.named_columns import (
    chosen_object,
    objects_of,
    optional_doc,
    require_valid,
    sql_reading,
)
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import Mistakes
from icemigrate.files.parse.json_schemas import compile_schema
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read.node_values import as_mapping, list_items, scalar_text
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.types import Field

_KEYS = ("models", "seeds", "snapshots")
_CONSTRAINT: dict[str, Any] = {
    "title": "constraint",
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string"}},
}
_COLUMN: dict[str, Any] = {
    "title": "column",
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "data_type": {"type": "string", "minLength": 1, "examples": ["bigint"]},
        "description": {"type": ["string", "null"]},
        "constraints": {"type": "array", "items": _CONSTRAINT},
    },
}
_MODEL: dict[str, Any] = {
    "title": "model",
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "columns": {"type": "array", "items": _COLUMN},
    },
}
_SCHEMA = compile_schema(
    {
        "title": "properties file",
        "type": "object",
        "properties": {key: {"type": "array", "items": _MODEL} for key in _KEYS},
    }
)
_NO_TYPE = "write `data_type` of the new column, such as `data_type: string`"


def is_dbt_file(document: YamlNode) -> bool:
    """Whether a document is a properties file of dbt."""
    return isinstance(document, YamlMapping) and any(document.get(key) is not None for key in _KEYS)


def read_dbt_columns(document: YamlNode, name: TableName) -> DesiredTable:
    """The table that a model describes.

    :raises Mistakes: the file has another form, no model has the table's name, or a type is not readable.
    """
    require_valid(document, _SCHEMA)
    models = [one for key in _KEYS for one in objects_of(document, key)]
    if not models:
        message = "the file describes no model, seed or snapshot"
        raise Mistakes((Diagnostic("empty-value", message, document.place),))
    model = chosen_object(models, name, "model", ("name", "alias"))
    builder, problems = FieldBuilder(), list[Diagnostic]()
    columns = tuple(_column(as_mapping(one), builder, problems) for one in list_items(model.get("columns")))
    if not columns:
        message = f"the model `{scalar_text(model.get('name'))}` has no `columns`"
        problems.append(Diagnostic("empty-value", message, model.place, "list its columns"))
    if problems:
        raise Mistakes(tuple(problems))
    return builder.table(name, columns, model.place, is_ordered=False)


def _column(node: YamlMapping, builder: FieldBuilder, problems: list[Diagnostic]) -> Field:
    name, type_ = scalar_text(node.get("name")), node.get("data_type")
    reading = TypeReading(None, question=_NO_TYPE)
    if isinstance(type_, YamlScalar):
        reading = sql_reading(type_, (name,), builder, problems)
    constraints = (as_mapping(one) for one in list_items(node.get("constraints")))
    return builder.field(
        name,
        reading,
        required=any(scalar_text(one.get("type")) == "not_null" for one in constraints),
        doc=optional_doc(node),
        place=node.place if type_ is None else type_.place,
    )
