"""Checks of a metadata file, which report the part that is wrong.

Iceberg's Java library checks the same when it reads a file (``TableMetadataParser`` and the constructor of
``TableMetadata``); a file that it refuses is refused here too, before a plan is made on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from icemigrate.iceberg.json_text import Json, Raw, object_form
from icemigrate.iceberg.lazy_types import SCHEMA, fully_read, lazy_field
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata, field_from_json, schema_from_json
from icemigrate.iceberg.types import Field, children, is_nested

T = TypeVar("T")

LATEST_FORMAT_VERSION = 3
NO_SNAPSHOT = -1
"""How Iceberg's Java library writes a table without a current snapshot."""

_NEVER = LATEST_FORMAT_VERSION + 1
_TOP: tuple[tuple[str, type, int], ...] = (
    ("table-uuid", str, 2),
    ("location", str, 1),
    ("last-sequence-number", int, 2),
    ("last-updated-ms", int, 1),
    ("last-column-id", int, 1),
    ("schemas", list, 2),
    ("schema", dict, _NEVER),
    ("current-schema-id", int, 2),
    ("partition-specs", list, 2),
    ("partition-spec", list, _NEVER),
    ("default-spec-id", int, 2),
    ("last-partition-id", int, 2),
    ("properties", dict, _NEVER),
    ("current-snapshot-id", int, _NEVER),
    ("snapshots", list, _NEVER),
    ("snapshot-log", list, _NEVER),
    ("metadata-log", list, _NEVER),
    ("sort-orders", list, 2),
    ("default-sort-order-id", int, 2),
    ("refs", dict, _NEVER),
    ("statistics", list, _NEVER),
    ("partition-statistics", list, _NEVER),
    ("next-row-id", int, 3),
    ("encryption-keys", list, _NEVER),
)
"""Key, type, and the first format version that must have it (specification, "Table Metadata Fields")."""

_IDS_OF_SNAPSHOT = ("snapshot-id", "timestamp-ms", "parent-snapshot-id", "sequence-number", "schema-id")
SNAPSHOT = object_form(dict.fromkeys(_IDS_OF_SNAPSHOT, Any) | {"summary": Raw, "manifest-list": Raw})
"""A snapshot whose texts are not read: they are most of a file, and a plan needs those of one or two."""
_UNREAD = ("snapshot-log", "metadata-log", "statistics", "partition-statistics")
FORM = object_form(
    dict.fromkeys(("format-version", *(key for key, _, _ in _TOP)), Any)
    | {"schemas": list[Raw], "schema": SCHEMA, "snapshots": list[SNAPSHOT] | None}  # type: ignore[valid-type]
    | dict.fromkeys(_UNREAD, list[Raw] | None)
)
"""The parts of a file that a plan reads, see :func:`~icemigrate.iceberg.json_text.read_json`."""

_WORDS = {str: "a string", int: "a whole number", list: "a list", dict: "an object", bool: "true or false"}


def check_top(json: Any) -> int:
    """Check the top-level keys of a file.

    :returns: the format version.
    :raises BadMetadata: the file is not metadata, or of an unknown version.
    """
    if not isinstance(json, dict):
        raise BadMetadata(f"the file contains {_short(json)}, not an object")
    version: int = _need(json, "format-version", int)
    if not 1 <= version <= LATEST_FORMAT_VERSION:
        raise BadMetadata(f"`format-version` is {version}; supported are 1 to {LATEST_FORMAT_VERSION}")
    for key, type_, since in _TOP:
        value = json.get(key)
        if type(value) is type_ or (value is None and since > version):
            continue
        _need(json, key, type_)
    if version == 1:
        _check_version_1(json)
    for name, value in (json.get("properties") or {}).items():
        if type(value) is not str:
            raise BadMetadata(f"property `{name}` is {_short(value)}, not a string")
    return version


def _check_version_1(json: Json) -> None:
    for several, one, current in (
        ("schemas", "schema", "current-schema-id"),
        ("partition-specs", "partition-spec", "default-spec-id"),
    ):
        if json.get(several) is not None:
            _need(json, current, int)
        elif json.get(one) is None:
            raise BadMetadata(f"both `{several}` and `{one}` are missing")


