"""Merges the facts of a schema: which fields exist, and each aspect of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from icemigrate.frozen import replace
from icemigrate.iceberg.lookup import FieldLookup, shared_ends
from icemigrate.iceberg.names import FieldPath, format_path, passing_name
from icemigrate.iceberg.schema import IndexedField, Schema, differing_fields, schema_index
from icemigrate.iceberg.schema_edits import edit_by_id, edit_fields_of, fields_of, remove_by_id
from icemigrate.iceberg.schema_json import primitive_text
from icemigrate.iceberg.types import Field, Type, children, is_nested, walk_fields
from icemigrate.planning.merge.merge_outcome import ABSENT, Fact, MergeOutcome, ShownValue

_PARENT_GONE = "(absent, with the field that it belongs to)"


def match_new_fields(base: Schema, wanted: Schema, actual: Schema) -> dict[int, int]:
    """The new fields of ``wanted`` that already exist under the same name and that base does not have."""
    if wanted.fields == actual.fields:
        return {}
    by_id, known = schema_index(actual), schema_index(base)
    found: dict[int, int] = {}
    # Not recursive: a recursive closure would keep the indexes until the garbage collector runs, which is
    # paused here.
    left: list[tuple[Type, Type]] = [(wanted.root, actual.root)]
    while left:
        wanted_type, actual_type = left.pop()
        siblings = children(actual_type)
        names = FieldLookup(siblings)
        start, end = shared_ends(siblings, children(wanted_type))
        for want in children(wanted_type)[start : len(children(wanted_type)) - end]:
            there: Field | None
            if want.id < 0:
                at = names.position_of_name(want.name)
                there = None if at is None else siblings[at]
                if there is None or there.id in known:
                    continue
                found[want.id] = there.id
            else:
                entry = by_id.get(want.id) if is_nested(want.type) else None
                if entry is None:
                    continue
                there = entry.field
            if type(want.type) is type(there.type) and want.type is not there.type:
                left.append((want.type, there.type))
    return found


def merge_schema(
    verdicts: MergeOutcome, before: Schema, wanted: Schema, actual: Schema, begun: Collection[FieldPath] = ()
) -> Schema:
    """The current fields with the changes that are wanted.

    :param before: the recorded schema; without fields where the history does not have the table.
    :param begun: see :func:`icemigrate.planning.merge.merge_tables.merge_tables`.
    """
    if before.fields == wanted.fields:
        return actual
    known, want, have = schema_index(before), schema_index(wanted), schema_index(actual)
    schema = _drop_fields(verdicts, before, wanted, have, actual)
    for field_id, entry in differing_fields(wanted, before):
        base = known.get(field_id)
        if base is not None and base.field == entry.field:
            continue
        there = have.get(field_id)
        if there is not None:
            schema = _merge_aspects(verdicts, base, entry, there, schema, entry.path in begun)
        elif base is not None:
            _note_vanished(verdicts, base, entry)
        elif _is_top(entry, want, have):
            schema = _add_field(verdicts, entry, wanted, schema)
        elif entry.parent in known and entry.parent not in have:
            subject = ("columns", format_path(entry.path))
            verdicts.refuse(subject, ABSENT, _shown(entry.field), _PARENT_GONE)
    return schema


def _is_top(entry: IndexedField, want: Mapping[int, IndexedField], have: Mapping[int, IndexedField]) -> bool:
    """Whether an added field's parent exists already (children of a new field are added with it)."""
    if entry.parent is None:
        return True
    parent = have.get(entry.parent)
    return parent is not None and type(parent.field.type) is type(want[entry.parent].field.type)


def _drop_fields(
    verdicts: MergeOutcome, before: Schema, wanted: Schema, have: Mapping[int, IndexedField], schema: Schema
) -> Schema:
    known, want = schema_index(before), schema_index(wanted)
    for field_id, entry in differing_fields(before, wanted):
        if field_id in want or (entry.parent is not None and entry.parent not in want):
            continue
        if entry.parent is not None and _kind(want[entry.parent].field.type) != _kind(
            known[entry.parent].field.type
        ):
            continue
        subject = ("columns", format_path(entry.path))
        there = have.get(field_id)
        foreign = [] if there is None else [f for _, f in walk_fields(there.field.type) if f.id not in known]
        actual: Any = ABSENT if there is None else _shown(entry.field)
        if foreign and str(Fact(verdicts.table, subject)) not in verdicts.overwrite:
            actual = f"with fields that no file declared: {', '.join(f.name for f in foreign)}"
        if verdicts.decide(subject, _shown(entry.field), ABSENT, actual) and there is not None:
            schema = remove_by_id(schema, field_id)
    return schema


def _add_field(verdicts: MergeOutcome, entry: IndexedField, wanted: Schema, schema: Schema) -> Schema:
    verdicts.take(("columns", format_path(entry.path)), ABSENT, _shown(entry.field), ABSENT)
    preceding: frozenset[int] | None = None
    if entry.field.id > 0:
        siblings = [f.id for f in fields_of(wanted, entry.parent)]
        preceding = frozenset(siblings[: siblings.index(entry.field.id)])
    return edit_fields_of(schema, entry.parent, lambda fields: _insert(fields, entry.field, preceding))


