"""Tables as JSON and back, without loss, and the form in which the history stores them.

This is icemigrate's own form for stored tables (history, saved plans).  Schemas, specs and orders in it have
Iceberg's form, so that a reader of metadata files can read it.  Next to the table are the ids, types and
dotted names inside each of its structs, so that the rules can skip an unchanged column without reading its
text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, TypeVar

from msgspec import to_builtins

from icemigrate.frozen import compared_fields
from icemigrate.iceberg.json_text import (
    Json,
    object_form,
    read_json,
    read_values,
    write_json,
    write_without_floats,
)
from icemigrate.iceberg.lazy_types import SCHEMA, lazy_field
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.iceberg.schema_json import (
    BadMetadata,
    field_from_json,
    field_to_json,
    order_from_json,
    order_to_json,
    primitive_from_text,
    primitive_text,
    schema_from_json,
    schema_to_json,
    spec_from_json,
    spec_to_json,
)
from icemigrate.iceberg.snapshot_pins import SnapshotPin
from icemigrate.iceberg.table import DroppedField, Ref, Snapshot, Table
from icemigrate.iceberg.types import Field, NestedFieldIds, Struct, Type, children

T = TypeVar("T")


def table_to_json(table: Table) -> dict[str, Any]:
    """The table as JSON values."""
    return {
        "name": str(table.name),
        "format-version": table.format_version,
        "uuid": table.uuid,
        "location": table.location,
        "last-column-id": table.last_column_id,
        "last-partition-id": table.last_partition_id,
        "schema": schema_to_json(table.schema),
        "spec": spec_to_json(table.spec),
        "older-specs": [spec_to_json(spec) for spec in table.older_specs],
        "sort-order": order_to_json(table.sort_order),
        "older-orders": [order_to_json(order) for order in table.older_orders],
        "properties": dict(table.properties),
        "refs": {name: _ref_to_json(ref) for name, ref in table.refs.items()},
        "snapshot": to_builtins(table.snapshot),
        "dropped": [_dropped_to_json(dropped) for dropped in table.dropped],
        # Releases that did not know pins left the key out.
        **({"pins": {name: to_builtins(pin) for name, pin in table.pins.items()}} if table.pins else {}),
    }


@lru_cache(maxsize=16_384)
def _ref_to_json(ref: Ref) -> dict[str, Any]:
    """A reference; a table has one for each migration, and the same ones after the next migration."""
    out: dict[str, Any] = to_builtins(ref)
    return out


def table_from_json_form(json: Any, read_field: Callable[[Any], Field] = field_from_json) -> Table:
    """Read the output of :func:`table_to_json`.

    :param read_field: reads a column.
    :raises BadMetadata: the values have another shape; the message names the table if it can be read.
    """
    named = f"table {json.get('name')!r}" if isinstance(json, Mapping) else "the table"
    try:
        return _table(json, read_field)
    except KeyError as error:
        raise BadMetadata(f"{named}: {error.args[0]!r} is missing") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise BadMetadata(f"{named} is not in the form it was written in: {error}") from error


def _table(json: Json, read_field: Callable[[Any], Field]) -> Table:
    return Table(
        name=_name(json["name"]),
        schema=schema_from_json(json["schema"], read_field),
        spec=spec_from_json(json["spec"]),
        sort_order=order_from_json(json["sort-order"]),
        properties=dict(json["properties"]),
        format_version=json["format-version"],
        location=json["location"],
        refs={name: read_values(ref, Ref) for name, ref in json["refs"].items()},
        uuid=json["uuid"],
        last_column_id=json["last-column-id"],
        last_partition_id=json["last-partition-id"],
        older_specs=_all(spec_from_json, json["older-specs"]),
        older_orders=_all(order_from_json, json["older-orders"]),
        snapshot=None if json["snapshot"] is None else read_values(json["snapshot"], Snapshot),
        dropped=_all(_dropped_from_json, json["dropped"]),
        pins={name: read_values(pin, SnapshotPin) for name, pin in json.get("pins", {}).items()},
    )


def _all(read: Callable[[Any], T], items: Any) -> tuple[T, ...]:
    return tuple(read(item) for item in items)


def _name(text: str) -> TableName:
    try:
        return TableName.parse(text)
    except BadName as error:
        raise BadMetadata(str(error)) from error


def _dropped_to_json(dropped: DroppedField) -> dict[str, Any]:
    return {
        "field": field_to_json(dropped.field),
        "parent": dropped.parent,
        "path": list(dropped.path),
        "after": dropped.after,
    }


def _dropped_from_json(json: Json) -> DroppedField:
    return DroppedField(field_from_json(json["field"]), json["parent"], tuple(json["path"]), json["after"])


_NESTED = "nested"

_KEYS = [name.replace("_", "-") for name in compared_fields(Table)]

_FORM = object_form(dict.fromkeys((*_KEYS, _NESTED), Any) | {"schema": SCHEMA})


def table_to_text(table: Table) -> str:
    """The table as compact JSON."""
    nested = [_to_json(struct.below) for struct in _outermost(f.type for f in table.schema.fields)]
    values = table_to_json(table) | ({_NESTED: nested} if nested else {})
    # Only a default can be a floating-point number.
    text = write_without_floats(values)
    return write_json(values) if '-default":' in text else text


def table_from_text(text: bytes) -> Table:
    """Read the unchanged output of :func:`table_to_text`.

    :raises BadMetadata: the values have another shape.
    :raises ValueError: it is not JSON.
    """
    values = read_json(text, _FORM)
    nested = values.get(_NESTED, ()) if isinstance(values, dict) else ()
    return table_from_json_form(values, partial(lazy_field, nested=_from_json(nested)))


def _outermost(types: Iterable[Type]) -> Iterator[Struct]:
    """The structs that are in no other one, in order."""
    for type_ in types:
        if isinstance(type_, Struct):
            yield type_
        else:
            yield from _outermost(f.type for f in children(type_))


def _to_json(below: NestedFieldIds) -> dict[str, Any]:
    return {
        "ids": [[span.start, span.stop - 1] for span in _spans(sorted(below.ids))],
        "types": sorted(map(primitive_text, below.leaves)),
        "dotted": below.is_dotted,
    }


def _spans(numbers: Sequence[int]) -> Iterator[range]:
    """Numbers in order as ranges: Iceberg counts the fields of a struct one after another."""
    first = 0
    for at, number in enumerate(numbers, 1):
        if at == len(numbers) or numbers[at] != number + 1:
            yield range(numbers[first], number + 1)
            first = at


def _from_json(nested: Sequence[Any]) -> Iterator[NestedFieldIds]:
    for json_ in nested:
        spans = [range(first, last + 1) for first, last in json_["ids"]]
        yield NestedFieldIds(
            ids=frozenset(chain.from_iterable(spans)),
            lowest=min((span.start for span in spans), default=0),
            leaves=frozenset(map(primitive_from_text, json_["types"])),
            is_dotted=json_["dotted"],
        )
