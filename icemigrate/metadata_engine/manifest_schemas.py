"""The columns of manifest lists and manifests in each format version, and their Avro schemas.

Names, order and documentation are those of Iceberg's Java library 1.12, so that its files and these have the
same schemas.  Readers identify every field by its id.

* `Manifest Lists <https://iceberg.apache.org/spec/#manifest-lists>`_
* `Manifests <https://iceberg.apache.org/spec/#manifests>`_ and `Data File Fields
  <https://iceberg.apache.org/spec/#data-file-fields>`_
* `Appendix A: Avro <https://iceberg.apache.org/spec/#avro>`_
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from icemigrate.iceberg.types import Decimal, Field, Fixed, List, Map, Primitive, Struct, Type

NEWEST_FORMAT_VERSION = 3

_BOOLEAN, _INT, _LONG = Primitive("boolean"), Primitive("int"), Primitive("long")
_STRING, _BINARY = Primitive("string"), Primitive("binary")

PATH, LENGTH, SPEC_ID, CONTENT, SEQUENCE_NUMBER, MIN_SEQUENCE_NUMBER = 500, 501, 502, 517, 515, 516
ADDED_SNAPSHOT_ID, ADDED_FILES, EXISTING_FILES, DELETED_FILES = 503, 504, 505, 506
ADDED_ROWS, EXISTING_ROWS, DELETED_ROWS = 512, 513, 514
PARTITIONS, PARTITION_SUMMARY, KEY_METADATA, FIRST_ROW_ID = 507, 508, 519, 520
COUNTS = (ADDED_FILES, EXISTING_FILES, DELETED_FILES, ADDED_ROWS, EXISTING_ROWS, DELETED_ROWS)

_SUMMARY = Struct(
    (
        Field(509, "contains_null", _BOOLEAN, True, "True if any file has a null partition value"),
        Field(518, "contains_nan", _BOOLEAN, doc="True if any file has a nan partition value"),
        Field(510, "lower_bound", _BINARY, doc="Partition lower bound for all files"),
        Field(511, "upper_bound", _BINARY, doc="Partition upper bound for all files"),
    )
)
_OF_LISTS = (
    Field(PATH, "manifest_path", _STRING, True, "Location URI with FS scheme"),
    Field(LENGTH, "manifest_length", _LONG, True, "Total file size in bytes"),
    Field(SPEC_ID, "partition_spec_id", _INT, True, "Spec ID used to write"),
    Field(CONTENT, "content", _INT, True, "Contents of the manifest: 0=data, 1=deletes"),
    Field(SEQUENCE_NUMBER, "sequence_number", _LONG, True, "Sequence number when the manifest was added"),
    Field(MIN_SEQUENCE_NUMBER, "min_sequence_number", _LONG, True, "Lowest sequence number in the manifest"),
    Field(ADDED_SNAPSHOT_ID, "added_snapshot_id", _LONG, True, "Snapshot ID that added the manifest"),
    Field(ADDED_FILES, "added_files_count", _INT, True, "Added entry count"),
    Field(EXISTING_FILES, "existing_files_count", _INT, True, "Existing entry count"),
    Field(DELETED_FILES, "deleted_files_count", _INT, True, "Deleted entry count"),
    Field(ADDED_ROWS, "added_rows_count", _LONG, True, "Added rows count"),
    Field(EXISTING_ROWS, "existing_rows_count", _LONG, True, "Existing rows count"),
    Field(DELETED_ROWS, "deleted_rows_count", _LONG, True, "Deleted rows count"),
    Field(
        PARTITIONS,
        "partitions",
        List(Field(PARTITION_SUMMARY, "element", _SUMMARY, True)),
        doc="Summary for each partition",
    ),
    Field(KEY_METADATA, "key_metadata", _BINARY, doc="Encryption key metadata blob"),
    Field(
        FIRST_ROW_ID, "first_row_id", _LONG, doc="Starting row ID to assign to new rows in ADDED data files"
    ),
)
_LIST_ORDER = {
    1: (
        *(PATH, LENGTH, SPEC_ID, ADDED_SNAPSHOT_ID, ADDED_FILES, EXISTING_FILES, DELETED_FILES),
        *(PARTITIONS, ADDED_ROWS, EXISTING_ROWS, DELETED_ROWS, KEY_METADATA),
    ),
    2: tuple(f.id for f in _OF_LISTS if f.id != FIRST_ROW_ID),
    3: tuple(f.id for f in _OF_LISTS),
}
SPECIFIED_IDS = frozenset(f.id for f in (*_OF_LISTS, *_SUMMARY.fields))
"""The fields of lists that some format version has."""


def manifest_list_fields(format_version: int) -> tuple[Field, ...]:
    """The columns of a manifest list, in order; counts are optional in version 1."""
    by_id = {f.id: f for f in _OF_LISTS}
    optional = COUNTS if format_version == 1 else ()
    found = (by_id[number] for number in _LIST_ORDER[format_version])
    return tuple(Field(f.id, f.name, f.type, f.required and f.id not in optional, f.doc) for f in found)


_DATA_FILE_CONTENT = "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"
_PARTITION_TUPLE = "Partition data tuple, schema based on the partition spec"
_REFERENCED = "Fully qualified location (URI with FS scheme) of a data file that all deletes reference"


def manifest_fields(format_version: int, partition: Struct) -> tuple[Field, ...]:
    """The columns of a manifest, in order.

    :param partition: a field for each field of the manifest's partition spec.
    """
    sequence = (Field(3, "sequence_number", _LONG), Field(4, "file_sequence_number", _LONG))
    return (
        Field(0, "status", _INT, True),
        Field(1, "snapshot_id", _LONG),
        *(sequence if format_version > 1 else ()),
        Field(2, "data_file", Struct(_data_file_fields(format_version, partition)), True),
    )


def _data_file_fields(format_version: int, partition: Struct) -> tuple[Field, ...]:
    is_first = format_version == 1
    content = Field(134, "content", _INT, True, _DATA_FILE_CONTENT)
    block_size = Field(105, "block_size_in_bytes", _LONG, True)
    equality = Field(135, "equality_ids", _list(136, _INT), doc="Equality comparison field IDs")
    referenced = Field(143, "referenced_data_file", _STRING, doc=_REFERENCED)
    first_row_id = Field(
        142, "first_row_id", _LONG, doc="The first row ID assigned to the first row in the data file"
    )
    content_offset = Field(
        144, "content_offset", _LONG, doc="The offset in the file where the content starts"
    )
    content_size = Field(
        145, "content_size_in_bytes", _LONG, doc="The length of referenced content stored in the file"
    )
    return (
        *(() if is_first else (content,)),
        Field(100, "file_path", _STRING, True, "Location URI with FS scheme"),
        Field(101, "file_format", _STRING, True, "File format name: avro, orc, or parquet"),
        Field(102, "partition", partition, True, None if is_first else _PARTITION_TUPLE),
        Field(103, "record_count", _LONG, True, "Number of records in the file"),
        Field(104, "file_size_in_bytes", _LONG, True, "Total file size in bytes"),
        *((block_size,) if is_first else ()),
        Field(108, "column_sizes", _map(117, _LONG), doc="Map of column id to total size on disk"),
        Field(
            109,
            "value_counts",
            _map(119, _LONG),
            doc="Map of column id to total count, including null and NaN",
        ),
        Field(110, "null_value_counts", _map(121, _LONG), doc="Map of column id to null value count"),
        Field(
            137,
            "nan_value_counts",
            _map(138, _LONG),
            doc="Map of column id to number of NaN values in the column",
        ),
        Field(125, "lower_bounds", _map(126, _BINARY), doc="Map of column id to lower bound"),
        Field(128, "upper_bounds", _map(129, _BINARY), doc="Map of column id to upper bound"),
        Field(131, "key_metadata", _BINARY, doc="Encryption key metadata blob"),
        Field(132, "split_offsets", _list(133, _LONG), doc="Splittable offsets"),
        *(() if is_first else (equality,)),
        Field(140, "sort_order_id", _INT, doc="Sort order ID"),
        *((first_row_id,) if format_version > 2 else ()),
        *(() if is_first else (referenced,)),
        *((content_offset, content_size) if format_version > 2 else ()),
    )


def _map(key_id: int, value: Type) -> Map:
    """A map by column id; the value's field id follows the key's."""
    return Map(Field(key_id, "key", _INT, True), Field(key_id + 1, "value", value, True))


def _list(element_id: int, element: Type) -> List:
    return List(Field(element_id, "element", element, True))


def avro_record(name: str, fields: Sequence[Field]) -> dict[str, Any]:
    """The Avro schema of a record; an optional field is a union with null (Appendix A).

    Avro allows one definition of a name.  A second field of a type refers to the first one in files of Java's
    library, and PyIceberg reads no such reference: here it defines the type again, with its field id in the
    name.  Readers compare no names of types.
    """
    return _record(name, fields, set())


def _record(name: str, fields: Sequence[Field], defined: set[str]) -> dict[str, Any]:
    """The schema of a record.

    :param defined: names of types that are defined before it; it gets those that the record defines.
    """
    return {"type": "record", "name": name, "fields": [_avro_field(f, defined) for f in fields]}


def _avro_field(field: Field, defined: set[str]) -> dict[str, Any]:
    type_ = _avro_type(field.type, field.id, defined)
    out: dict[str, Any] = {"name": avro_name(field.name), "type": type_}
    if not field.required and type_ != "null":
        out["type"] = ["null", type_]
    if field.doc is not None:
        out["doc"] = field.doc
    if not field.required:
        out["default"] = None
    out["field-id"] = field.id
    if out["name"] != field.name:
        out["iceberg-field-name"] = field.name
    return out


def avro_name(name: str) -> str:
    """A name that Avro allows, as Java's ``AvroSchemaUtil.makeCompatibleName`` forms it."""
    found = re.sub("[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", name)
    return f"_{found}" if found[:1].isdigit() else found