def _insert(fields: tuple[Field, ...], new: Field, preceding: frozenset[int] | None) -> tuple[Field, ...]:
    """The fields with a new one at the end, or with a restored one at its old position.

    :param preceding: ids of the fields that a restored one follows.
    """
    if preceding is None:
        return (*fields, new)
    there = [at for at, f in enumerate(fields, 1) if f.id in preceding]
    at = max(there, default=len(fields) if preceding else 0)
    return (*fields[:at], new, *fields[at:])


def _note_vanished(verdicts: MergeOutcome, base: IndexedField, want: IndexedField) -> None:
    """Handle a field that another client dropped: a conflict only where the migration changes it."""
    if field_aspects(base.field) != field_aspects(want.field):
        subject = ("columns", format_path(base.path))
        verdicts.refuse(subject, _shown(base.field), _shown(want.field), ABSENT)


def _shown(f: Field) -> ShownValue:
    required = "required " if f.required else ""
    return ShownValue(f, f"{required}{_kind(f.type).lower()}")


def _kind(type_: Type) -> str:
    return type(type_).__name__ if is_nested(type_) else primitive_text(type_)


FIELD_ASPECTS = ("name", "type", "required", "description", "initial_default", "default")
"""The keys of :func:`field_aspects`."""


def field_aspects(f: Field) -> dict[str, Any]:
    """The aspects of one field, without its children."""
    values = (f.name, _kind(f.type), f.required, f.doc, f.initial_default, f.write_default)
    return dict(zip(FIELD_ASPECTS, values, strict=True))


def _merge_aspects(
    verdicts: MergeOutcome,
    base: IndexedField | None,
    want: IndexedField,
    there: IndexedField,
    schema: Schema,
    is_begun: bool,
) -> Schema:
    wanted, actual = field_aspects(want.field), field_aspects(there.field)
    before = field_aspects(base.field) if base else dict.fromkeys(wanted, ABSENT)
    if actual["name"] == passing_name(want.field.id):
        actual["name"] = before["name"]
    label = format_path(want.path)
    taken = {
        aspect
        for aspect, value in wanted.items()
        if verdicts.decide(
            ("columns", label, aspect),
            before[aspect],
            value,
            actual[aspect],
            halfway=aspect == "required" and is_begun and base is None,
        )
    }
    if not taken:
        return schema
    # By id: halfway through a swap two fields have one name.
    return edit_by_id(schema, there.field.id, lambda f: with_aspects(f, want.field, taken))


def with_aspects(f: Field, want: Field, taken: Collection[str]) -> Field:
    """The field with some aspects of another one.

    :param taken: of :data:`FIELD_ASPECTS`.
    """
    return replace(
        f,
        name=want.name if "name" in taken else f.name,
        type=want.type if "type" in taken else f.type,
        required=want.required if "required" in taken else f.required,
        doc=want.doc if "description" in taken else f.doc,
        initial_default=want.initial_default if "initial_default" in taken else f.initial_default,
        write_default=want.write_default if "default" in taken else f.write_default,
    )


def assert_position(
    verdicts: MergeOutcome,
    known: Mapping[int, IndexedField],
    want: Schema,
    schema: Schema,
    field_id: int,
    behind: int | None,
) -> Schema:
    """The schema with a field at its declared position.

    :param want: the declared schema, under the ids of the one in the catalog.
    :param behind: the field before it; ``None`` for the first position.
    """
    gone = [i for i in (field_id, behind) if i is not None and not schema.line_to(i)]
    if gone:
        # A new field that is missing is already a conflict.
        if known.keys() >= set(gone) and _preceding(known, field_id) != behind:
            _refuse_position(verdicts, known, want, field_id, behind, gone)
        return schema
    moved = schema.line_to(field_id)[-1]

    def place(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        rest = [f for f in fields if f.id != field_id]
        at = 0 if behind is None else 1 + [f.id for f in rest].index(behind)
        return (*rest[:at], moved, *rest[at:])

    return edit_fields_of(schema, schema.parent_of(field_id), place)


def _refuse_position(
    verdicts: MergeOutcome,
    known: Mapping[int, IndexedField],
    want: Schema,
    field_id: int,
    behind: int | None,
    gone: Iterable[int],
) -> None:
    """Add a conflict: another client dropped the field that moves, or the one that it follows."""
    was = _position_text(_path(known, _preceding(known, field_id))) if field_id in known else ABSENT
    subject = ("columns", format_path(want.path_of(field_id) or ()), "first" if behind is None else "after")
    missing = ", ".join(format_path(known[i].path) for i in gone)
    goal = _position_text(None if behind is None else want.path_of(behind))
    verdicts.refuse(subject, was, goal, f"there is no {missing}")


def _position_text(behind: FieldPath | None) -> str:
    return "first" if behind is None else f"after {format_path(behind)}"


def _path(entries: Mapping[int, IndexedField], field_id: int | None) -> FieldPath | None:
    return None if field_id is None else entries[field_id].path


def _preceding(entries: Mapping[int, IndexedField], field_id: int) -> int | None:
    """The sibling before a field; ``None`` where it is first or does not exist."""
    if field_id not in entries:
        return None
    siblings = [i for i, other in entries.items() if other.parent == entries[field_id].parent]
    at = siblings.index(field_id)
    return siblings[at - 1] if at else None
