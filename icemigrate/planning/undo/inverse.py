"""A migration's own difference of a table, computed from the actual table before it.

The actual table before it may differ from the declared one.  A fact that overwrote another client's value
returns to that value; a fact that already had its wanted value was not changed by the migration, so it stays;
a dropped column returns as it was, not as it was declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import FieldPosition
from icemigrate.iceberg.kept_views import following_view, kept_views
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partitioning import PartitionField, PartitionSpec
from icemigrate.iceberg.schema import IndexedField, Schema, schema_index
from icemigrate.iceberg.snapshot_pins import SnapshotPin
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Table, differing_keys
from icemigrate.iceberg.table_properties import column_properties_after_drop
from icemigrate.iceberg.types import Field, children, is_nested, with_children
from icemigrate.iceberg.undo_record import TableUndo
from icemigrate.planning.merge import (
    MergedTable,
    group_facts_by_column,
    merge_tables,
    with_catalog_order,
)
from icemigrate.planning.merge.merge_fields import FIELD_ASPECTS, field_aspects, with_aspects
from icemigrate.planning.undo.run_commits import unproven_fields
from icemigrate.planning.undo.undo_inputs import both_declared_states, moved_references


class UndoStates(Frozen):
    """A migration's two states of a table.

    :param before: the table to be declared again.
    :param after: the table after the migration.
    """

    before: Table
    after: Table


def invert_migration(sides: UndoStates, current: Table) -> MergedTable:
    """The table after the migration's difference is inverted; changes by others stay."""
    before, after = replace(sides.before, name=current.name), replace(sides.after, name=current.name)
    base = replace(after, spec=current.spec, schema=_identified(after, current.schema.identifier_ids))
    wanted = replace(
        before,
        spec=_spec(before, after, current),
        schema=_identified(before, _identifier(before, after, current)),
    )
    merged = merge_tables(base, wanted, current, tuple(_positions(before, after, current)))
    return replace(merged, target=_with_views_of_later_migrations(merged.target, current))


def _with_views_of_later_migrations(target: Table, current: Table) -> Table:
    """The target with its other kept views, which read the columns under their names after the undo."""
    if target.schema.fields == current.schema.fields:
        return target
    new = {f.id: f.name for f in target.schema.fields}
    renamed: dict[FieldPath, FieldPath] = {
        (f.name,): (new[f.id],) for f in current.schema.fields if f.id in new
    }
    removed = frozenset((f.name,) for f in current.schema.fields if f.id not in new)
    properties = dict(target.properties)
    for view in kept_views(current.properties):
        if properties.get(view.key) != current.properties[view.key]:
            continue  # the migration itself changed it, so its undo has the view from before
        following = following_view(view, target, renamed, removed)
        if following is None:
            del properties[view.key]
        else:
            properties[view.key] = following.value
    return replace(target, properties=properties)


def declared_after_undo(sides: UndoStates, now: Table) -> Table:
    """The table as it is declared once the migration is taken back; later migrations stay in it."""
    table = invert_migration(sides, now).target
    gone = {d.field.id for d in sides.after.dropped} - {d.field.id for d in sides.before.dropped}
    kept = tuple(d for d in now.dropped if d.field.id not in gone)
    known = {d.field.id for d in kept}
    present = schema_index(table.schema)
    back = tuple(d for d in sides.before.dropped if d.field.id not in known and d.field.id not in present)
    pins: dict[str, SnapshotPin | None] = dict(now.pins)
    for name in differing_keys(sides.before.pins, sides.after.pins):
        if now.pins.get(name) == sides.after.pins.get(name):
            pins[name] = sides.before.pins.get(name)
    left = {name: pin for name, pin in pins.items() if pin is not None and name in table.refs}
    return replace(table, name=now.name, dropped=(*kept, *back), pins=left)


def _identified(table: Table, ids: frozenset[int]) -> Schema:
    return replace(table.schema, identifier_ids=ids)


def _identifier(before: Table, after: Table, current: Table) -> frozenset[int]:
    old, new = before.schema.identifier_ids, after.schema.identifier_ids
    return (current.schema.identifier_ids - (new - old)) | (old - new)


def _spec(before: Table, after: Table, current: Table) -> PartitionSpec:
    old, new = {_key(f) for f in before.spec.live}, {_key(f) for f in after.spec.live}
    now = {_key(f) for f in current.spec.live}
    # Void fields are not declared: Iceberg leaves them, and gives their names to new fields.
    kept = tuple(f for f in current.spec.live if _key(f) not in new - old)
    back = tuple(f for f in before.spec.live if _key(f) in old - new - now)
    return (
        current.spec
        if not (back or len(kept) < len(current.spec.live))
        else replace(current.spec, fields=(*kept, *back))
    )


def _key(f: PartitionField) -> tuple[tuple[int, ...], str, str]:
    return (f.source_ids, str(f.transform), f.name)


def _positions(before: Table, after: Table, current: Table) -> Iterator[FieldPosition]:
    """The order of before, where the migration moved fields and no other client has moved them since."""
    old, new, now = _siblings(before), _siblings(after), _siblings(current)
    for parent in old.keys() & new.keys() & now.keys():
        kept = [i for i in old[parent] if i in new[parent] and i in now[parent]]
        moved = kept != [i for i in new[parent] if i in kept]
        if not moved or [i for i in now[parent] if i in kept] != [i for i in new[parent] if i in kept]:
            continue
        # The fields that the migration dropped are among them again.
        order = [i for i in old[parent] if i in kept or i not in new[parent]]
        yield from (FieldPosition(i, behind) for behind, i in zip((None, *order), order, strict=False))


