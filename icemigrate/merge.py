"""The three sides of a table made into one target, as ``git merge`` does it.

For each *fact* (one aspect of one field, the spec, the order, the identifier, one property, …)
where wanted differs from base:

=================  ==================================================
actual is          then
=================  ==================================================
as in base         the target takes what is wanted
as wanted          done already; a note says so
something else     a conflict with the three values
=================  ==================================================

Facts outside that difference stay as they are, whatever base says of them.  What is compared are
field ids and definitions, never schema, spec or order ids: those belong to the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from icemigrate.changes.base import Subject
from icemigrate.model.json_form import primitive_text
from icemigrate.model.names import TableName, format_path
from icemigrate.model.partitioning import PartitionField, PartitionSpec
from icemigrate.model.schema import Entry, Schema, edit_field, edit_siblings, index, place_field
from icemigrate.model.sides import Position
from icemigrate.model.table import Ref, Table
from icemigrate.model.types import Field, Struct, Type, children, is_nested, map_fields, walk

_ABSENT = "(absent)"
CURRENT_SNAPSHOT = -1
"""Snapshot id of a declared reference: the current one when the reference is made."""


def passing_name(field_id: int) -> str:
    """The third name over which a swap or a case-only rename goes; a table that has it is half-way."""
    return f"__icemigrate_{field_id}"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that can be as it was, as it shall be, or something else.

    :param subject: keys as in a table entry, e.g. ``("columns", "price", "type")``.
    """

    table: TableName
    subject: Subject

    def __str__(self) -> str:
        return f"{self.table}:{'.'.join(self.subject)}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A fact that is neither as it was nor as it shall be; the three values as text."""

    fact: str
    base: str
    wanted: str
    actual: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The outcome of a merge.

    :param target: what the table shall become; new fields keep the negative ids of ``wanted``.
    :param done: facts that were found as wanted already.
    :param open: facts that the target changes.
    """

    target: Table
    done: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


@dataclass(slots=True)
class _Verdicts:
    """Collects what the comparison of each fact comes to."""

    table: TableName
    overwrite: frozenset[str]
    done: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)

    def decide(self, subject: Subject, base: Any, wanted: Any, actual: Any) -> bool:
        """Whether the target takes ``wanted``; notes what was done already and what conflicts."""
        if wanted == base:
            return False
        fact = str(Fact(self.table, subject))
        if actual == wanted:
            self.done.append(fact)
            return False
        if actual == base or fact in self.overwrite:
            self.open.append(fact)
            return True
        self.conflicts.append(Conflict(fact, _show(base), _show(wanted), _show(actual)))
        return False


def merge(
    base: Table | None,
    wanted: Table,
    actual: Table,
    positions: Iterable[Position] = (),
    overwrite: frozenset[str] = frozenset(),
) -> Merged:
    """Merge the three sides of a table that exists.

    :param base: what the history recorded; ``None`` where it does not know the table.
    :param wanted: what the files say, new fields with negative ids.
    :param positions: positions that the files assert, by field ids of ``wanted``.
    :param overwrite: facts (as text) that are set to what is wanted whatever they are now.
    """
    verdicts = _Verdicts(actual.name, overwrite)
    known = index(base.schema) if base else {}
    ids = _align(known, wanted.schema, actual.schema)
    wanted = rebind(wanted, ids)
    schema = _merge_schema(verdicts, known, wanted.schema, actual.schema)
    for position in positions:
        schema = _assert_position(schema, ids.get(position.field_id, position.field_id), position.after, ids)
    target = replace(actual, schema=schema)
    for merge_fact in (_identifier, _spec, _order, _properties, _format, _refs):
        target = merge_fact(verdicts, base, wanted, target)
    return Merged(target, tuple(verdicts.done), tuple(verdicts.open), tuple(verdicts.conflicts))


def _align(known: Mapping[int, Entry], wanted: Schema, actual: Schema) -> dict[int, int]:
    """Which new field of ``wanted`` is there already under the same name, by nobody known to base."""
    by_id = index(actual)
    found: dict[int, int] = {}

    def visit(wanted_type: Type, actual_type: Type) -> None:
        names = {f.name: f for f in children(actual_type)}
        for want in children(wanted_type):
            there: Field | None
            if want.id < 0:
                there = names.get(want.name)
                if there is None or there.id in known:
                    continue
                found[want.id] = there.id
            else:
                entry = by_id.get(want.id)
                if entry is None:
                    continue
                there = entry.field
            if type(want.type) is type(there.type):
                visit(want.type, there.type)

    visit(wanted.root, actual.root)
    return found


def rebind(table: Table, ids: Mapping[int, int]) -> Table:
    """The table with field ids replaced everywhere: schema, identifier, spec and order."""
    if not ids:
        return table

    def new(old: int) -> int:
        return ids.get(old, old)

    root = map_fields(table.schema.root, lambda f: replace(f, id=new(f.id)))
    assert isinstance(root, Struct)
    return replace(
        table,
        schema=replace(
            table.schema,
            fields=root.fields,
            identifier_ids=frozenset(new(i) for i in table.schema.identifier_ids),
        ),
        spec=replace(
            table.spec,
            fields=tuple(
                replace(f, source_ids=tuple(new(i) for i in f.source_ids)) for f in table.spec.fields
            ),
        ),
        sort_order=replace(
            table.sort_order,
            fields=tuple(
                replace(f, source_ids=tuple(new(i) for i in f.source_ids)) for f in table.sort_order.fields
            ),
        ),
        dropped=tuple(replace(d, parent=None if d.parent is None else new(d.parent)) for d in table.dropped),
    )


def rebind_by_path(table: Table, onto: Table) -> Table:
    """The table with its negative field ids replaced by those of the fields at the same paths of ``onto``."""
    here = {f.id for _, f in table.schema.walk()}
    there = {path: f.id for path, f in onto.schema.walk() if f.id not in here}
    ids = {f.id: there[path] for path, f in table.schema.walk() if f.id < 0 and path in there}
    return rebind(table, ids)


def _merge_schema(verdicts: _Verdicts, known: Mapping[int, Entry], wanted: Schema, actual: Schema) -> Schema:
    want, have = index(wanted), index(actual)
    schema = _drop_fields(verdicts, known, want, have, actual)
    for field_id, entry in want.items():
        base = known.get(field_id)
        there = have.get(field_id)
        if there is not None:
            schema = _merge_aspects(verdicts, base, entry, there, schema)
        elif base is not None:
            _note_vanished(verdicts, base, entry)
        elif _is_top(entry, want, have):
            schema = _add_field(verdicts, entry, schema)
    return schema


def _is_top(entry: Entry, want: Mapping[int, Entry], have: Mapping[int, Entry]) -> bool:
    """Whether an added field's parent is there already (what is below a new one comes with it)."""
    if entry.parent is None:
        return True
    parent = have.get(entry.parent)
    return parent is not None and type(parent.field.type) is type(want[entry.parent].field.type)


