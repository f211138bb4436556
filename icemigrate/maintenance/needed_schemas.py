"""The schemas of a table's metadata that a reader or an undo still needs.

Iceberg's own ``cleanExpiredMetadata`` keeps the current schema and those of snapshots.  A schema has more
users: Iceberg's readers look the columns of equality deletes up in all schemas of a table
(``DeleteFileIndex``, ``BaseReader.FieldLookup``), and icemigrate reads there what its undo depends on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from icemigrate.catalog.value_counts import MEASURED_FIELDS, schema_width
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import current_schema_id, schema_jsons
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.schema_json import BadMetadata, type_from_json
from icemigrate.iceberg.types import Type

_EQUALITY_DELETES = "total-equality-deletes"
_FIRST_WITH_DELETES = 2
"""The first format version with delete files."""
_INSIDE = (("element", "element-id"), ("key", "key-id"), ("value", "value-id"))
_TypesBySchema = Mapping[int, Mapping[int, Any]]
"""By schema id, the JSON of the type of each field by its id."""


def unneeded_schema_ids(
    metadata: Json, recorded: Iterable[Schema] = (), expiring: Collection[int] = ()
) -> frozenset[int]:
    """Ids of the schemas that can be removed.

    A schema is needed if one of these is true:

    - It is the current one.
    - A snapshot names it.  A branch or a tag needs the schema of its snapshot.
    - It is the newest one with a dropped column that can still be read: by equality deletes, by a partition
      spec, or by an undo of a migration, if another client changed its type.
    - It alone shows that the table had more fields than Iceberg keeps metrics of.

    :param metadata: the JSON of a metadata file.
    :param recorded: schemas of the table in the history.
    :param expiring: ids of snapshots that are removed first.
    """
    schemas = {schema.get("schema-id", 0): schema for schema in schema_jsons(metadata)}
    current = current_schema_id(metadata)
    snapshots = [s for s in metadata.get("snapshots") or () if s["snapshot-id"] not in expiring]
    needed = {current, *(s["schema-id"] for s in snapshots if s.get("schema-id") is not None)}
    if schemas.keys() <= needed:
        return frozenset()
    types = {id_: dict(_fields(schemas[id_])) for id_ in sorted(schemas, reverse=True)}
    dropped = {field for fields in types.values() for field in fields} - types[current].keys()
    read = dropped if _may_have_equality_deletes(metadata, snapshots) else dropped & _sources(metadata)
    for field in sorted(read):
        _need_newest(types, needed, field)
    for field, known in _recorded_types(recorded, dropped).items():
        _need_unrecorded(types, needed, field, known)
    _need_widest(schemas, needed)
    return frozenset(schemas.keys() - needed)


def _fields(type_: Any) -> Iterator[tuple[int, Any]]:
    """The fields of a type's JSON at all depths, each with the JSON of its own type."""
    if not isinstance(type_, Mapping):
        return
    inside = [(field["id"], field["type"]) for field in type_.get("fields", ())]
    inside += [(type_[id_key], type_[key]) for key, id_key in _INSIDE if id_key in type_]
    for id_, its_type in inside:
        yield id_, its_type
        yield from _fields(its_type)


def _may_have_equality_deletes(metadata: Json, snapshots: Iterable[Json]) -> bool:
    """Whether a snapshot has equality deletes, or its summary does not show that it has none."""
    if metadata["format-version"] < _FIRST_WITH_DELETES:
        return False
    return any((s.get("summary") or {}).get(_EQUALITY_DELETES) != "0" for s in snapshots)


def _sources(metadata: Json) -> set[int]:
    """The source columns of all partition specs."""
    fields = [field for spec in metadata.get("partition-specs") or () for field in spec["fields"]]
    return {id_ for field in fields for id_ in (field.get("source-ids") or [field["source-id"]])}


def _need_newest(types: _TypesBySchema, needed: set[int], field: int) -> None:
    """Need the newest schema with a field, unless another needed one has it with the same type."""
    newest = next(id_ for id_, fields in types.items() if field in fields)
    _need(types, needed, field, newest)


def _need(types: _TypesBySchema, needed: set[int], field: int, schema: int) -> None:
    type_ = types[schema][field]
    if not any(types[id_].get(field) == type_ for id_ in needed & types.keys()):
        needed.add(schema)


def _recorded_types(recorded: Iterable[Schema], fields: Collection[int]) -> dict[int, set[Type]]:
    """By field, its types in the history.  An undo or a redo can restore only these fields."""
    found: dict[int, set[Type]] = {}
    for schema in recorded:
        index = schema_index(schema)
        for field in fields:
            if field in index:
                found.setdefault(field, set()).add(index[field].field.type)
    return found


def _need_unrecorded(types: _TypesBySchema, needed: set[int], field: int, known: set[Type]) -> None:
    """Need the newest schema in which a field has a type that the history does not have.

    Another client gave it that type, and files may be written under it
    (:mod:`icemigrate.evidence.narrowed_types`).
    """
    for id_, fields in types.items():
        if field in fields and not _is_known(fields[field], known):
            _need(types, needed, field, id_)
            return


def _is_known(json: Any, known: set[Type]) -> bool:
    try:
        return type_from_json(json) in known
    except BadMetadata:
        return False


def _need_widest(schemas: Mapping[int, Json], needed: set[int]) -> None:
    """Need a schema with more fields than Iceberg keeps metrics of, if there is one.

    Without it, a field without metrics would count as a field that a file does not have
    (:func:`~icemigrate.catalog.value_counts.is_measured`).
    """
    widths = {id_: schema_width(schema) for id_, schema in schemas.items()}
    if any(widths[id_] > MEASURED_FIELDS for id_ in needed & widths.keys()):
        return
    widest = max(widths, key=lambda id_: (widths[id_], id_))
    if widths[widest] > MEASURED_FIELDS:
        needed.add(widest)
