"""What of a table is not as the history recorded it, fact by fact, in names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from icemigrate.changes.base import Subject
from icemigrate.changes.reference_sql import reference_text
from icemigrate.declare.author_parts import partition_terms, sort_terms
from icemigrate.drift.values import (
    Machines,
    Values,
    foreign_fields,
    foreign_properties,
    foreign_references,
    nobody,
    recorded,
    shared_ids,
    values,
)
from icemigrate.frozen import Frozen
from icemigrate.merge.facts import show
from icemigrate.model.names import format_path
from icemigrate.model.retention import property_text
from icemigrate.model.schema import index
from icemigrate.model.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field

_DEPTHS = {"columns": 3, "order": 2, "properties": 2, "branches": 2, "tags": 2}
"""How many keys a fact has; what is below differs with it."""
_NOTHING = "(absent)"


class Kind(str, Enum):
    """What somebody did to a fact."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Fact(Frozen):
    """One thing that is not as it was recorded.

    :param key: where it stands in :func:`~icemigrate.drift.values.values`; fields by id.
    :param subject: the same in names, as in a table entry.
    :param recorded: the value that the history has, in words.
    :param actual: the value that the catalog has.
    :param managed: whether a file ever declared it.
    """

    key: tuple[Any, ...]
    subject: Subject
    kind: Kind
    recorded: str
    actual: str
    managed: bool = True


def compare(base: Table, actual: Table, machines: Machines = nobody) -> tuple[Fact, ...]:
    """Everything that differs, what was declared first.

    :param base: as the history recorded it.
    :param machines: what the catalog's server and its clients set by themselves.
    """
    known = recorded(base, actual)
    both = shared_ids(base, actual)
    old, new = values(known, known, both), values(actual, known, both)
    managed = [_fact(key, known, actual) for key in _differing(old, new)]
    places = {i: at for at, i in enumerate(index(known.schema))} if managed else {}
    return (*sorted(managed, key=lambda fact: _rank(fact, places)), *_foreign(known, actual, machines))


def was_so(
    facts: Iterable[Fact], base: Table, then: Table, now: Table, machines: Machines = nobody
) -> dict[Fact, bool]:
    """Whether each fact was as it is now in an earlier state of the table already.

    :param base: as the history records it now.
    :param then: the table in the catalog as it was at some time.
    :param now: the table in the catalog, of which the facts were told.
    """
    known, ids = recorded(base, now), frozenset(index(base.schema))
    stayed = shared_ids(base, now) & index(then.schema).keys()
    whole = [values(t, known, ids) for t in (then, now)]
    ordered = [values(t, known, stayed) for t in (then, now)]
    foreign = {(f.key, f.actual) for f in _foreign(known, then, machines)}

    def is_same(fact: Fact) -> bool:
        if not fact.managed:
            return (fact.key, fact.actual) in foreign
        old, new = (_value(v, fact.key) for v in (ordered if fact.key[0] == "order" else whole))
        return bool(old == new)

    return {fact: is_same(fact) for fact in facts}


def _value(values: Values, key: tuple[Any, ...]) -> Any:
    """What stands under a fact's key; ``None`` where nothing does."""
    found: Any = values
    for part in key:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def is_expired(fact: Fact, base: Table) -> bool:
    """Whether a reference is gone that was to be kept for a time: expiring snapshots takes it away then."""
    if fact.kind is not Kind.REMOVED or fact.key[0] not in ("tags", "branches"):
        return False
    return base.refs[fact.key[1]].max_ref_age_ms is not None


def _differing(old: Values, new: Values) -> list[tuple[Any, ...]]:
    """The keys of the facts that differ."""
    if old == new:
        return []
    from deepdiff import DeepDiff

    # The threshold: two sides that have little in common are still told value by value.
    found = DeepDiff(old, new, view="tree", threshold_to_diff_deeper=0)
    paths = [level.path(output_format="list") for kind in found for level in found[kind]]
    return list(dict.fromkeys(tuple(path[: _DEPTHS.get(path[0], 1)]) for path in paths))


_ORDER = (
    "columns", "order", "identifier", "partition_by", "sort_by", "properties", "format_version", "location",
    "branches", "tags",
)  # fmt: skip


def _rank(fact: Fact, places: Mapping[int, int]) -> tuple[int, int, str]:
    """Columns as the table has them: by name `c10` would stand before `c2`.

    :param places: of the table's fields in document order.
    """
    room, *rest = fact.key
    place = places.get(rest[0], -1) if room in ("columns", "order") else 0
    return _ORDER.index(room), place, ".".join(fact.subject)


def _fact(key: tuple[Any, ...], base: Table, actual: Table) -> Fact:
    was, now = _text(key, base), _text(key, actual)
    kind = Kind.CHANGED
    if was is None or now is None:
        kind = Kind.ADDED if was is None else Kind.REMOVED
    return Fact(key, _subject(key, base), kind, was or _NOTHING, now or _NOTHING)


def _subject(key: tuple[Any, ...], base: Table) -> Subject:
    room, *rest = key
    if room == "columns":
        return ("columns", format_path(index(base.schema)[rest[0]].path), *rest[1:])
    if room == "order":
        below = index(base.schema)[rest[0]].path if rest[0] else ()
        return ("columns", *([format_path(below)] if below else []), "order")
    return (room, *map(str, rest))


def _text(key: tuple[Any, ...], table: Table) -> str | None:
    """A fact's value in words; ``None`` where there is none."""
    room, *rest = key
    if room == "columns":
        return _column(table, *rest)
    if room == "order":
        below = [e for e in index(table.schema).values() if (e.parent or 0) == rest[0]]
        return ", ".join(format_path((e.field.name,)) for e in below)
    if room in ("branches", "tags"):
        ref = table.refs.get(rest[0])
        return None if ref is None else _reference(ref)
    if room == "properties":
        return property_text(rest[0], table.properties[rest[0]]) if rest[0] in table.properties else None
    return _whole(room, table)


def _column(table: Table, field_id: int, aspect: str | None = None) -> str | None:
    entry = index(table.schema).get(field_id)
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
    return _field(entry.field) if aspect is None else show(values_of[aspect])


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
    paths = {i: entry.path for i, entry in index(table.schema).items()}
    ids = table.schema.identifier_ids
    if room == "identifier":
        return ", ".join(format_path(p) for i, p in paths.items() if i in ids) or "none"
    if room == "partition_by":
        return ", ".join(partition_terms(table.spec, paths)) or "unpartitioned"
    if room == "sort_by":
        return ", ".join(sort_terms(table.sort_order, paths)) or "unsorted"
    return str(getattr(table, room))


def _foreign(base: Table, actual: Table, machines: Machines) -> Iterator[Fact]:
    """What no file ever declared."""
    for entry in foreign_fields(base, actual):
        subject = ("columns", format_path(entry.path))
        yield Fact(
            ("columns", entry.field.id), subject, Kind.ADDED, _NOTHING, _field(entry.field), managed=False
        )
    for key, value in foreign_properties(base, actual, machines):
        text = property_text(key, value)
        yield Fact(("properties", key), ("properties", key), Kind.ADDED, _NOTHING, text, managed=False)
    for name, ref in foreign_references(base, actual):
        room = "tags" if ref.kind == "tag" else "branches"
        yield Fact((room, name), (room, name), Kind.ADDED, _NOTHING, _reference(ref), managed=False)
