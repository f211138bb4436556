"""The declared part of a table as nested values, for comparing two sides.

Fields are keyed by id, so that a renamed column is still the same one. Values that may differ between the
sides (ids of schemas, specs and orders, snapshots, which every append moves) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from icemigrate.files.replay.replay_settings import follow_column_changes
from icemigrate.files.write.schema_entries import schema_between
from icemigrate.frozen import replace
from icemigrate.iceberg.kept_views import is_kept_view_key, without_kept_views
from icemigrate.iceberg.locations import normalize_location
from icemigrate.iceberg.ref_names import is_icemigrate_ref, is_reserved
from icemigrate.iceberg.retention import ROW_COLUMN
from icemigrate.iceberg.schema import IndexedField, differing_fields, schema_index, sibling_ids
from icemigrate.iceberg.schema_edits import remove_by_id
from icemigrate.iceberg.table import (
    CREATED_BY_PROPERTY,
    CURRENT_SNAPSHOT,
    MAIN_BRANCH,
    Ref,
    Table,
)
from icemigrate.iceberg.table_properties import PREFIXES
from icemigrate.planning.merge.merge_fields import field_aspects

ComparableValues: TypeAlias = dict[str, Any]

ServerManaged: TypeAlias = "Callable[[str, str], bool]"
"""Whether a server or a client sets a property (key and value) automatically."""


def is_never_server_managed(_key: str, _value: str) -> bool:
    """For catalogs where users set every property."""
    return False


def comparable_values(table: Table, known: Table, both: frozenset[int] | None) -> ComparableValues:
    """The table as values, restricted to the facts that ``known`` declares.

    :param both: ids of the declared fields that are on both sides; ``None`` where both sides have the same
        fields, which are left out then.
    """
    refs = {n: r for n, r in table.refs.items() if n in known.refs and r.kind == known.refs[n].kind}
    is_placed = known.location is not None and table.location is not None
    return {
        **({} if both is None else _comparable_fields(table, known, both)),
        "identifier": sorted(table.schema.identifier_ids),
        "partition_by": sorted([*f.source_ids, str(f.transform), f.name] for f in table.spec.live),
        "sort_by": [
            [*f.source_ids, str(f.transform), f.direction, f.null_order] for f in table.sort_order.fields
        ],
        "properties": {k: table.properties[k] for k in known.properties if k in table.properties},
        "format_version": table.format_version,
        "location": normalize_location(table.location or "") if is_placed else None,
        "branches": {n: _limits(r) for n, r in refs.items() if r.kind == "branch"},
        "tags": {n: [*_limits(r), r.snapshot_id] for n, r in refs.items() if r.kind == "tag"},
    }


def _comparable_fields(table: Table, known: Table, both: frozenset[int]) -> ComparableValues:
    return {
        "columns": {
            i: field_aspects(entry.field)
            for i, entry in schema_index(table.schema).items()
            if i in both or (table is known and (entry.parent is None or entry.parent in both))
        },
        "order": {
            parent or 0: [i for i in ids if i in both]
            for parent, ids in sibling_ids(table.schema).items()
            if parent is None or parent in both
        },
    }


def _limits(ref: Ref) -> list[int | None]:
    return [ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep]


def shared_ids(base: Table, actual: Table) -> frozenset[int]:
    """The declared fields that still exist."""
    return frozenset(schema_index(base.schema)) & frozenset(schema_index(actual.schema))


def recorded_with_renames(base: Table, actual: Table) -> Table:
    """The recorded table, with the effects of renames and drops by other clients.

    Kept views are left out: `maintain` drops them after their time, which is not drift.

    Iceberg moves properties that name a column. The retention of rows is icemigrate's property, so it keeps
    the old name, which is not drift. A tag that no file pins may move.
    """
    renaming = schema_between(base, only_declared(base, actual)).renaming
    properties = dict(follow_column_changes(without_kept_views(base.properties), renaming, PREFIXES))
    if ROW_COLUMN in properties and actual.properties.get(ROW_COLUMN) == base.properties[ROW_COLUMN]:
        properties[ROW_COLUMN] = base.properties[ROW_COLUMN]
    refs = {n: r if n in base.pins else r.at_snapshot_of(actual.refs.get(n)) for n, r in base.refs.items()}
    return replace(base, properties=properties, refs=refs)


def only_declared(base: Table, actual: Table) -> Table:
    """The table in the catalog without fields that no file ever declared."""
    schema = actual.schema
    for entry in foreign_fields(base, actual):
        schema = remove_by_id(schema, entry.field.id)
    return replace(actual, schema=schema)


def foreign_fields(base: Table, actual: Table) -> Iterator[IndexedField]:
    """Fields that no file ever declared, without their nested fields."""
    known = schema_index(base.schema)
    for field_id, entry in differing_fields(actual.schema, base.schema):
        if field_id not in known and (entry.parent is None or entry.parent in known):
            yield entry


def foreign_properties(base: Table, actual: Table, machines: ServerManaged) -> Iterator[tuple[str, str]]:
    """Properties that no file ever declared, except those that servers and clients set automatically.

    :param base: the result of :func:`recorded_with_renames`.
    :param machines: facts that the catalog's server and its clients set automatically.
    """
    for key, value in sorted(actual.properties.items()):
        is_own = key == CREATED_BY_PROPERTY or is_kept_view_key(key)
        if not (key in base.properties or is_own or machines(key, value)):
            yield key, value


def foreign_references(base: Table, actual: Table) -> Iterator[tuple[str, Ref]]:
    """Branches and tags that no file ever declared, without those of icemigrate and an
    ordinary main branch.
    """
    for name, ref in sorted(actual.refs.items()):
        is_nobodys = not ref.is_limited if name == MAIN_BRANCH else is_icemigrate_ref(name, ref)
        if name not in base.refs and not is_nobodys:
            yield name, ref


def as_declared(base: Table, actual: Table, machines: ServerManaged, *, foreign: bool) -> Table:
    """The table as the history would record it if its current state were declared.

    :param machines: facts that the catalog's server and its clients set automatically.
    :param foreign: whether undeclared facts count as declared.
    """
    now = actual if foreign else only_declared(base, actual)
    known = recorded_with_renames(base, actual)
    keys, names = set(known.properties), set(base.refs)
    if foreign:
        keys |= {key for key, _ in foreign_properties(known, actual, machines)}
        names |= {name for name, _ in foreign_references(base, actual) if not is_reserved(name)}
    properties = {key: value for key, value in actual.properties.items() if key in keys}
    properties |= {key: value for key, value in base.properties.items() if is_kept_view_key(key)}
    if properties.get(ROW_COLUMN) is not None and properties[ROW_COLUMN] == base.properties.get(ROW_COLUMN):
        # It kept the old name when its column was renamed: a file that declares the rename moves it.
        renaming = schema_between(base, only_declared(base, actual)).renaming
        properties[ROW_COLUMN] = follow_column_changes(dict(base.properties), renaming)[ROW_COLUMN]
    refs = {name: _as_recorded(ref) for name, ref in actual.refs.items() if name in names}
    return replace(
        base, schema=now.schema, spec=now.spec, sort_order=now.sort_order, properties=properties, refs=refs,
        format_version=now.format_version, last_column_id=now.last_column_id,
        last_partition_id=now.last_partition_id,
    )  # fmt: skip


def _as_recorded(ref: Ref) -> Ref:
    return ref if ref.kind == "tag" else replace(ref, snapshot_id=CURRENT_SNAPSHOT)
