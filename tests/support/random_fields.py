"""What of a table an edit can be made to, drawn at random, and the table with one of its fields changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TypeAlias

from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.schema import IndexedField, schema_index
from icemigrate.iceberg.schema_edits import edit_by_id, fields_of
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Map, Struct
from tests.support.random_tables import KEY, NAMES

Ids: TypeAlias = Iterator[int]
Edit: TypeAlias = Callable[[st.DrawFn, Table, Ids], "Table | None"]
"""Another state of a table, or ``None`` where the table has nothing to do it to."""


def new_ids() -> Ids:
    """Ids of what is new in a declaration."""
    return count(-1, -1)


def touchable(table: Table) -> Iterator[IndexedField]:
    """The fields that a migration may touch: not the key, and nothing in the key of a map."""
    entries = schema_index(table.schema)
    in_keys = {i for i, e in entries.items() if _is_map_key(table, e)}
    for i, entry in entries.items():
        above = entry.parent
        while above is not None and above not in in_keys:
            above = entries[above].parent
        if i != KEY and i not in in_keys and above is None:
            yield entry


def _is_map_key(table: Table, entry: IndexedField) -> bool:
    above = None if entry.parent is None else schema_index(table.schema)[entry.parent].field.type
    return isinstance(above, Map) and entry.field.name == "key"


def named(table: Table) -> list[IndexedField]:
    """The columns and the fields of structs."""
    entries = schema_index(table.schema)
    return [
        e for e in touchable(table) if e.parent is None or isinstance(entries[e.parent].field.type, Struct)
    ]


def choose(draw: st.DrawFn, found: Iterable[IndexedField]) -> Field | None:
    some = [e.field for e in found]
    return draw(st.sampled_from(some)) if some else None


def with_field(table: Table, field: Field) -> Table:
    return replace(table, schema=edit_by_id(table.schema, field.id, lambda _: field))


def structs(table: Table) -> list[int | None]:
    """What a field can be added to."""
    return [None, *(e.field.id for e in touchable(table) if isinstance(e.field.type, Struct))]


def free_names(table: Table, parent: int | None) -> list[str]:
    taken = {f.name for f in fields_of(table.schema, parent)} | {f.name for f in table.spec.fields}
    taken |= {f.name for spec in table.older_specs for f in spec.fields}
    return [name for name in (*NAMES, "new", "newer") if name not in taken]
