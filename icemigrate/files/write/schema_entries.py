"""The keys of an entry that lead from one schema to another, fields matched by id."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.files.replay.replay_names import ColumnNameChanges, restored_index
from icemigrate.files.write.entry_parts import EntryData, column_entry, type_keys
from icemigrate.frozen import Frozen
from icemigrate.iceberg.field_order import fields_in_order
from icemigrate.iceberg.names import FieldPath, format_path, quote_name
from icemigrate.iceberg.table import DroppedField, Table
from icemigrate.iceberg.types import Field, Struct, Type, children, is_nested


class SchemaEntry(Frozen):
    """``renames``, ``drop_columns``, ``restore_columns`` and ``columns`` of an entry, and their effect on
    names.
    """

    keys: EntryData
    renaming: ColumnNameChanges


def schema_between(before: Table, after: Table) -> SchemaEntry:
    """The keys that change the columns of one table to those of the other."""
    writer = _SchemaWriter(before.dropped)
    if before.schema.fields != after.schema.fields:
        writer.siblings(before.schema.fields, after.schema.fields, (), (), None)
    keys: EntryData = {
        "renames": writer.renames,
        "drop_columns": writer.drops,
        "restore_columns": writer.restores,
        "columns": list(writer.columns.values()),
    }
    return SchemaEntry(keys, writer.renaming)


class _SchemaWriter:
    def __init__(self, dropped: tuple[DroppedField, ...]) -> None:
        self.dropped = dropped
        self.renames: dict[str, str] = {}
        self.drops: list[str] = []
        self.restores: list[str] = []
        self.columns: dict[FieldPath, EntryData] = {}
        self.renaming = ColumnNameChanges()

    def siblings(
        self,
        old: Sequence[Field],
        new: Sequence[Field],
        old_parent: FieldPath,
        new_parent: FieldPath,
        parent_id: int | None,
    ) -> None:
        """Write the fields of one struct, or the columns; parents before their children."""
        there = {f.id: f for f in old}
        wanted = {f.id: f for f in new}
        order = [f.id for f in old if f.id in wanted]
        for f in old:
            path = (*old_parent, f.name)
            if f.id not in wanted:
                self.drops.append(format_path((*new_parent, f.name)))
                self.renaming.removed.append(path)
            elif (name := wanted[f.id].name) != f.name:
                self.renames[format_path(path)] = quote_name(name)
                self.renaming.renamed[path] = (*new_parent, name)
        restored = {f.id: d for f in new if f.id not in there and (d := self._dropped(f, parent_id))}
        for i, d in restored.items():
            self.restores.append(format_path((*new_parent, wanted[i].name)))
            order.insert(restored_index(order, d, self.dropped), i)
        order += [f.id for f in new if f.id not in there and f.id not in restored]
        for f in new:
            path = (*new_parent, f.name)
            was = there.get(f.id) or (restored[f.id].field if f.id in restored else None)
            if was is None:
                self.columns[path] = column_entry(f, format_path(path))
            else:
                self.change(was, f, (*old_parent, was.name), path)
        self._positions(order, new, new_parent)

    def change(self, old: Field, new: Field, old_path: FieldPath, path: FieldPath) -> None:
        """Write the changes of a field that stays, and of its children."""
        keys: EntryData = {}
        below = is_nested(old.type) and type(old.type) is type(new.type)
        if not below and old.type != new.type:
            keys |= type_keys(new.type)
        if old.required != new.required:
            keys["required"] = new.required
        if old.write_default != new.write_default:
            keys["default"] = new.write_default
        if old.doc != new.doc:
            keys["description"] = new.doc
        if keys:
            self.columns[path] = {"name": format_path(path), **keys}
        if not below:
            return
        if isinstance(new.type, Struct):
            self.siblings(children(old.type), children(new.type), old_path, path, new.id)
        else:
            self._parts(old.type, new.type, old_path, path)

    def _parts(self, old: Type, new: Type, old_path: FieldPath, path: FieldPath) -> None:
        for was, now in zip(children(old), children(new), strict=True):
            self.change(was, now, (*old_path, was.name), (*path, now.name))

    def _dropped(self, field: Field, parent_id: int | None) -> DroppedField | None:
        """The drop that a restore of the field undoes: it must be the last drop of that name."""
        same = [d for d in self.dropped if d.parent == parent_id and d.field.name == field.name]
        return same[-1] if same and same[-1].field.id == field.id else None

    def _positions(self, order: Sequence[int], new: Sequence[Field], parent: FieldPath) -> None:
        """Assert as few positions as lead from ``order`` to the order of ``new``."""
        place = {i: at for at, i in enumerate(order)}
        stay = fields_in_order([f.id for f in new], [place[f.id] for f in new], prefer_first=True)
        previous: Field | None = None
        for f in new:
            if f.id not in stay:
                path = (*parent, f.name)
                entry = self.columns.setdefault(path, {"name": format_path(path)})
                if previous is None:
                    entry["first"] = True
                else:
                    entry["after"] = quote_name(previous.name)
            previous = f