_SAME_NAME = frozenset({"boolean", "int", "long", "float", "double", "string"})
_AVRO_TYPES: Mapping[str, Any] = {
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
    "unknown": "null",
    "uuid": {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
}


def _avro_type(type_: Type, field_id: int, defined: set[str]) -> Any:
    """The Avro type of a field's type.

    :param field_id: names a record; the library names it after the field too.
    :param defined: see :func:`_record`.
    """
    if isinstance(type_, Struct):
        return _record(f"r{field_id}", type_.fields, defined)
    if isinstance(type_, List):
        element = type_.element
        items = _avro_type(element.type, element.id, defined)
        return {"type": "array", "items": items, "element-id": element.id}
    if isinstance(type_, Map):
        pair = _record(f"k{type_.key.id}_v{type_.value.id}", (type_.key, type_.value), defined)
        return {"type": "array", "items": pair, "logicalType": "map"}
    found = _avro_value_type(type_)
    if isinstance(found, str) or "name" not in found:
        return found
    name = f"{found['name']}_{field_id}" if found["name"] in defined else found["name"]
    defined.add(name)
    return {**found, "name": name}


def _avro_value_type(type_: Type) -> Any:
    """The Avro type of values without fields."""
    if isinstance(type_, Decimal):
        return {
            **{"type": "fixed", "name": f"decimal_{type_.precision}_{type_.scale}"},
            **{"size": decimal_bytes(type_.precision)},
            **{"logicalType": "decimal", "precision": type_.precision, "scale": type_.scale},
        }
    if isinstance(type_, Fixed):
        return {"type": "fixed", "name": f"fixed_{type_.length}", "size": type_.length}
    assert isinstance(type_, Primitive), "a geometry is no source of a partition field"
    return type_.name if type_.name in _SAME_NAME else _AVRO_TYPES[type_.name]


def decimal_bytes(precision: int) -> int:
    """The number of bytes that hold every decimal of a precision, with its sign."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8
