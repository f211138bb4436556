"""Manifest lists as Avro files: that of a snapshot is carried over, that of the next one is written.

All fields of a manifest are carried over, also those of later specifications.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeAlias

from icemigrate.catalog.avro import read_records
from icemigrate.errors import EngineError, IcemigrateError, MissingExtra, extra_hint
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import schema_to_json
from icemigrate.iceberg.types import Field
from icemigrate.metadata_engine.manifest_schemas import (
    SPECIFIED_IDS,
    avro_record,
    manifest_list_fields,
)
from icemigrate.metadata_engine.recent_tables import RecentValues
from icemigrate.metadata_engine.table_store import FileStore

ManifestFile: TypeAlias = dict[str, Any]
"""A manifest in a list: its values by the names of :func:`manifest_list_fields`."""
Convert: TypeAlias = Callable[[Any], Any]

_DATA = 0
"""The content of a manifest of data files."""
_EXISTING, _ADDED, _DELETED = 0, 1, 2
_STATUS, _SNAPSHOT_ID, _DATA_FILE, _RECORD_COUNT = 0, 1, 2, 103
_INHERITED = {"content": _DATA, "sequence_number": 0, "min_sequence_number": 0}
"""What a list of version 1 lacks (specification, "Reading v1 metadata for v2")."""
_LEVEL = 9


class ManifestList(Frozen):
    """The content of a manifest list.

    :param schema: of its Avro records.
    """

    schema: Json
    entries: tuple[ManifestFile, ...] = ()


class WrittenLists:
    """The lists that this process has written last, so that the next snapshot does not read its parent's.

    A manifest list never changes, and its name has a random id.
    """

    def __init__(self) -> None:
        self._recent = RecentValues[tuple[str, int], ManifestList]()

    def of(self, location: str, format_version: int) -> ManifestList | None:
        """The list at a location; ``None`` where it has to be read."""
        return self._recent.get((location, format_version))

    def keep(self, location: str, format_version: int, written: ManifestList) -> None:
        """Keep a list as :func:`carried_over` would read it."""
        entries = ({k: v for k, v in entry.items() if v is not None} for entry in written.entries)
        self._recent.keep((location, format_version), replace(written, entries=tuple(entries)))


def carried_over(
    parent: Json | None, files: FileStore, format_version: int, written: WrittenLists | None = None
) -> ManifestList:
    """The manifests of a snapshot, in the form that a list of this format version has.

    A snapshot of version 1 may name its manifests one by one, and a list of version 1 may lack counts: what
    is missing is read from the manifests.

    :param parent: the snapshot's JSON; ``None`` for an empty list.
    :param written: lists that need not be read.
    :raises EngineError: a file cannot be read, or does not match the specification.
    :raises MissingExtra: fastavro is not installed.
    """
    known = avro_record("manifest_file", manifest_list_fields(format_version))
    if parent is None:
        return ManifestList(known)
    if "manifest-list" not in parent:
        paths = parent.get("manifests") or ()
        return ManifestList(known, tuple(_counted(path, files) for path in paths))
    location = parent["manifest-list"]
    if written is not None and (known_list := written.of(location, format_version)) is not None:
        return known_list
    found, records = read_avro("manifest list", location, files)
    schema, convert = _carry_record(known, found, location)
    names = {f.name for f in manifest_list_fields(format_version) if f.required}
    entries = tuple(_completed(convert(record), names, files) for record in records)
    return ManifestList(schema, entries)


def read_avro(what: str, location: str, files: FileStore) -> tuple[Json, list[Any]]:
    """The Avro schema and the records of a file.

    :param what: the kind of the file, for the message.
    :returns: records with values as the file stores them.  A time is a number, because Python has no time
        after the year 9999, and no midnight at the end of a day.
    :raises EngineError: it cannot be read.
    :raises MissingExtra: fastavro is not installed.
    """
    fastavro = _fastavro()
    try:
        reader = fastavro.block_reader(BytesIO(files.read(location)))
        schema = json.loads(reader.metadata["avro.schema"])
        stored = fastavro.parse_schema(_without_logical_types(schema))
        records = [
            fastavro.schemaless_reader(block.bytes_, stored, None)
            for block in reader
            for _ in range(block.num_records)
        ]
        return schema, records
    except IcemigrateError:
        raise
    except Exception as error:  # fastavro raises any exception for a damaged file
        raise _unreadable(what, location, error) from error


def _without_logical_types(schema: Any) -> Any:
    """An Avro schema whose values are read as they are stored."""
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}


def _fastavro() -> Any:
    """The library, imported late: nothing but a commit needs it.

    :raises MissingExtra: it is not installed.
    """
    try:
        import fastavro
    except ImportError as error:
        raise MissingExtra("fastavro is not installed", extra_hint("metadata")) from error
    return fastavro


def _unreadable(what: str, location: str, error: Exception) -> EngineError:
    return EngineError(
        f"the {what} {location} cannot be read: {getattr(error, 'strerror', None) or error}",
        "restore the file, or roll the table back to a snapshot that does not need it",
    )


def _carry_record(known: Json, found: Json, location: str) -> tuple[Json, Convert]:
    """The Avro schema of the written record, and the conversion of a value that was read.

    A field of no version of the specification is kept as an optional one.  A field that only other versions
    have is left out.

    :param known: the schema of the written version.
    :param found: the schema in the file, whose fields may have other names.
    """
    fields = {f["field-id"]: f for f in known["fields"]}
    kept = dict[str, tuple[str, Convert]]()
    for given in found["fields"]:
        number = given.get("field-id")
        if number is None:
            raise EngineError(
                f"the field `{given['name']}` of {location} has no `field-id`, which Iceberg requires",
                "rewrite the table's manifests with another client, such as Spark",
            )
        if number in fields:
            type_, convert = _carry_type(fields[number]["type"], given["type"], location)
            fields[number] = {**fields[number], "type": type_}
            kept[given["name"]] = fields[number]["name"], convert
        elif number not in SPECIFIED_IDS:
            fields[number] = {**given, "type": ["null", *_branches(given["type"])], "default": None}
            kept[given["name"]] = given["name"], _same

    def convert_record(values: Mapping[str, Any]) -> dict[str, Any]:
        return {kept[key][0]: kept[key][1](value) for key, value in values.items() if key in kept}

    return {**known, "fields": list(fields.values())}, convert_record


def _carry_type(known: Any, found: Any, location: str) -> tuple[Any, Convert]:
    """The written type of a field; only records inside it can differ."""
    target, given = _branches(known)[0], _branches(found)[0]
    if not (isinstance(target, dict) and isinstance(given, dict)):
        return known, _same
    if target["type"] == given["type"] == "record":
        inner, convert = _carry_record(target, given, location)
    elif target["type"] == given["type"] == "array":
        items, item = _carry_type(target["items"], given["items"], location)
        inner, convert = {**target, "items": items}, lambda values: [item(value) for value in values]
    else:
        return known, _same
    type_ = ["null", inner] if isinstance(known, list) else inner
    return type_, lambda value: None if value is None else convert(value)


def _branches(type_: Any) -> list[Any]:
    """The types of a union without null; the type itself where it is no union."""
    return [branch for branch in type_ if branch != "null"] if isinstance(type_, list) else [type_]


def _same(value: Any) -> Any:
    return value


def _completed(entry: ManifestFile, required: set[str], files: FileStore) -> ManifestFile:
    """The entry without nulls, and with what the written version requires and the earlier one lacked."""
    found = {**_INHERITED, **{name: value for name, value in entry.items() if value is not None}}
    return found if required <= found.keys() else {**_counted(entry["manifest_path"], files), **found}


def _counted(location: str, files: FileStore) -> ManifestFile:
    """The entry of a manifest, from its content.

    It was added by the snapshot whose files it adds or deletes, else by the newest that it names, as Java's
    ``SnapshotProducer.addMetadata`` decides.
    """
    try:
        content = files.read(location)
        header = _fastavro().reader(BytesIO(content)).metadata
        found = list(read_records(content, (_STATUS, _SNAPSHOT_ID, _DATA_FILE, _RECORD_COUNT)))
        changed = [e[_SNAPSHOT_ID] for e in found if e[_STATUS] != _EXISTING]
        entry = {
            **_INHERITED,
            "manifest_path": location,
            "manifest_length": len(content),
            "partition_spec_id": int(header.get("partition-spec-id", 0)),
            "added_snapshot_id": changed[0] if changed else max((e[_SNAPSHOT_ID] for e in found), default=0),
        }
    except IcemigrateError:
        raise
    except Exception as error:
        raise _unreadable("manifest", location, error) from error
    for name, status in (("added", _ADDED), ("existing", _EXISTING), ("deleted", _DELETED)):
        rows = [e[_DATA_FILE][_RECORD_COUNT] for e in found if e[_STATUS] == status]
        entry |= {f"{name}_files_count": len(rows), f"{name}_rows_count": sum(rows)}
    return entry


def with_first_row_ids(
    entries: Sequence[ManifestFile], next_row_id: int
) -> tuple[tuple[ManifestFile, ...], int]:
    """The manifests of a version 3 snapshot, each with the id of its first row.

    Specification, `First Row ID Assignment <https://iceberg.apache.org/spec/#first-row-id-assignment>`_: a
    manifest of data files without an id gets one, and its existing rows count too, because those of a table
    that was upgraded have none.

    :param next_row_id: of the table's metadata.
    :returns: the manifests, and the table's next id after them.
    """
    assigned = []
    for entry in entries:
        first = entry.get("first_row_id")
        if entry["content"] == _DATA and first is None:
            first = next_row_id
            next_row_id += entry["existing_rows_count"] + entry["added_rows_count"]
        assigned.append({**entry, "first_row_id": first})
    return tuple(assigned), next_row_id


def encode_avro(
    schema: Json,
    fields: Sequence[Field],
    records: Iterable[Mapping[str, Any]],
    header: Mapping[str, str],
    codec: str = "deflate",
) -> bytes:
    """An Avro file.

    :param fields: the columns as Iceberg's schema, which Java's library writes to the header too.
    :param header: further keys.
    """
    iceberg_schema = json.dumps(schema_to_json(Schema(tuple(fields))))
    metadata = {**header, "iceberg.schema": iceberg_schema}
    stream = BytesIO()
    level = _LEVEL if codec == "deflate" else None
    _fastavro().writer(stream, dict(schema), records, codec, metadata=metadata, codec_compression_level=level)
    return stream.getvalue()


def encode_record(schema: Json, record: Mapping[str, Any]) -> bytes:
    """One record in Avro, without a header."""
    stream = BytesIO()
    _fastavro().schemaless_writer(stream, dict(schema), record)
    return stream.getvalue()
