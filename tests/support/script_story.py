"""What happens to the table of a random script: rows that arrive, and what others do to it meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from icemigrate.iceberg.schema import IndexedField, schema_index, sibling_ids
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Primitive, Struct, is_nested
from icemigrate.spark_sql.identifiers import path_sql
from tests.support.random_tables import KEY
from tests.support.random_undo_course import Course, write
from tests.support.undo_project import UndoWorld, facts

GONE = object()
"""What a fact became that others took away."""


@dataclass(slots=True)
class Story:
    """What happens to one table over several versions.

    :param writes: whether rows come between the versions, and behind the last one.
    :param before: as it was before each version.
    :param after: as it was behind it.
    :param deltas: what others changed, each behind a version: the facts that they set, or took away.
    """

    course: Course
    writes: bool
    before: dict[int, Table] = field(default_factory=dict)
    after: dict[int, Table] = field(default_factory=dict)
    deltas: list[tuple[int, dict[Any, Any]]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1000)))

    @property
    def touched_by_others(self) -> set[int]:
        """Ids of fields that others changed, took or brought."""
        return {key[0] for _, delta in self.deltas for key in delta if isinstance(key[0], int)}

    def expected(self, version: int) -> dict[Any, Any]:
        """The facts when all from this version on is undone: those before it, and what others did since."""
        out = told(self.before[version])
        for behind, delta in self.deltas:
            if behind >= version:
                out |= delta
        return {key: value for key, value in out.items() if value is not GONE}


def told(table: Table) -> dict[Any, Any]:
    """The facts of a table, of its fields by their own names."""
    out = facts(table)
    for i, entry in schema_index(table.schema).items():
        del out[i, "path"]
        out |= {(i, "name"): entry.field.name, (i, "parent"): entry.parent}
    return out


def rows_come(world: UndoWorld, s: Story) -> None:
    """A row arrives, under the schema of now."""
    if s.writes or not s.course.written:
        write(world, s.course, s.course.name, next(s.numbers))


def others(draw: Callable[..., Any], world: UndoWorld, s: Story, version: int) -> None:
    """What others do behind a version: often nothing."""
    what = draw(st.sampled_from((None, None, *sorted(_ACTS))))
    if what is None:
        return
    was = world.actual(s.course.name)
    _ACTS[what](draw, world, s, was)
    now, before = told(world.actual(s.course.name)), told(was)
    delta = {k: now.get(k, GONE) for k in now.keys() | before.keys() if now.get(k) != before.get(k)}
    if delta:
        s.deltas.append((version, delta))


def _free(s: Story, table: Table) -> list[IndexedField]:
    """Fields that others may rename or drop: no layout rests on them, and no version made or changed them."""
    around, entries = sibling_ids(table.schema), schema_index(table.schema)
    held = {KEY}
    for one in (table, *s.before.values()):
        fields = [f for spec in (one.spec, *one.older_specs) for f in spec.fields]
        held |= {i for f in (*fields, *one.sort_order.fields) for i in f.source_ids}
        held |= one.schema.identifier_ids
    for version, was in s.before.items():
        then, now = told(was), told(s.after[version])
        held |= {k[0] for k in then.keys() | now.keys() if then.get(k) != now.get(k)}
    return [
        e
        for i, e in entries.items()
        if i not in held
        and not is_nested(e.field.type)
        and (e.parent is None or isinstance(entries[e.parent].field.type, Struct))
        and any(entries[j].field.type != Primitive("unknown") for j in around[e.parent] if j != i)
        and not _is_in_map_key(entries, e)
    ]


def _is_in_map_key(entries: Mapping[int, IndexedField], entry: IndexedField) -> bool:
    while entry.parent is not None:
        above = entries[entry.parent]
        if entry.field.name == "key" and not isinstance(above.field.type, Struct):
            return True
        entry = above
    return False


def _they_rename(draw: Callable[..., Any], world: UndoWorld, s: Story, table: Table) -> None:
    if free := _free(s, table):
        path = path_sql(draw(st.sampled_from(free)).path)
        world.sql(f"ALTER TABLE @ RENAME COLUMN {path} TO `theirs {next(s.numbers)}`", s.course.name)


def _they_drop(draw: Callable[..., Any], world: UndoWorld, s: Story, table: Table) -> None:
    if free := _free(s, table):
        path = path_sql(draw(st.sampled_from(free)).path)
        world.sql(f"ALTER TABLE @ DROP COLUMN {path}", s.course.name)


def _they_add(draw: Callable[..., Any], world: UndoWorld, s: Story, table: Table) -> None:
    world.sql(f"ALTER TABLE @ ADD COLUMN `new of theirs {next(s.numbers)}` STRING", s.course.name)


def _they_compact(draw: Callable[..., Any], world: UndoWorld, s: Story, table: Table) -> None:
    """Every file is written anew under the schema of now: what is dropped then is lost to its rows."""
    if not s.writes:
        return  # A file that is new, too, ends the way back of a wider type.
    world.spark.sql(
        f"CALL `{world.catalog}`.system.rewrite_data_files(table => '{s.course.name}',"
        " options => map('rewrite-all', 'true'))"
    )
    there = schema_index(world.actual(s.course.name).schema).keys()
    for number, under in s.course.written.items():
        gone = frozenset(i for i in schema_index(under) if i not in there)
        s.course.lost[number] = s.course.lost.get(number, frozenset()) | gone


def _they_expire(draw: Callable[..., Any], world: UndoWorld, s: Story, table: Table) -> None:
    world.spark.sql(
        f"CALL `{world.catalog}`.system.expire_snapshots(table => '{s.course.name}',"
        " older_than => TIMESTAMP '2999-01-01', retain_last => 1)"
    )


_ACTS: dict[str, Callable[[Callable[..., Any], UndoWorld, Story, Table], None]] = {
    "rename": _they_rename,
    "drop": _they_drop,
    "add": _they_add,
    "compact": _they_compact,
    "expire": _they_expire,
}
