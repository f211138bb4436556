"""Matches the columns of a desired table with those of the declared one: by hints, then by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icemigrate.desired_state.desired_table import DesiredTable, is_accepted
from icemigrate.desired_state.retypes import RetypedField, is_castable
from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import FieldPath, format_path, quote_name
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_promotions import is_promotion
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, Struct, Type, children, is_nested, same_type, with_children

FieldRenames = Mapping[FieldPath, str]
"""Paths in the declared table, and the new names of these fields."""


class VanishedField(Frozen):
    """A declared field that the desired table does not have.

    :param path: in the declared table.
    """

    path: FieldPath
    field: Field


class AddedField(Frozen):
    """A field that only the desired table has.

    :param parent: the path of its struct in the declared table; empty for a column.
    """

    parent: FieldPath
    path: FieldPath
    field: Field


class FieldMatch:
    """The columns that the migration leads to, with the ids of the declared fields where they stay.

    :ivar fields: the columns; new fields have negative ids. :ivar ids: the id in ``fields`` for each id of
        the desired table. :ivar vanished: without the fields inside of a vanished one. :ivar added: likewise.
        :ivar problems: what no migration can declare. :ivar retypes: changes of types that need new values;
        ``fields`` have the declared types of these fields.
    """

    def __init__(
        self, before: Table | None, desired: DesiredTable, renames: FieldRenames, *, keeps_drops: bool
    ) -> None:
        self.desired, self.renames, self.keeps_drops = desired, renames, keeps_drops
        self.version = desired.table.format_version if before is None else before.format_version
        if before is not None and desired.is_format_stated:
            self.version = max(self.version, desired.table.format_version)
        self.ids: dict[int, int] = {}
        self.vanished: list[VanishedField] = []
        self.added: list[AddedField] = []
        self.problems: list[Diagnostic] = []
        self.retypes: list[RetypedField] = []
        self._used = frozenset[int]() if before is None else _ids_in_layout(before)
        self._is_in_part = False
        columns = () if before is None else before.schema.fields
        self.fields = self._siblings(columns, desired.table.schema.fields, (), ())

    def _siblings(
        self, old: Sequence[Field], new: Sequence[Field], old_parent: FieldPath, new_parent: FieldPath
    ) -> tuple[Field, ...]:
        names = {f.name: f for f in old}
        renamed = {self.renames[path]: f for f in old if (path := (*old_parent, f.name)) in self.renames}
        claimed = {f.id for f in renamed.values()}
        free = {name: f for name, f in names.items() if f.id not in claimed}
        found: dict[int, Field] = {}
        there: list[Field] = []
        for f in new:
            path, was = (*new_parent, f.name), renamed.get(f.name) or free.get(f.name)
            if was is None:
                self.added.append(AddedField(old_parent, path, f))
                there.append(self._fresh(f, path))
                continue
            there.append(self._matched(was, f, (*old_parent, was.name), path))
            found[was.id] = there[-1]
        if not self.desired.is_ordered:
            kept = [found[f.id] for f in old if f.id in found]
            there = [*kept, *(f for f in there if f.id not in found)]
        left = [f for f in old if f.id not in found]
        self.vanished += [VanishedField((*old_parent, f.name), f) for f in left]
        if not (left and self.keeps_drops):
            return tuple(there)
        return self._with_kept(there, old, left, new_parent)

    def _with_kept(
        self, there: Sequence[Field], old: Sequence[Field], left: Sequence[Field], parent: FieldPath
    ) -> tuple[Field, ...]:
        """The fields with those that stay because no drop is written, each after its old neighbour."""
        out, names, kept = list(there), {f.name: f for f in there}, {f.id for f in left}
        at = 0
        for f in old:
            if f.id not in kept:
                at = 1 + next(i for i, one in enumerate(out) if one.id == f.id)
                continue
            if f.name in names:
                path = format_path((*parent, f.name))
                message = f"`{path}` of `{self.desired.name}` is a new name, but a field of this name stays"
                hint = "`--include-drops` drops that field; or choose another name"
                self.problems.append(Diagnostic("name-in-use", message, self.desired.place, hint))
            out.insert(at, f)
            at += 1
        return tuple(out)

    def _matched(self, was: Field, f: Field, old_path: FieldPath, path: FieldPath) -> Field:
        """A declared field with what is desired of it."""
        self.ids[f.id] = was.id
        whole = self.desired.is_whole
        return replace(
            was,
            name=f.name,
            type=self._type(was, f, old_path, path),
            required=f.required if whole else was.required or f.required,
            doc=f.doc if whole or f.doc is not None else was.doc,
            write_default=f.write_default if whole else was.write_default,
        )

    def _type(self, was: Field, f: Field, old_path: FieldPath, path: FieldPath) -> Type:
        reading = self.desired.readings.get(f.id)
        if reading is not None and reading.type is None and not reading.accepted:
            return was.type
        if type(was.type) is type(f.type) and is_nested(was.type):
            return self._nested(was.type, f.type, old_path, path)
        if was.type == f.type or is_accepted(was.type, reading):
            return was.type
        is_open = reading is not None and reading.type is None
        if is_open or not is_promotion(was.type, f.type, self.version):
            if not is_open and self._may_be_retyped(was, f):
                self.retypes.append(RetypedField(path, was.id, was.type, f.type))
                return was.type
            self._not_promoted(was.type, f, path)
        inner = tuple(self._fresh(c, (*path, c.name)) for c in children(f.type))
        return with_children(f.type, inner)

    def _nested(self, was: Type, wanted: Type, old_path: FieldPath, path: FieldPath) -> Type:
        old, new = children(was), children(wanted)
        if isinstance(was, Struct):
            return Struct(self._siblings(old, new, old_path, path))
        outer, self._is_in_part = self._is_in_part, True
        parts = zip(old, new, strict=True)
        inner = [self._matched(o, n, (*old_path, o.name), (*path, o.name)) for o, n in parts]
        self._is_in_part = outer
        return with_children(was, tuple(inner))

    def _may_be_retyped(self, was: Field, f: Field) -> bool:
        """Whether ``retype`` replaces the field: it is no part of a list or a map, nothing else needs it."""
        has_default = any(d is not None for d in (was.initial_default, was.write_default, f.write_default))
        is_free = not (self._is_in_part or has_default or was.id in self._used)
        return is_free and is_castable(was.type, f.type)

    def _not_promoted(self, was: Type, f: Field, path: FieldPath) -> None:
        reading = self.desired.readings.get(f.id)
        wanted = "this type" if reading is not None and reading.type is None else f"`{format_type(f.type)}`"
        message = (
            f"`{format_path(path)}` of `{self.desired.name}` has the type `{format_type(was)}`, which no "
            f"promotion of Iceberg makes {wanted}"
        )
        hint = "write a migration with `retype`, which computes new values; or keep the type"
        self.problems.append(Diagnostic("no-promotion", message, self.desired.place_of(f.id), hint))

    def _fresh(self, f: Field, path: FieldPath) -> Field:
        """A new field; its type must be decided."""
        self.ids[f.id] = number = -1 - len(self.ids)
        reading = self.desired.readings.get(f.id)
        if reading is not None and reading.type is None:
            message = f"the type of the new `{format_path(path)}` of `{self.desired.name}` is not clear"
            self.problems.append(
                Diagnostic("unclear-type", message, self.desired.place_of(f.id), reading.question)
            )
        inner = tuple(self._fresh(c, (*path, c.name)) for c in children(f.type))
        return replace(f, id=number, type=with_children(f.type, inner))


def _ids_in_layout(table: Table) -> frozenset[int]:
    """The fields that partitions, the sort order or the identifier use."""
    partitions = {i for term in table.spec.live for i in term.source_ids}
    order = {i for term in table.sort_order.fields for i in term.source_ids}
    return table.schema.identifier_ids | partitions | order


def may_be_renamed(old: VanishedField, new: AddedField, desired: DesiredTable, version: int) -> bool:
    """Whether a field may have become another one: siblings of the same type, or of one it may grow to."""
    if old.path[:-1] != new.parent:
        return False
    was, wanted = old.field.type, new.field.type
    if is_nested(was) or is_nested(wanted):
        return same_type(_optional(was), _optional(wanted))
    reading = desired.readings.get(new.field.id)
    return was == wanted or is_promotion(was, wanted, version) or is_accepted(was, reading)


def _optional(type_: Type) -> Type:
    """A type without what differs between declarations of the same values."""
    fields = (replace(f, required=False, type=_optional(f.type)) for f in children(type_))
    return with_children(type_, tuple(fields))


def rename_option(table: object, path: FieldPath, name: str) -> str:
    """The option that says that a field is renamed."""
    return f"--rename {table}.{format_path(path)}={quote_name(name)}"
