"""The columns of a new table, from the forms in which Python has a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from icemigrate.errors import UsageError
from icemigrate.files.write.entry_parts import column_entry
from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    import pyarrow as pa


def column_entries(schema: Any) -> list[Mapping[str, Any]]:
    """The columns of a schema, as the ``columns`` of a migration file.

    :param schema: types by name, such as ``{"id": "long"}``; a list of columns as in a migration file; a
        schema of Arrow or PySpark; or a table or frame of a library that exports Arrow data.
    :raises UsageError: it is none of these, or a column has a type that Iceberg lacks.
    """
    import pyarrow as pa

    if isinstance(schema, Mapping) and all(isinstance(type_, str) for type_ in schema.values()):
        return [{"name": name, "type": type_} for name, type_ in schema.items()]
    if isinstance(schema, (list, tuple)) and all(
        isinstance(one, Mapping) and "name" in one for one in schema
    ):
        return list(schema)
    if type(schema).__module__.startswith("pyspark.sql.types"):
        return [
            {"name": f.name, "type": f.dataType.simpleString(), "required": not f.nullable} for f in schema
        ]
    if hasattr(schema, "__arrow_c_schema__"):
        arrow = pa.schema(schema)
    elif hasattr(schema, "__arrow_c_stream__"):
        arrow = pa.RecordBatchReader.from_stream(schema).schema
    else:
        raise UsageError(
            f"a {type(schema).__name__} is no schema",
            "pass types by name, a list of columns as in a migration file, or a schema of Arrow or PySpark",
        )
    return [column_entry(Field(0, one.name, iceberg_type(one.type), not one.nullable)) for one in arrow]


def iceberg_type(given: pa.DataType) -> Type:
    """The smallest type of Iceberg that has all values of an Arrow type; times have microseconds.

    :raises UsageError: there is none.
    """
    from pyarrow import types

    if types.is_dictionary(given):
        return iceberg_type(given.value_type)
    if types.is_struct(given):
        fields = (Field(0, f.name, iceberg_type(f.type), not f.nullable) for f in given.fields)
        return Struct(tuple(fields))
    if types.is_map(given):
        value = given.item_field
        return Map(
            Field(0, "key", iceberg_type(given.key_type), required=True),
            Field(0, "value", iceberg_type(value.type), not value.nullable),
        )
    if types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given):
        element = given.value_field
        return List(Field(0, "element", iceberg_type(element.type), not element.nullable))
    if types.is_decimal(given):
        return Decimal(given.precision, given.scale)
    if types.is_fixed_size_binary(given):
        return Fixed(given.byte_width)
    if types.is_timestamp(given):
        return Primitive("timestamp" if given.tz is None else "timestamptz")
    name = _NAMES.get(str(given))
    if name is None:
        hint = "cast the column, or give the schema by names of types"
        raise UsageError(f"Iceberg has no type for `{given}` of Arrow", hint)
    return Decimal(20, 0) if name == "decimal" else Primitive(name)


_NAMES = {
    "bool": "boolean",
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "int"),
    **dict.fromkeys(("int64", "uint32"), "long"),
    "uint64": "decimal",
    **dict.fromkeys(("halffloat", "float"), "float"),
    "double": "double",
    **dict.fromkeys(("string", "large_string", "string_view"), "string"),
    **dict.fromkeys(("binary", "large_binary", "binary_view"), "binary"),
    **dict.fromkeys(("date32[day]", "date64[ms]"), "date"),
    **dict.fromkeys(("time32[s]", "time32[ms]", "time64[us]", "time64[ns]"), "time"),
    "extension<arrow.uuid>": "uuid",
}
"""Arrow's names of types, and Iceberg's."""
