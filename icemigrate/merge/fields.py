"""The facts of a schema: which fields there are, and each aspect of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from icemigrate.frozen import replace
from icemigrate.merge.facts import ABSENT, Fact, Shown, Verdicts
from icemigrate.model.json_form import primitive_text
from icemigrate.model.lookup import Lookup, shared_ends
from icemigrate.model.names import Path, format_path, passing_name
from icemigrate.model.schema import Entry, Schema, apart, index
from icemigrate.model.schema_edits import edit_by_id, edit_fields_of, fields_of, remove_by_id
from icemigrate.model.types import Field, Type, children, is_nested, walk

_PARENT_GONE = "(absent, with the field that it belongs to)"


def align(base: Schema, wanted: Schema, actual: Schema) -> dict[int, int]:
    """Which new field of ``wanted`` is there already under the same name, by nobody known to base."""
    by_id, known = index(actual), index(base)
    found: dict[int, int] = {}

    def visit(wanted_type: Type, actual_type: Type) -> None:
        siblings = children(actual_type)
        names = Lookup(siblings)
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
                visit(want.type, there.type)

    visit(wanted.root, actual.root)
    return found


def merge_schema(
    verdicts: Verdicts, before: Schema, wanted: Schema, actual: Schema, begun: Collection[Path] = ()
) -> Schema:
    """The fields that are there, with what is wanted otherwise than before.

    :param before: as the history has it; without fields where it does not know the table.
    :param begun: see :func:`icemigrate.merge.tables.merge`.
    """
    known, want, have = index(before), index(wanted), index(actual)
    schema = _drop_fields(verdicts, before, wanted, have, actual)
    for field_id, entry in apart(wanted, before):
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


def _is_top(entry: Entry, want: Mapping[int, Entry], have: Mapping[int, Entry]) -> bool:
    """Whether an added field's parent is there already (what is below a new one comes with it)."""
    if entry.parent is None:
        return True
    parent = have.get(entry.parent)
    return parent is not None and type(parent.field.type) is type(want[entry.parent].field.type)


def _drop_fields(
    verdicts: Verdicts, before: Schema, wanted: Schema, have: Mapping[int, Entry], schema: Schema
) -> Schema:
    known, want = index(before), index(wanted)
    for field_id, entry in apart(before, wanted):
        if field_id in want or (entry.parent is not None and entry.parent not in want):
            continue
        if entry.parent is not None and _kind(want[entry.parent].field.type) != _kind(
            known[entry.parent].field.type
        ):
            continue
        subject = ("columns", format_path(entry.path))
        there = have.get(field_id)
        foreign = [] if there is None else [f for _, f in walk(there.field.type) if f.id not in known]
        actual: Any = ABSENT if there is None else _shown(entry.field)
        if foreign and str(Fact(verdicts.table, subject)) not in verdicts.overwrite:
            actual = f"with fields that no file declared: {', '.join(f.name for f in foreign)}"
        if verdicts.decide(subject, _shown(entry.field), ABSENT, actual) and there is not None:
            schema = remove_by_id(schema, field_id)
    return schema


def _add_field(verdicts: Verdicts, entry: Entry, wanted: Schema, schema: Schema) -> Schema:
    verdicts.take(("columns", format_path(entry.path)), ABSENT, _shown(entry.field), ABSENT)
    preceding: list[int] | None = None
    if entry.field.id > 0:
        siblings = [f.id for f in fields_of(wanted, entry.parent)]
        preceding = siblings[: siblings.index(entry.field.id)]
    return edit_fields_of(schema, entry.parent, lambda fields: _insert(fields, entry.field, preceding))


def _insert(fields: tuple[Field, ...], new: Field, preceding: Sequence[int] | None) -> tuple[Field, ...]:
    """The fields with a new one, last; or with one that comes back, where it stood.

    :param preceding: ids of the fields that one which comes back shall stand behind.
    """
    if preceding is None:
        return (*fields, new)
    there = [at for at, f in enumerate(fields, 1) if f.id in preceding]
    at = max(there, default=len(fields) if preceding else 0)
    return (*fields[:at], new, *fields[at:])


def _note_vanished(verdicts: Verdicts, base: Entry, want: Entry) -> None:
    """A field that somebody else dropped: a conflict only where the migration wants something of it."""
    if aspects(base.field) != aspects(want.field):
        subject = ("columns", format_path(base.path))
        verdicts.refuse(subject, _shown(base.field), _shown(want.field), ABSENT)


def _shown(f: Field) -> Shown:
    required = "required " if f.required else ""
    return Shown(f, f"{required}{_kind(f.type).lower()}")


def _kind(type_: Type) -> str:
    return type(type_).__name__ if is_nested(type_) else primitive_text(type_)


ASPECTS = ("name", "type", "required", "description", "initial_default", "default")
"""The keys of :func:`aspects`."""


def aspects(f: Field) -> dict[str, Any]:
    """What can be said of one field, what lies below it left out."""
    values = (f.name, _kind(f.type), f.required, f.doc, f.initial_default, f.write_default)
    return dict(zip(ASPECTS, values, strict=True))


def _merge_aspects(
    verdicts: Verdicts, base: Entry | None, want: Entry, there: Entry, schema: Schema, is_begun: bool
) -> Schema:
    wanted, actual = aspects(want.field), aspects(there.field)
    before = aspects(base.field) if base else dict.fromkeys(wanted, ABSENT)
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

    :param taken: of :data:`ASPECTS`.
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
    verdicts: Verdicts,
    known: Mapping[int, Entry],
    want: Schema,
    schema: Schema,
    field_id: int,
    behind: int | None,
) -> Schema:
    """The schema with a field where a file says that it stands.

    :param want: the declared schema, under the ids of the one in the catalog.
    :param behind: the field that it shall follow; ``None``: it shall be first.
    """
    gone = [i for i in (field_id, behind) if i is not None and not schema.line_to(i)]
    if gone:
        # What is new and not there is a conflict of its own already.
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
    verdicts: Verdicts,
    known: Mapping[int, Entry],
    want: Schema,
    field_id: int,
    behind: int | None,
    gone: Iterable[int],
) -> None:
    """Somebody dropped the field that shall move, or the one that it shall follow."""
    was = _place_text(_path(known, _preceding(known, field_id))) if field_id in known else ABSENT
    subject = ("columns", format_path(want.path_of(field_id) or ()), "first" if behind is None else "after")
    missing = ", ".join(format_path(known[i].path) for i in gone)
    goal = _place_text(None if behind is None else want.path_of(behind))
    verdicts.refuse(subject, was, goal, f"there is no {missing}")


def _place_text(behind: Path | None) -> str:
    return "first" if behind is None else f"after {format_path(behind)}"


def _path(entries: Mapping[int, Entry], field_id: int | None) -> Path | None:
    return None if field_id is None else entries[field_id].path


def _preceding(entries: Mapping[int, Entry], field_id: int) -> int | None:
    """The sibling that a field stands behind; ``None`` where it is first, or not there."""
    if field_id not in entries:
        return None
    siblings = [i for i, other in entries.items() if other.parent == entries[field_id].parent]
    at = siblings.index(field_id)
    return siblings[at - 1] if at else None
