"""The facts that a migration of one table touches, for finding migrations that share one.

A fact is a path from the whole to the part; touching the whole touches every part of it, so two paths overlap
if one is the beginning of the other. Fields in a path are ids, from the outermost to the innermost, or paths
for new fields without an id.

Facts that a migration *uses* count as well: partitioning by a column needs the column. So does every name
that is taken or freed, because a restored column needs its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.schema import IndexedField, schema_index, sibling_ids
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import ALL_PREFIXES, column_key
from icemigrate.planning.merge.merge_fields import field_aspects

FootprintFact: TypeAlias = tuple[str, ...]
"""The table's identity, then the part of it; ``(identity,)`` is the whole table."""

_USED = "in use"


def migration_footprint(before: Table | None, after: Table | None) -> frozenset[FootprintFact]:
    """The facts that lead from one declared state of a table to another.

    :param before: the table before; ``None`` where it is made.
    :param after: the table after; ``None`` where it is dropped.
    """
    table = after or before
    assert table is not None, "nothing leads from nothing to nothing"
    identity = _identity(before if before is not None and before.uuid else table)
    facts: set[FootprintFact] = set()
    names = {str(t.name) for t in (before, after) if t is not None}
    if before is None or after is None:
        return frozenset({(identity,), *(("name", name) for name in names)})
    if len(names) > 1:
        facts |= {(identity, "name"), *(("name", name) for name in names)}
    for part in (*_fields(before, after), *_layout(before, after), *_settings(before, after)):
        facts.add((identity, *part))
    return frozenset(facts)


def overlapping_facts(a: Iterable[FootprintFact], b: Iterable[FootprintFact]) -> frozenset[FootprintFact]:
    """The facts of ``a`` that ``b`` touches too, completely or in part."""
    others = tuple(b)
    return frozenset(fact for fact in a if any(_overlap(fact, other) for other in others))


def _overlap(a: FootprintFact, b: FootprintFact) -> bool:
    length = min(len(a), len(b))
    if a[:length] != b[:length]:
        return False
    # Using a field only needs its existence: two migrations may, and one may change its description.
    return not (a[-1] == b[-1] == _USED)


def _identity(table: Table) -> str:
    return table.uuid or str(table.name)


def _fields(before: Table, after: Table) -> Iterator[FootprintFact]:
    old, new = schema_index(before.schema), schema_index(after.schema)
    for field_id in {**old, **new}:
        was, now = old.get(field_id), new.get(field_id)
        if was is None or now is None:
            entry, side = (now, new) if now is not None else (was, old)
            assert entry is not None
            if entry.parent is None or (entry.parent in old and entry.parent in new):
                yield _chain(entry, side)
                yield _name(entry, side)
            continue
        then, since = field_aspects(was.field), field_aspects(now.field)
        changed = [aspect for aspect in then if then[aspect] != since[aspect]]
        yield from ((*_chain(now, new), aspect) for aspect in changed)
        if "name" in changed:
            yield _name(was, old)
            yield _name(now, new)
    yield from _orders(before, after)


def _chain(entry: IndexedField, side: Mapping[int, IndexedField]) -> FootprintFact:
    parents: list[str] = []
    above = entry.parent
    while above is not None:
        parents.append(_label(side[above]))
        above = side[above].parent
    return ("columns", *reversed(parents), _label(entry))


def _label(entry: IndexedField) -> str:
    return str(entry.field.id) if entry.field.id > 0 else format_path(entry.path)


def _name(entry: IndexedField, side: Mapping[int, IndexedField]) -> FootprintFact:
    return ("names", *_chain(entry, side)[1:-1], entry.field.name)


def _orders(before: Table, after: Table) -> Iterator[FootprintFact]:
    """The structs whose remaining fields have another order."""
    old, new = sibling_ids(before.schema), sibling_ids(after.schema)
    for parent in old.keys() & new.keys():
        kept = [i for i in old[parent] if i in new[parent]]
        if kept != [i for i in new[parent] if i in old[parent]]:
            yield ("order", str(parent))


def _layout(before: Table, after: Table) -> Iterator[FootprintFact]:
    """Identifier, partitions and order, each with the fields that it now relies on."""
    entries = schema_index(after.schema)

    def using(ids: Iterable[int]) -> Iterator[FootprintFact]:
        return ((*_chain(entries[i], entries), _USED) for i in ids if i in entries)

    if before.schema.identifier_ids != after.schema.identifier_ids:
        yield ("identifier",)
        yield from using(after.schema.identifier_ids)
    old, new = ({f.definition for f in t.spec.live} for t in (before, after))
    for sources, transform, name in old ^ new:
        yield ("partition_by", transform, *(_source(s, entries) for s in sources), name)
        yield from using(sources)
    if before.sort_order.fields != after.sort_order.fields:
        yield ("sort_by",)
        yield from using(i for f in after.sort_order.fields for i in f.source_ids)


def _source(field_id: int, entries: Mapping[int, IndexedField]) -> str:
    return _label(entries[field_id]) if field_id in entries else str(field_id)


def _settings(before: Table, after: Table) -> Iterator[FootprintFact]:
    columns = {column_key(path): f.id for path, f in after.schema.walk()}
    entries = schema_index(after.schema)
    for key in before.properties.keys() | after.properties.keys():
        if before.properties.get(key) != after.properties.get(key):
            yield ("properties", key)
            named = next((columns.get(key[len(p) :]) for p in ALL_PREFIXES if key.startswith(p)), None)
            if named is not None:
                yield (*_chain(entries[named], entries), _USED)
    if before.format_version != after.format_version:
        yield ("format_version",)
    for name in before.refs.keys() | after.refs.keys():
        if before.refs.get(name) != after.refs.get(name):
            yield ("refs", name)