def _need(json: Json, key: str, type_: type) -> Any:
    if key not in json:
        raise BadMetadata(f"`{key}` is missing")
    value = json[key]
    if type(value) is not type_:
        raise BadMetadata(f"`{key}` is {_short(value)}, not {_WORDS[type_]}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"


def read_part(part: str, read: Callable[[Any], T], json: Any) -> T:
    """Read one part of a file, with its name in errors."""
    try:
        return read(json)
    except BadMetadata as error:
        raise BadMetadata(f"{part}: {error}") from error
    except KeyError as error:
        raise BadMetadata(f"{part}: `{error.args[0]}` is missing") from error
    except RecursionError as error:
        raise BadMetadata(f"{part} is nested too deeply") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise BadMetadata(f"{part} is not in the form that the specification describes") from error


def read_parts(part: str, read: Callable[[Any], T], jsons: Sequence[Any]) -> tuple[T, ...]:
    """Read a list of parts."""
    return tuple(read_part(f"{part}[{i}]", read, json) for i, json in enumerate(jsons))


def read_schema(part: str, json: Any, known: Schema | None = None) -> Schema:
    """Read a schema and check its fields: ids and names unique and of the right types, identifiers exist.

    :param known: the recorded schema; equal columns become its objects, and are neither read nor checked
        again.
    """
    columns = {} if known is None else {column.id: column for column in known.fields}
    try:
        schema = read_part(part, partial(schema_from_json, read_field=partial(_column, columns)), json)
    except BadMetadata:
        _blame_field(part, json)
        raise
    same = {f.id for f in schema.fields if columns.get(f.id) is f}
    if len(same) < len(schema.fields):
        _check_fields(part, schema.fields, set())
    if missing := [i for i in schema.identifier_ids if not schema.line_to(i)]:
        raise BadMetadata(f"{part}: identifier field {missing[0]} is not one of its fields")
    check_id(part, schema.id)
    return schema


def _column(known: Mapping[Any, Field], json: Json) -> Field:
    there = known.get(json["id"])
    return there if there is not None and lazy_field(json) == there else field_from_json(fully_read(json))


def _blame_field(part: str, json: Any) -> None:
    """Name the column that cannot be read."""
    fields = json.get("fields") if isinstance(json, Mapping) else None
    for i, field in enumerate(fields if isinstance(fields, list) else ()):
        name = field.get("name") if isinstance(field, dict) else None
        read_part(f"{part}.fields[{i}] ({name})", lambda json: field_from_json(fully_read(json)), field)


def _check_fields(part: str, fields: Iterable[Field], ids: set[int]) -> None:
    names = set()
    for field in fields:
        if type(field.id) is not int or type(field.name) is not str or type(field.required) is not bool:
            raise BadMetadata(
                f"{part}: field {field.name!r} ({field.id!r}) has an id, name or `required` of a wrong type"
            )
        if field.doc is not None and type(field.doc) is not str:
            raise BadMetadata(f"{part}: the description of field {field.name!r} is not a string")
        if field.id < 0:
            raise BadMetadata(f"{part}: the id of field {field.name!r} is {field.id}, and none is negative")
        if field.id in ids:
            raise BadMetadata(f"{part}: field id {field.id} is there twice")
        if field.name in names:
            raise BadMetadata(f"{part}: field {field.name!r} is there twice")
        ids.add(field.id)
        names.add(field.name)
        if is_nested(field.type):
            _check_fields(part, children(field.type), ids)


def check_id(part: str, id_: Any) -> None:
    """Check that an id of a schema, spec or order is a whole number."""
    if type(id_) is not int:
        raise BadMetadata(f"{part}: its id is {_short(id_)}, not a whole number")


def check_chosen(key: str, wanted: int, part: str, ids: Sequence[int]) -> None:
    """Check that ``key`` names exactly one of the parts, and that ids are unique."""
    for i, id_ in enumerate(ids):
        check_id(f"{part}[{i}]", id_)
    if len(set(ids)) != len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise BadMetadata(f"`{part}` has the id {twice} twice")
    if wanted not in ids:
        raise BadMetadata(f"`{key}` is {wanted}, which none of `{part}` has")


def snapshot_ids(json: Json) -> set[int]:
    """The ids in the snapshot list."""
    snapshots = json.get("snapshots") or ()
    ids = read_part("snapshots", _snapshot_ids, snapshots)
    if len(ids) != len(snapshots):
        raise BadMetadata("`snapshots` has a snapshot id twice")
    return ids


def _snapshot_ids(snapshots: Sequence[Json]) -> set[int]:
    """The ids; there may be thousands, and nearly all are valid."""
    ids = [snapshot["snapshot-id"] for snapshot in snapshots]
    if {*map(type, ids)} - {int}:
        return {whole_number(snapshot, "snapshot-id") for snapshot in snapshots}
    return set(ids)


def whole_number(json: Json, key: str) -> int:
    """A required whole number."""
    number: int = _need(json, key, int)
    return number


def maybe_whole_number(json: Json, key: str) -> int | None:
    """A number that may be absent or null."""
    return None if json.get(key) is None else whole_number(json, key)


def read_string_map(json: Json, key: str) -> dict[str, str]:
    """An object of strings that may be absent or null."""
    values = json.get(key)
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(type(value) is str for value in values.values()):
        raise BadMetadata(f"`{key}` is {_short(values)}, not an object of strings")
    return values


def current_snapshot_id(json: Json, ids: set[int]) -> int | None:
    """The current snapshot; ``None`` without one."""
    current: int | None = json.get("current-snapshot-id")
    if current is None or current == NO_SNAPSHOT:
        return None
    if current not in ids:
        raise BadMetadata(f"`current-snapshot-id` is {current}, which none of `snapshots` has")
    return current