def _drop_fields(
    verdicts: _Verdicts,
    known: Mapping[int, Entry],
    want: Mapping[int, Entry],
    have: Mapping[int, Entry],
    schema: Schema,
) -> Schema:
    for field_id, entry in known.items():
        if field_id in want or (entry.parent is not None and entry.parent not in want):
            continue
        if entry.parent is not None and _kind(want[entry.parent].field.type) != _kind(
            known[entry.parent].field.type
        ):
            continue
        subject = ("columns", format_path(entry.path))
        there = have.get(field_id)
        foreign = [] if there is None else [f for _, f in walk(there.field.type) if f.id not in known]
        actual = _ABSENT if there is None else entry.field
        if foreign and str(Fact(verdicts.table, subject)) not in verdicts.overwrite:
            actual = f"with fields that no file declared: {', '.join(f.name for f in foreign)}"
        if verdicts.decide(subject, entry.field, _ABSENT, actual) and there is not None:
            schema = _remove(schema, field_id)
    return schema


def _remove(schema: Schema, field_id: int) -> Schema:
    path = schema.path_of(field_id)
    assert path is not None
    return edit_siblings(schema, path[:-1], lambda fields: tuple(f for f in fields if f.id != field_id))


def _add_field(verdicts: _Verdicts, entry: Entry, schema: Schema) -> Schema:
    verdicts.open.append(str(Fact(verdicts.table, ("columns", format_path(entry.path)))))
    parent = () if entry.parent is None else schema.path_of(entry.parent)
    assert parent is not None
    return edit_siblings(schema, parent, lambda fields: (*fields, entry.field))


def _note_vanished(verdicts: _Verdicts, base: Entry, want: Entry) -> None:
    """A field that somebody else dropped: a conflict only where the migration wants something of it."""
    if _aspects(base.field) != _aspects(want.field):
        subject = ("columns", format_path(base.path))
        verdicts.decide(subject, base.field, want.field, _ABSENT)


def _kind(type_: Type) -> str:
    return type(type_).__name__ if is_nested(type_) else primitive_text(type_)


def _aspects(f: Field) -> dict[str, Any]:
    return {
        "name": f.name,
        "type": _kind(f.type),
        "required": f.required,
        "description": f.doc,
        "initial_default": f.initial_default,
        "default": f.write_default,
    }


def _merge_aspects(
    verdicts: _Verdicts, base: Entry | None, want: Entry, there: Entry, schema: Schema
) -> Schema:
    wanted, actual = _aspects(want.field), _aspects(there.field)
    before = _aspects(base.field) if base else dict.fromkeys(wanted, _ABSENT)
    if actual["name"] == passing_name(want.field.id):
        actual["name"] = before["name"]
    label = format_path(want.path)
    taken = {
        aspect
        for aspect, value in wanted.items()
        if verdicts.decide(("columns", label, aspect), before[aspect], value, actual[aspect])
    }
    if not taken:
        return schema
    path = schema.path_of(there.field.id)
    assert path is not None
    return edit_field(schema, path, lambda f: _take(f, want.field, taken))


