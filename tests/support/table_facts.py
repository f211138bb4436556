"""A table as a flat list of facts, and which facts of a migration conflict: an oracle beside the merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import TableTarget
from icemigrate.iceberg.schema import IndexedField, schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import is_nested, walk_fields
from tests.support.evolution_strategies import Evolution

GONE = "gone"


def facts(table: Table) -> dict[tuple[object, ...], Any]:
    """Everything that a migration can speak of; fields by id, what belongs to the server left out."""
    out: dict[tuple[object, ...], Any] = {}
    for i, entry in schema_index(table.schema).items():
        f = entry.field
        out |= {
            (i, "name"): f.name,
            (i, "type"): type(f.type).__name__ if is_nested(f.type) else f.type,
            (i, "required"): f.required,
            (i, "doc"): f.doc,
            (i, "initial"): f.initial_default,
            (i, "default"): f.write_default,
        }
    out["identifier",] = table.schema.identifier_ids
    out["spec",] = frozenset((f.source_ids, f.transform, f.name) for f in table.spec.live)
    out["order",] = table.sort_order.fields
    out["format",] = table.format_version
    out |= {("property", k): v for k, v in table.properties.items()}
    out |= {("ref", n): replace(r, snapshot_id=0) for n, r in table.refs.items()}
    return out


def _twins(base: Table, wanted: Table, actual: Table) -> dict[int, int]:
    """Which new field stands in the catalog under the same name already, put there by another hand."""
    known, have = schema_index(base.schema), schema_index(actual.schema)
    found: dict[int, int] = {}
    for i, entry in schema_index(wanted.schema).items():
        if i > 0:
            continue
        parent = found.get(entry.parent, entry.parent) if entry.parent is not None else None
        if entry.parent is not None and not _alike(
            schema_index(wanted.schema)[entry.parent], have.get(parent or 0)
        ):
            continue
        for j, there in have.items():
            if j not in known and (there.parent, there.field.name) == (parent, entry.field.name):
                found[i] = j
    return found


def _alike(one: IndexedField, other: IndexedField | None) -> bool:
    return other is not None and type(one.field.type) is type(other.field.type)


def renumbered(table: Table, ids: Mapping[int, Any]) -> dict[tuple[object, ...], Any]:
    """The facts of a table under other ids."""

    def new(i: Any) -> Any:
        return ids.get(i, i)

    out = {(new(key[0]), *key[1:]): value for key, value in facts(table).items()}
    out["identifier",] = frozenset(map(new, table.schema.identifier_ids))
    out["spec",] = frozenset((tuple(map(new, s)), t, n) for s, t, n in out["spec",])
    out["order",] = tuple(
        replace(f, source_ids=tuple(map(new, f.source_ids))) for f in table.sort_order.fields
    )
    return out


def conflicting(evolution: Evolution, goal: TableTarget) -> set[object]:
    """Facts that are neither as they were nor as they shall be; of a field, or its place, its id."""
    wanted, base, actual = goal.table, evolution.before, evolution.actual
    assert wanted is not None
    ids = _twins(base, wanted, actual)
    known, want, have = facts(base), renumbered(wanted, ids), facts(actual)
    old, new, there = schema_index(base.schema), schema_index(wanted.schema), schema_index(actual.schema)
    out: set[object] = set(_unplaced(goal, old, there))
    for key in known.keys() | want.keys():
        b, w, a = (side.get(key, GONE) for side in (known, want, have))
        field_id = key[0]
        if not isinstance(field_id, int):
            lost = any(_is_lost(i, ids, new, there) for i in _sources(key[0], w))
            if b != w and (lost or (a not in (b, w) and not _halfway(key[0], evolution, wanted, b, w, a))):
                out.add(key)
        elif field_id in old and w == GONE:
            # A field that goes does so whatever it is called by now; but nobody else's goes with it.
            parent = old[field_id].parent
            inside = walk_fields(there[field_id].field.type) if field_id in there else ()
            if (parent is None or parent in new) and any(f.id not in old for _, f in inside):
                out.add(field_id)
        elif field_id in old or field_id > 0:
            if b != w and a not in (b, w):
                out.add(field_id)
        else:
            parent = new[field_id].parent
            if parent in old and parent not in there:
                out.add(field_id)
    return out


def _unplaced(
    goal: TableTarget, old: Mapping[int, IndexedField], there: Mapping[int, IndexedField]
) -> Iterator[int]:
    """Fields that a file puts behind another, where somebody dropped the one or the other."""
    for p in goal.positions:
        dropped = [i for i in (p.field_id, p.after) if i in old and i not in there]
        siblings = [
            None,
            *(i for i, e in old.items() if p.field_id in old and e.parent == old[p.field_id].parent),
        ]
        stood = siblings[siblings.index(p.field_id) - 1] if p.field_id in old else None
        if dropped and stood != p.after:
            yield p.field_id


def _sources(of: object, value: Any) -> Iterator[int]:
    """The fields without which a fact cannot be."""
    if of == "identifier":
        yield from value
    elif of == "spec":
        yield from (i for ids, _, _ in value for i in ids)
    elif of == "order":
        yield from (i for f in value for i in f.source_ids)


def _is_lost(
    field_id: int,
    ids: Mapping[int, int],
    wanted: Mapping[int, IndexedField],
    actual: Mapping[int, IndexedField],
) -> bool:
    """Whether a field can be neither found nor made: itself or what it shall stand in is gone, or another."""
    at: int | None = field_id
    while at is not None and at < 0 and at not in ids:
        at = wanted[at].parent
    if at is None:
        return False
    above = actual.get(ids.get(at, at))
    return above is None or (at != field_id and not _alike(wanted[at], above))


def _halfway(of: object, evolution: Evolution, wanted: Table, b: Any, w: Any, a: Any) -> bool:
    """Whether a value is one that the statements of the migration leave in between."""
    if of == "spec":
        return all(f in a for f in b if f in w) and all(f in b or f in w for f in a)
    old, new = schema_index(evolution.before.schema), schema_index(wanted.schema)
    if of == "identifier":
        moved = [i for i in b if i in w and len(old[i].path) > 1 and old[i].path != new[i].path]
        return bool(b - a) and not a - b and all(i not in w or i in moved for i in b - a)
    return of == "order" and a == () and any(f.source_ids[0] not in new for f in b)