def _siblings(table: Table) -> dict[int | None, list[int]]:
    out: dict[int | None, list[int]] = {}
    for field_id, entry in schema_index(table.schema).items():
        out.setdefault(entry.parent, []).append(field_id)
    return out


_V = TypeVar("_V")


def with_net_change(undo: TableUndo) -> TableUndo:
    """The record with the migration's own difference as its two sides, restricted to declared facts."""
    before, after = both_declared_states(undo)
    was, now = undo.actual_before, undo.actual_after
    if was is None:
        return undo
    old, current = schema_index(before.schema), schema_index(was.schema)
    fields = _Fields(old, current, schema_index(after.schema), undo.created).of(after.schema.fields, None)
    # Another client may have made a column the identifier that no file declares.
    ids = was.schema.identifier_ids if _identifier_differs(before, after) else after.schema.identifier_ids
    moved = moved_references(before, after)
    pinned = {name: after.pins[name].snapshot_id or CURRENT_SNAPSHOT for name in moved}
    after_refs = {n: replace(r, snapshot_id=pinned.get(n, r.snapshot_id)) for n, r in after.refs.items()}
    after = replace(after, refs=after_refs)
    own_before = replace(
        after,
        schema=Schema(fields, ids),
        spec=was.spec if before.spec.definitions != after.spec.definitions else after.spec,
        sort_order=was.sort_order
        if before.sort_order.fields != after.sort_order.fields
        else after.sort_order,
        properties=_properties(before, after, was),
        format_version=was.format_version
        if before.format_version != after.format_version
        else after.format_version,
        refs=_changed(before.refs, after.refs, was.refs) | {n: was.refs[n] for n in moved if n in was.refs},
        pins=before.pins,
    )
    return replace(undo, before=own_before, after=after if now is None else with_catalog_order(after, now))


def own_notes(undo: TableUndo, current: Table) -> Iterator[str]:
    """Notes about differences from the declared table before the migration, which an undo does not restore.

    They include fields by others that look like a field of the migration.

    :param current: the current table.
    """
    before, after = both_declared_states(undo)
    if undo.actual_before is None:
        return
    if not undo.is_unproved:
        entries = schema_index(current.schema)
        for field_id in unproven_fields(undo, current.schema):
            name = format_path(entries[field_id].path)
            yield f"stays: {name} (field id {field_id}); this migration did not add it"
    merged = merge_tables(before, after, replace(undo.actual_before, name=undo.declared))
    for fact in group_facts_by_column(merged.done):
        yield f"stays: {fact}; it was the same before the migration"
    for c in merged.conflicts:
        yield f"{c.fact} goes back to {c.actual}, as it was before the migration, and not to {c.base}"


def is_renamed_by_migration(undo: TableUndo) -> bool:
    """Whether the migration itself gave the table another name."""
    if undo.actual_before is None or undo.actual_after is None:
        return undo.declared_before != undo.declared_after
    return undo.actual_before.name != undo.actual_after.name


def _identifier_differs(before: Table, after: Table) -> bool:
    return before.schema.identifier_ids != after.schema.identifier_ids


class _Fields(Frozen):
    """The fields before the migration.

    :param old: declared before it.
    :param current: actual fields before it.
    :param new: declared after it.
    :param created: ids of fields that the migration's own commits added; ``None`` without a recorded commit.
    """

    old: Mapping[int, IndexedField]
    current: Mapping[int, IndexedField]
    new: Mapping[int, IndexedField]
    created: frozenset[int] | None = None

    def of(self, fields: tuple[Field, ...], parent: int | None) -> tuple[Field, ...]:
        """The direct children of a field, or the columns, in their order before the migration.

        :param fields: those that are declared after the migration.
        """
        stayed = [self._field(f) for f in fields if not self._is_own(f)]
        dropped = [
            self.current[i].field
            for i, entry in self.old.items()
            if entry.parent == parent and i not in self.new and i in self.current
        ]
        return _in_order(self.current, (*stayed, *dropped))

    def _is_own(self, field: Field) -> bool:
        """Whether the migration added the field, so that its undo may drop it."""
        if field.id in self.old or field.id in self.current:
            return False
        return self.created is None or field.id in self.created

    def _field(self, now: Field) -> Field:
        current, was = self.current.get(now.id), self.old.get(now.id)
        if current is None:
            return now  # another client had dropped it, so the migration did not change it
        since = field_aspects(now)
        then = {} if was is None else field_aspects(was.field)
        changed = {a for a in FIELD_ASPECTS if a not in then or then[a] != since[a]}
        field = with_aspects(now, current.field, changed)
        if is_nested(now.type) and type(now.type) is type(current.field.type):
            below = self.of(children(now.type), now.id)
            return replace(field, type=with_children(now.type, below))
        return field


def _in_order(entries: Mapping[int, IndexedField], fields: tuple[Field, ...]) -> tuple[Field, ...]:
    rank = {field_id: at for at, field_id in enumerate(entries)}
    return tuple(sorted(fields, key=lambda f: rank.get(f.id, len(rank))))


def _properties(before: Table, after: Table, was: Table) -> dict[str, str]:
    """The properties with those that Iceberg removes together with a dropped column."""
    properties = _changed(before.properties, after.properties, was.properties)
    old, new, current = schema_index(before.schema), schema_index(after.schema), schema_index(was.schema)
    dropped = [current[i].path for i in old if i not in new and i in current]
    left = column_properties_after_drop(was.properties, dropped)
    return properties | {key: value for key, value in was.properties.items() if key not in left}


def _changed(before: Mapping[str, _V], after: Mapping[str, _V], was: Mapping[str, _V]) -> dict[str, _V]:
    """The declared values after the migration, with changed ones replaced by the actual values before it."""
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    kept = {key: value for key, value in after.items() if key not in changed}
    return kept | {key: was[key] for key in changed if key in was}