def _take(f: Field, want: Field, taken: set[str]) -> Field:
    return replace(
        f,
        name=want.name if "name" in taken else f.name,
        type=want.type if "type" in taken else f.type,
        required=want.required if "required" in taken else f.required,
        doc=want.doc if "description" in taken else f.doc,
        initial_default=want.initial_default if "initial_default" in taken else f.initial_default,
        write_default=want.write_default if "default" in taken else f.write_default,
    )


def _assert_position(schema: Schema, field_id: int, after: int | None, ids: Mapping[int, int]) -> Schema:
    path = schema.path_of(field_id)
    behind = None if after is None else schema.path_of(ids.get(after, after))
    if path is None or (after is not None and behind is None):
        return schema  # the field, or the one it shall follow, is a conflict of its own already
    return edit_siblings(
        schema,
        path[:-1],
        lambda fields: place_field(fields, path[-1], None if behind is None else behind[-1]),
    )


def _identifier(verdicts: _Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.schema.identifier_ids if base else frozenset()
    if not verdicts.decide(
        ("identifier",), before, wanted.schema.identifier_ids, target.schema.identifier_ids
    ):
        return target
    return replace(target, schema=replace(target.schema, identifier_ids=wanted.schema.identifier_ids))


def spec_key(spec: PartitionSpec) -> frozenset[tuple[tuple[int, ...], str, str]]:
    """What a spec says, without its ids and its order (kept fields stay in place, new ones go last)."""
    return frozenset(_part_key(f) for f in spec.live)


def _part_key(f: PartitionField) -> tuple[tuple[int, ...], str, str]:
    return (f.source_ids, str(f.transform), f.name)


def _spec(verdicts: _Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = spec_key(base.spec) if base else _ABSENT
    if not verdicts.decide(("partition_by",), before, spec_key(wanted.spec), spec_key(target.spec)):
        return target
    keep = spec_key(wanted.spec)
    kept = tuple(f for f in target.spec.live if _part_key(f) in keep)
    there = {_part_key(f) for f in kept}
    new = tuple(f for f in wanted.spec.live if _part_key(f) not in there)
    return replace(target, spec=replace(target.spec, fields=(*kept, *new)))


def _order(verdicts: _Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.sort_order.fields if base else _ABSENT
    if not verdicts.decide(("sort_by",), before, wanted.sort_order.fields, target.sort_order.fields):
        return target
    return replace(target, sort_order=replace(target.sort_order, fields=wanted.sort_order.fields))


def _properties(verdicts: _Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.properties if base else {}
    properties = dict(target.properties)
    for key in sorted({*before, *wanted.properties}):
        new = wanted.properties.get(key, _ABSENT)
        if verdicts.decide(
            ("properties", key), before.get(key, _ABSENT), new, target.properties.get(key, _ABSENT)
        ):
            properties.pop(key, None)
            if key in wanted.properties:
                properties[key] = wanted.properties[key]
    return replace(target, properties=properties)


def _format(verdicts: _Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.format_version if base else _ABSENT
    if verdicts.decide(("format_version",), before, wanted.format_version, target.format_version):
        return replace(target, format_version=wanted.format_version)
    return target


def _refs(verdicts: _Verdicts, base: Table | None, wanted: Table, target: Table) -> Table:
    before = base.refs if base else {}
    refs = dict(target.refs)
    for name in sorted({*before, *wanted.refs}):
        want = wanted.refs.get(name)
        key = "tags" if (want or before[name]).kind == "tag" else "branches"
        if verdicts.decide(
            (key, name), _ref_key(before.get(name)), _ref_key(want), _ref_key(target.refs.get(name))
        ):
            old = refs.pop(name, None)
            if want is not None:
                refs[name] = replace(want, snapshot_id=old.snapshot_id) if old else want
    return replace(target, refs=refs)


def _ref_key(ref: Ref | None) -> Any:
    """What is declared of a reference: its retention, not the snapshot it points at."""
    return _ABSENT if ref is None else replace(ref, snapshot_id=CURRENT_SNAPSHOT)


def _show(value: Any) -> str:
    if isinstance(value, Field):
        required = "required " if value.required else ""
        return f"{value.name}: {required}{_kind(value.type).lower()}"
    if isinstance(value, frozenset):
        return ", ".join(sorted(_show(v) for v in value)) or "none"
    if isinstance(value, tuple):
        return " ".join(_show(v) for v in value) or "none"
    return "none" if value is None else str(value)


def facts_changed(before: Table | None, after: Table) -> Iterator[str]:
    """The facts in which two states of a table differ, as text (two states, no third)."""
    verdicts = _Verdicts(after.name, frozenset())
    if before is not None:
        merged = merge(before, after, before)
        yield from merged.open
    else:
        yield str(Fact(verdicts.table, ("name",)))
