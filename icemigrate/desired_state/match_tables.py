"""Matches desired tables with the declared ones, and computes the tables that a migration leads to."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.desired_state.desired_table import DesiredTable
from icemigrate.desired_state.match_fields import AddedField, FieldMatch, FieldRenames, VanishedField
from icemigrate.desired_state.retypes import RetypedField, retype_keys, with_new_types
from icemigrate.diagnostics import Diagnostic
from icemigrate.files.replay.replay_settings import follow_column_changes
from icemigrate.files.write.entry_parts import EntryData
from icemigrate.files.write.migration_entries import creation_entry, entry_between
from icemigrate.files.write.schema_entries import schema_between
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.kept_views import is_kept_view_key
from icemigrate.iceberg.partitioning import PartitionField, PartitionSpec, SortOrder, default_name
from icemigrate.iceberg.schema import Schema, schema_index
from icemigrate.iceberg.snapshot_pins import SnapshotPin
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, walk_fields


class TableMatch(Frozen):
    """One table before the migration, and after it.

    :param before: ``None`` where it is new.
    :param after: its new fields and partition fields have negative ids; retyped fields have their old type.
    :param lost_references: branches and tags that only the declared table has.
    """

    before: Table | None
    after: Table
    desired: DesiredTable
    vanished: tuple[VanishedField, ...]
    added: tuple[AddedField, ...]
    lost_references: tuple[str, ...]
    problems: tuple[Diagnostic, ...]
    retypes: tuple[RetypedField, ...] = ()

    @property
    def wanted(self) -> Table:
        """The table after the migration, with the new types of retyped fields."""
        schema = self.after.schema
        fields = with_new_types(schema.fields, self.retypes)
        return replace(self.after, schema=replace(schema, fields=fields))

    @property
    def entry(self) -> EntryData | None:
        """The entry that declares the change; ``None`` without one."""
        if self.before is None:
            return creation_entry(self.after)
        entry = entry_between(self.before, self.after) | retype_keys(self.retypes)
        for key in ("branches", "tags"):
            for name, reference in entry.get(key, {}).items():
                pin = self.after.pins.get(name)
                if pin is not None and reference is not None:
                    value = int(pin.value) if pin.key == "snapshot" else pin.value
                    entry[key][name] = {pin.key: value, **reference}
        return entry if len(entry) > 1 else None


def match_table(
    before: Table | None, desired: DesiredTable, renames: FieldRenames, *, include_drops: bool
) -> TableMatch:
    """The table that a migration leads to.

    :param renames: of fields, by their declared path.
    :param include_drops: whether what the desired table does not have is dropped; otherwise it stays.
    """
    fields = FieldMatch(before, desired, renames, keeps_drops=not include_drops)
    problems = list(fields.problems)
    lost: tuple[str, ...] = ()
    if before is None:
        after = _created(desired, fields)
    else:
        lost = _lost_references(before, desired)
        after = _changed(before, desired, fields, () if include_drops else lost)
        problems += _fixed_facts(before, desired)
    return TableMatch(
        before,
        after,
        desired,
        tuple(fields.vanished),
        tuple(fields.added),
        lost,
        tuple(problems),
        tuple(fields.retypes),
    )


def _created(desired: DesiredTable, fields: FieldMatch) -> Table:
    table = desired.table
    return replace(
        table,
        schema=Schema(fields.fields, frozenset(fields.ids[i] for i in table.schema.identifier_ids)),
        spec=_spec(None, desired, fields),
        sort_order=_order(desired, fields),
    )


def _changed(before: Table, desired: DesiredTable, fields: FieldMatch, kept: Sequence[str]) -> Table:
    there = {i for f in fields.fields for i in _ids(f)}
    identifier = frozenset(before.schema.identifier_ids & there)
    if desired.is_whole:
        identifier = frozenset(fields.ids[i] for i in desired.table.schema.identifier_ids)
    after = replace(before, name=desired.name, schema=Schema(fields.fields, identifier))
    followed = dict(follow_column_changes(before.properties, schema_between(before, after).renaming))
    if not desired.is_whole:
        return replace(after, properties=followed)
    wanted = desired.table
    own = {k: v for k, v in wanted.properties.items() if not is_kept_view_key(k)}
    if not desired.states_references:
        wanted = replace(wanted, refs=before.refs, pins=before.pins)
    refs = {name: ref.at_snapshot_of(before.refs.get(name)) for name, ref in wanted.refs.items()}
    return replace(
        after,
        spec=_spec(before, desired, fields),
        sort_order=_order(desired, fields),
        properties=own | {k: v for k, v in followed.items() if is_kept_view_key(k)},
        format_version=max(before.format_version, fields.version),
        refs={**{name: before.refs[name] for name in kept}, **refs},
        pins={**{n: p for n, p in before.pins.items() if n in kept}, **wanted.pins},
    )


def _ids(field: Field) -> set[int]:
    """The ids of a field and of all fields inside it."""
    return {field.id, *(f.id for _, f in walk_fields(field.type))}


def _spec(before: Table | None, desired: DesiredTable, fields: FieldMatch) -> PartitionSpec:
    """The desired partition fields; those that stay keep their ids."""
    known = {} if before is None else {(f.source_ids, f.transform): f for f in before.spec.live}
    out: list[PartitionField] = []
    for f in desired.table.spec.live:
        sources = tuple(fields.ids[i] for i in f.source_ids)
        was = known.get((sources, f.transform))
        if was is None:
            out.append(PartitionField(sources, f.transform, f.name, -1 - len(out)))
        elif before is not None and _is_named_by_rename(before, was, f, desired):
            out.append(was)
        else:
            out.append(replace(was, name=f.name))
    return PartitionSpec(tuple(out), 0 if before is None else before.spec.id)


def _is_named_by_rename(
    before: Table, was: PartitionField, wanted: PartitionField, desired: DesiredTable
) -> bool:
    """Whether both names are the default ones, and differ because a column is renamed."""
    old = schema_index(before.schema)[was.source_ids[0]].path
    new = schema_index(desired.table.schema)[wanted.source_ids[0]].path
    return (
        old != new
        and was.name == default_name(old, was.transform)
        and wanted.name == default_name(new, wanted.transform)
    )


def _order(desired: DesiredTable, fields: FieldMatch) -> SortOrder:
    order = desired.table.sort_order.fields
    return SortOrder(tuple(replace(f, source_ids=tuple(fields.ids[i] for i in f.source_ids)) for f in order))


def _lost_references(before: Table, desired: DesiredTable) -> tuple[str, ...]:
    if not (desired.is_whole and desired.states_references):
        return ()
    return tuple(
        name
        for name, ref in before.refs.items()
        if name not in desired.table.refs or desired.table.refs[name].kind != ref.kind
    )


def _fixed_facts(before: Table, desired: DesiredTable) -> list[Diagnostic]:
    """Differences that no migration can make."""
    wanted, name, out = desired.table, desired.name, list[Diagnostic]()
    if desired.is_format_stated and wanted.format_version < before.format_version:
        message = (
            f"`{name}` has format version {before.format_version}, and Iceberg cannot lower it to "
            f"{wanted.format_version}"
        )
        hint = f"write `format_version: {before.format_version}`"
        out.append(Diagnostic("format-downgrade", message, desired.place, hint))
    if wanted.location is not None and wanted.location != before.location:
        message = f"`location` of `{name}` differs, and no migration can move a table"
        hint = "remove the key, which leaves the table where it is"
        if before.location is not None:
            hint = f"write `{before.location}`, or remove the key"
        out.append(Diagnostic("location-changed", message, desired.place, hint))
    for ref in before.refs.keys() & wanted.refs.keys() if desired.states_references else ():
        old, new = before.pins.get(ref), wanted.pins.get(ref)
        if _pin(old) != _pin(new):
            message = f"`{ref}` of `{name}` is pinned to another snapshot, which a diff does not write"
            out.append(Diagnostic("pin-changed", message, desired.place, "move it in a migration of its own"))
    return out


def _pin(pin: SnapshotPin | None) -> str | None:
    return None if pin is None else pin.text
