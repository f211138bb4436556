"""The facts of a table that differ from the history, with their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from icemigrate.changes.change import Subject
from icemigrate.changes.reference_sql import reference_text
from icemigrate.files.write.entry_parts import partition_terms, sort_terms
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.retention import property_text
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field
from icemigrate.planning.drift.comparable_tables import (
    ComparableValues,
    ServerManaged,
    comparable_values,
    foreign_fields,
    foreign_properties,
    foreign_references,
    is_never_server_managed,
    recorded_with_renames,
    shared_ids,
)
from icemigrate.planning.merge.merge_outcome import fact_value_text

_DEPTHS = {"columns": 3, "order": 2, "properties": 2, "branches": 2, "tags": 2}
"""The number of keys of each kind of fact; nested facts differ with it."""
_NOTHING = "(absent)"


class DifferenceKind(str, Enum):
    """The kind of difference: changed, removed or added."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class DifferingFact(Frozen):
    """One fact that differs from the recorded state.

    :param key: its key in :func:`~icemigrate.planning.drift.comparable_tables.comparable_values`, with field
        ids.
    :param subject: the same with names, as in a table entry.
    :param recorded: the recorded value, as text.
    :param actual: the current value, as text.
    :param managed: whether a file ever declared the fact.
    """

    key: tuple[Any, ...]
    subject: Subject
    kind: DifferenceKind
    recorded: str
    actual: str
    managed: bool = True


def find_differing_facts(
    base: Table, actual: Table, machines: ServerManaged = is_never_server_managed
) -> tuple[DifferingFact, ...]:
    """All differing facts, declared ones first.

    :param base: the recorded table.
    :param machines: facts that the catalog's server and its clients set automatically.
    """
    known = recorded_with_renames(base, actual)
    # Most tables have the recorded fields, and a table may have thousands of them.
    is_same = known.schema.fields == actual.schema.fields
    both = None if is_same else shared_ids(base, actual)
    old, new = comparable_values(known, known, both), comparable_values(actual, known, both)
    managed = [_fact(key, known, actual) for key in _differing(old, new)]
    places = {i: at for at, i in enumerate(schema_index(known.schema))} if managed else {}
    return (*sorted(managed, key=lambda fact: _rank(fact, places)), *_foreign(known, actual, machines))


def match_earlier_state(
    facts: Iterable[DifferingFact],
    base: Table,
    then: Table,
    now: Table,
    machines: ServerManaged = is_never_server_managed,
) -> dict[DifferingFact, bool]:
    """Whether each fact had its current value in an earlier state of the table.

    :param base: the recorded table.
    :param then: the table in the catalog at an earlier time.
    :param now: the table in the catalog from which the facts come.
    """
    known, ids = recorded_with_renames(base, now), frozenset(schema_index(base.schema))
    stayed = shared_ids(base, now) & schema_index(then.schema).keys()
    whole = [comparable_values(t, known, ids) for t in (then, now)]
    ordered = [comparable_values(t, known, stayed) for t in (then, now)]
    foreign = {(f.key, f.actual) for f in _foreign(known, then, machines)}

    def is_same(fact: DifferingFact) -> bool:
        if not fact.managed:
            return (fact.key, fact.actual) in foreign
        old, new = (_value(v, fact.key) for v in (ordered if fact.key[0] == "order" else whole))
        return bool(old == new)

    return {fact: is_same(fact) for fact in facts}


def _value(values: ComparableValues, key: tuple[Any, ...]) -> Any:
    """The value of a fact's key; ``None`` without one."""
    found: Any = values
    for part in key:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def is_expired_reference(fact: DifferingFact, base: Table) -> bool:
    """Whether a missing reference had a limited age: expiring snapshots removes it."""
    if fact.kind is not DifferenceKind.REMOVED or fact.key[0] not in ("tags", "branches"):
        return False
    return base.refs[fact.key[1]].max_ref_age_ms is not None


def _differing(old: ComparableValues, new: ComparableValues) -> Iterator[tuple[Any, ...]]:
    """The keys of the facts that differ."""
    for room in old:
        yield from _differing_below((room,), old[room], new[room], _DEPTHS.get(room, 1))


def _differing_below(key: tuple[Any, ...], old: Any, new: Any, depth: int) -> Iterator[tuple[Any, ...]]:
    """The keys below one that differ, down to the depth of a fact; a missing value differs as a whole."""
    if old is new or old == new:
        return
    if len(key) == depth or not (isinstance(old, dict) and isinstance(new, dict)):
        yield key
        return
    for part in old | new:
        if part in old and part in new:
            yield from _differing_below((*key, part), old[part], new[part], depth)
        else:
            yield (*key, part)


