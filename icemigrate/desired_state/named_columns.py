"""What the readers of dbt models and data contracts share: one of several objects in a file is the table."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.desired_state.desired_table import FieldBuilder, TypeReading
from icemigrate.desired_state.sql_types import UnreadableType, read_sql_type
from icemigrate.diagnostics import Diagnostic, did_you_mean
from icemigrate.errors import Mistakes
from icemigrate.files.parse.json_schemas import JsonSchema
from icemigrate.files.parse.schema_validation import validate_node
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar
from icemigrate.files.read.node_values import as_mapping, list_items, scalar_text
from icemigrate.iceberg.names import FieldPath, TableName, format_path


def require_valid(document: YamlNode, schema: JsonSchema) -> None:
    """Refuse a document of another form.

    :raises Mistakes: with all diagnostics.
    """
    if found := validate_node(document, schema):
        raise Mistakes(found)


def chosen_object(
    objects: Sequence[YamlMapping], name: TableName, what: str, keys: Sequence[str]
) -> YamlMapping:
    """The object that describes a table: the one with its name, or the only one.

    :param objects: at least one.
    :param what: the word for one of them.
    :param keys: the keys that may have its name.
    :raises Mistakes: none or several of them have the name.
    """
    if len(objects) == 1:
        return objects[0]
    fitting = [one for one in objects if any(_is_named(one, key, name) for key in keys)]
    if len(fitting) == 1:
        return fitting[0]
    names = [scalar_text(one.get("name")) for one in objects]
    few = ", ".join(f"`{one}`" for one in names[:_MOST_NAMED])
    hint = did_you_mean(name.name, names) or f"the file has {few}"
    count = f"several {what}s have" if fitting else f"no {what} has"
    message = f"{count} the name of `{name}` in this file"
    place = fitting[1].place if fitting else objects[0].place
    raise Mistakes((Diagnostic("unknown-table", message, place, hint),))


_MOST_NAMED = 5


def plain_text(node: YamlNode | None) -> str:
    """The text of a scalar; empty for anything else, and for null."""
    return scalar_text(node) if isinstance(node, YamlScalar) and node.value is not None else ""


def mapping_or_empty(node: YamlNode | None, holder: YamlMapping) -> YamlMapping:
    """A mapping; an empty one at the position of its holder for anything else."""
    return node if isinstance(node, YamlMapping) else YamlMapping((), holder.place)


def _is_named(one: YamlMapping, key: str, name: TableName) -> bool:
    return plain_text(one.get(key)).replace("`", "").replace('"', "").rpartition(".")[2] == name.name


def objects_of(document: YamlNode, key: str) -> tuple[YamlMapping, ...]:
    """The mappings in a list."""
    return tuple(as_mapping(one) for one in list_items(as_mapping(document).get(key)))


def optional_doc(node: YamlMapping) -> str | None:
    """The description, without the line breaks around it; ``None`` without one."""
    found = node.get("description")
    return scalar_text(found).strip() or None if isinstance(found, YamlScalar) and found.value else None


def is_true(node: YamlNode | None) -> bool:
    """Whether a value is ``true``."""
    return isinstance(node, YamlScalar) and node.value is True


def sql_reading(
    node: YamlScalar, path: FieldPath, builder: FieldBuilder, problems: list[Diagnostic]
) -> TypeReading:
    """The type that a scalar has as SQL; reports one that cannot be declared."""
    try:
        return read_sql_type(scalar_text(node), builder)
    except UnreadableType as error:
        message = f"the type of `{format_path(path)}` cannot be declared: {error}"
        problems.append(Diagnostic("unclear-type", message, node.place, error.hint))
        return TypeReading(None)
