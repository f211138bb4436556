"""A table as nested values that can be compared: what is declared of it, as it is on one side.

Fields stand by id, so that a column that was renamed is still the same one.  What the two sides need not
share (schema, spec and order ids, the snapshots that every append moves) is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from icemigrate.declare.author_schema import schema_between
from icemigrate.declare.fold_settings import follow
from icemigrate.frozen import replace
from icemigrate.merge.fields import aspects
from icemigrate.model.locations import normal
from icemigrate.model.makers import CREATED_BY_PROPERTY
from icemigrate.model.marks import is_own, is_reserved
from icemigrate.model.retention import ROW_COLUMN
from icemigrate.model.schema import Entry, index, siblings
from icemigrate.model.schema_edits import remove_by_id
from icemigrate.model.table import (
    CURRENT_SNAPSHOT,
    DISTRIBUTION_PROPERTY,
    MAIN_BRANCH,
    Ref,
    Table,
)

Values: TypeAlias = dict[str, Any]

Machines: TypeAlias = "Callable[[str, str], bool]"
"""Whether a property (key and value) is what a server or a client sets by itself."""


def nobody(_key: str, _value: str) -> bool:
    """Where every property is somebody's wish."""
    return False


_IMPLIED = ("none", "range")
"""What a sort order sets as the write distribution by the way (``WRITE ORDERED BY``, ``WRITE UNORDERED``)."""


def values(table: Table, known: Table, both: frozenset[int]) -> Values:
    """The table as values, restricted to what ``known`` declares.

    :param both: ids of the declared fields that are on both sides.
    """
    refs = {n: r for n, r in table.refs.items() if n in known.refs and r.kind == known.refs[n].kind}
    is_placed = known.location is not None and table.location is not None
    return {
        "columns": {
            i: aspects(entry.field)
            for i, entry in index(table.schema).items()
            if i in both or (table is known and (entry.parent is None or entry.parent in both))
        },
        "order": {
            parent or 0: [i for i in ids if i in both]
            for parent, ids in siblings(table.schema).items()
            if parent is None or parent in both
        },
        "identifier": sorted(table.schema.identifier_ids),
        "partition_by": sorted([*f.source_ids, str(f.transform), f.name] for f in table.spec.live),
        "sort_by": [
            [*f.source_ids, str(f.transform), f.direction, f.null_order] for f in table.sort_order.fields
        ],
        "properties": {k: table.properties[k] for k in known.properties if k in table.properties},
        "format_version": table.format_version,
        "location": normal(table.location or "") if is_placed else None,
        "branches": {n: _limits(r) for n, r in refs.items() if r.kind == "branch"},
        "tags": {n: [*_limits(r), r.snapshot_id] for n, r in refs.items() if r.kind == "tag"},
    }


def _limits(ref: Ref) -> list[int | None]:
    return [ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep]


def shared_ids(base: Table, actual: Table) -> frozenset[int]:
    """The declared fields that are still there."""
    return frozenset(index(base.schema)) & frozenset(index(actual.schema))


def recorded(base: Table, actual: Table) -> Table:
    """What is recorded, with what follows by itself where somebody else renamed or dropped a column.

    Iceberg moves properties that name a column.  The limit of rows is icemigrate's, so it stays behind, which
    is nobody's doing; and of a tag whose snapshot nobody recorded nobody knows that it moved.
    """
    renaming = schema_between(base, only_declared(base, actual)).renaming
    properties = follow(dict(base.properties), renaming)
    if ROW_COLUMN in properties and actual.properties.get(ROW_COLUMN) == base.properties[ROW_COLUMN]:
        properties[ROW_COLUMN] = base.properties[ROW_COLUMN]
    refs = {name: _comparable(ref, actual.refs.get(name)) for name, ref in base.refs.items()}
    return replace(base, properties=properties, refs=refs)


def _comparable(ref: Ref, there: Ref | None) -> Ref:
    unknown = there is not None and ref.snapshot_id == CURRENT_SNAPSHOT and ref.kind == there.kind
    return replace(ref, snapshot_id=there.snapshot_id) if unknown and there is not None else ref


def only_declared(base: Table, actual: Table) -> Table:
    """The table in the catalog without fields that no file ever declared."""
    schema = actual.schema
    for entry in foreign_fields(base, actual):
        schema = remove_by_id(schema, entry.field.id)
    return replace(actual, schema=schema)


def foreign_fields(base: Table, actual: Table) -> Iterator[Entry]:
    """The fields that no file ever declared, without what is below them."""
    known = index(base.schema)
    for field_id, entry in index(actual.schema).items():
        if field_id not in known and (entry.parent is None or entry.parent in known):
            yield entry


def foreign_properties(base: Table, actual: Table, machines: Machines) -> Iterator[tuple[str, str]]:
    """The properties that no file ever declared, but those that servers and clients set by themselves.

    :param base: as :func:`recorded` gives it.
    :param machines: what the catalog's server and its clients set by themselves.
    """
    for key, value in sorted(actual.properties.items()):
        implied = key == DISTRIBUTION_PROPERTY and value in _IMPLIED
        if not (implied or key in base.properties or key == CREATED_BY_PROPERTY or machines(key, value)):
            yield key, value


def foreign_references(base: Table, actual: Table) -> Iterator[tuple[str, Ref]]:
    """The branches and tags that no file ever declared, without ours and a usual main branch."""
    for name, ref in sorted(actual.refs.items()):
        is_nobodys = not ref.is_limited if name == MAIN_BRANCH else is_own(name, ref)
        if name not in base.refs and not is_nobodys:
            yield name, ref


def as_declared(base: Table, actual: Table, machines: Machines, *, foreign: bool) -> Table:
    """The table as it would be recorded if what is there had been asked for.

    :param machines: what the catalog's server and its clients set by themselves.
    :param foreign: whether what no file ever declared counts as asked for as well.
    """
    now = actual if foreign else only_declared(base, actual)
    known = recorded(base, actual)
    keys, names = set(known.properties), set(base.refs)
    if foreign:
        keys |= {key for key, _ in foreign_properties(known, actual, machines)}
        names |= {name for name, _ in foreign_references(base, actual) if not is_reserved(name)}
    properties = {key: value for key, value in actual.properties.items() if key in keys}
    if properties.get(ROW_COLUMN) is not None and properties[ROW_COLUMN] == base.properties.get(ROW_COLUMN):
        # It stayed behind when its column was renamed: a file that says the rename takes it along.
        renaming = schema_between(base, only_declared(base, actual)).renaming
        properties[ROW_COLUMN] = follow(dict(base.properties), renaming)[ROW_COLUMN]
    refs = {name: _as_recorded(ref) for name, ref in actual.refs.items() if name in names}
    return replace(
        base, schema=now.schema, spec=now.spec, sort_order=now.sort_order, properties=properties, refs=refs,
        format_version=now.format_version, last_column_id=now.last_column_id,
        last_partition_id=now.last_partition_id,
    )  # fmt: skip


def _as_recorded(ref: Ref) -> Ref:
    return ref if ref.kind == "tag" else replace(ref, snapshot_id=CURRENT_SNAPSHOT)