_ORDER = (
    "columns", "order", "identifier", "partition_by", "sort_by", "properties", "format_version", "location",
    "branches", "tags",
)  # fmt: skip


def _rank(fact: DifferingFact, places: Mapping[int, int]) -> tuple[int, int, str]:
    """The order of columns in the table: by name `c10` would precede `c2`.

    :param places: positions of the table's fields in document order.
    """
    room, *rest = fact.key
    place = places.get(rest[0], -1) if room in ("columns", "order") else 0
    return _ORDER.index(room), place, ".".join(fact.subject)


def _fact(key: tuple[Any, ...], base: Table, actual: Table) -> DifferingFact:
    was, now = _text(key, base), _text(key, actual)
    kind = DifferenceKind.CHANGED
    if was is None or now is None:
        kind = DifferenceKind.ADDED if was is None else DifferenceKind.REMOVED
    return DifferingFact(key, _subject(key, base), kind, was or _NOTHING, now or _NOTHING)


def _subject(key: tuple[Any, ...], base: Table) -> Subject:
    room, *rest = key
    if room == "columns":
        return ("columns", format_path(schema_index(base.schema)[rest[0]].path), *rest[1:])
    if room == "order":
        below = schema_index(base.schema)[rest[0]].path if rest[0] else ()
        return ("columns", *([format_path(below)] if below else []), "order")
    return (room, *map(str, rest))


def _text(key: tuple[Any, ...], table: Table) -> str | None:
    """A fact's value as text; ``None`` without one."""
    room, *rest = key
    if room == "columns":
        return _column(table, *rest)
    if room == "order":
        below = [e for e in schema_index(table.schema).values() if (e.parent or 0) == rest[0]]
        return ", ".join(format_path((e.field.name,)) for e in below)
    if room in ("branches", "tags"):
        ref = table.refs.get(rest[0])
        return None if ref is None else _reference(ref)
    if room == "properties":
        return property_text(rest[0], table.properties[rest[0]]) if rest[0] in table.properties else None
    return _whole(room, table)


def _column(table: Table, field_id: int, aspect: str | None = None) -> str | None:
    entry = schema_index(table.schema).get(field_id)
    if entry is None:
        return None
    values_of: Mapping[str, Any] = {
        "name": entry.field.name,
        "type": format_type(entry.field.type),
        "required": "required" if entry.field.required else "optional",
        "description": entry.field.doc,
        "initial_default": entry.field.initial_default,
        "default": entry.field.write_default,
    }
    return _field(entry.field) if aspect is None else fact_value_text(values_of[aspect])


def _field(field: Field) -> str:
    return f"{'required ' if field.required else ''}{format_type(field.type)}"


def _reference(ref: Ref) -> str:
    where = (
        f", at snapshot {ref.snapshot_id}"
        if ref.kind == "tag" and ref.snapshot_id != CURRENT_SNAPSHOT
        else ""
    )
    return f"{reference_text(ref)}{where}"


def _whole(room: str, table: Table) -> str:
    paths = {i: entry.path for i, entry in schema_index(table.schema).items()}
    ids = table.schema.identifier_ids
    if room == "identifier":
        return ", ".join(format_path(p) for i, p in paths.items() if i in ids) or "none"
    if room == "partition_by":
        return ", ".join(partition_terms(table.spec, paths)) or "unpartitioned"
    if room == "sort_by":
        return ", ".join(sort_terms(table.sort_order, paths)) or "unsorted"
    return str(getattr(table, room))


def _foreign(base: Table, actual: Table, machines: ServerManaged) -> Iterator[DifferingFact]:
    """Facts that no file ever declared."""
    for entry in foreign_fields(base, actual):
        subject = ("columns", format_path(entry.path))
        yield DifferingFact(
            ("columns", entry.field.id),
            subject,
            DifferenceKind.ADDED,
            _NOTHING,
            _field(entry.field),
            managed=False,
        )
    for key, value in foreign_properties(base, actual, machines):
        text = property_text(key, value)
        yield DifferingFact(
            ("properties", key), ("properties", key), DifferenceKind.ADDED, _NOTHING, text, managed=False
        )
    for name, ref in foreign_references(base, actual):
        room = "tags" if ref.kind == "tag" else "branches"
        yield DifferingFact(
            (room, name), (room, name), DifferenceKind.ADDED, _NOTHING, _reference(ref), managed=False
        )
