"""Helpers for tests of the kinds of change of a column; random tables and random legal edits of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from hypothesis import strategies as st

from icemigrate.changes.add_column import AddColumn
from icemigrate.changes.change import Change, MetadataCommit, Statement, TablePair
from icemigrate.changes.descriptions import DescribeColumn
from icemigrate.changes.drop_column import DropColumn
from icemigrate.changes.make_optional import MakeOptional
from icemigrate.changes.make_required import MakeRequired
from icemigrate.changes.move_column import MoveColumn
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.changes.restore_column import RestoreColumn
from icemigrate.changes.set_default import SetDefault
from icemigrate.changes.widen_type import WidenType
from icemigrate.frozen import replace
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Snapshot, Table
from icemigrate.iceberg.types import (
    Decimal,
    Field,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    map_fields,
    renumber_fields,
)
from tests.support.small_tables import field_at, table

K = TypeVar("K", bound=Change)
METRICS = "write.metadata.metrics.column."

COLUMN_KINDS: tuple[type[Change], ...] = (
    DropColumn,
    RenameColumn,
    WidenType,
    MakeOptional,
    MakeRequired,
    DescribeColumn,
    SetDefault,
    RestoreColumn,
    AddColumn,
    MoveColumn,
)


def detected(kind: type[K], before: Table, after: Table) -> list[K]:
    """What a kind finds between two states."""
    found = list(kind.detect(TablePair(before, after)))
    assert all(isinstance(change, kind) for change in found)
    return [change for change in found if isinstance(change, kind)]


def one(kind: type[K], before: Table, after: Table) -> K:
    """The one change of a kind."""
    (change,) = detected(kind, before, after)
    return change


def texts(statements: tuple[Statement, ...] | None) -> list[str]:
    """Statements as text, a metadata commit as its summary in brackets."""
    assert statements is not None
    return [f"[{s.summary}]" if isinstance(s, MetadataCommit) else s.text for s in statements]


def combined(changes: list[K], before: Table) -> list[str]:
    """The statements of neighbours."""
    return texts(type(changes[0]).combine(changes, before, "lake"))


def edited(base: Table, path: str, **values: object) -> Table:
    """The table with attributes of one field set."""
    target = field_at(base.schema, path).id

    def change(f: Field) -> Field:
        return replace(f, **values) if f.id == target else f  # type: ignore[arg-type]

    root = map_fields(base.schema.root, change)
    assert isinstance(root, Struct)
    return replace(base, schema=replace(base.schema, fields=root.fields))


def with_rows(base: Table) -> Table:
    """The table after a write."""
    return replace(base, snapshot=Snapshot(7, 0, 3))


def layout(schema: Schema) -> str:
    """Names, ids and types in order."""
    return " ".join(f"{'.'.join(path)}:{f.id}" for path, f in schema.walk())


def rules(change: Change, before: Table) -> list[str]:
    """Rules that forbid a change."""
    return [p.rule for p in change.problems(before)]


_LEAVES: tuple[Type, ...] = (
    Primitive("int"),
    Primitive("float"),
    Primitive("string"),
    Decimal(9, 2),
)
_WIDER: dict[Type, Type] = {
    Primitive("int"): Primitive("long"),
    Primitive("float"): Primitive("double"),
    Decimal(9, 2): Decimal(12, 2),
}
_NAMES = ("a", "b", "c", "d", "e e", "f.f")


@dataclass
class _Ids:
    """New fields count down, as in a declaration."""

    new: count[int]


@st.composite
def types(draw: st.DrawFn, depth: int) -> Type:
    """A type without ids."""
    kind = draw(st.sampled_from(["leaf", "leaf", "struct", "list", "map"])) if depth else "leaf"
    if kind == "struct":
        return draw(structs(depth - 1))
    if kind == "list":
        return List(Field(0, "element", draw(types(depth - 1)), draw(st.booleans())))
    if kind == "map":
        value = Field(0, "value", draw(types(depth - 1)), draw(st.booleans()))
        return Map(Field(0, "key", Primitive("string"), True), value)
    return draw(st.sampled_from(_LEAVES))


@st.composite
def structs(draw: st.DrawFn, depth: int = 2) -> Struct:
    """A struct without ids."""
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=5, unique=True))
    return Struct(tuple(Field(0, n, draw(types(depth)), draw(st.booleans())) for n in names))


@st.composite
def edits(draw: st.DrawFn, type_: Type, ids: _Ids) -> Type:
    """What a legal migration could make of a type."""
    if isinstance(type_, Struct):
        return draw(_edited_struct(type_, ids))
    if isinstance(type_, List):
        return List(draw(_edited_field(type_.element, ids, type_.element.name)))
    if isinstance(type_, Map):
        return Map(type_.key, draw(_edited_field(type_.value, ids, type_.value.name)))
    return draw(st.sampled_from([type_, _WIDER.get(type_, type_)]))


@st.composite
def _edited_struct(draw: st.DrawFn, struct: Struct, ids: _Ids) -> Struct:
    kept = [f for f in struct.fields if draw(st.integers(0, 4))] or [struct.fields[0]]
    new = draw(st.integers(0, 2))
    names = draw(st.permutations(_NAMES)) if draw(st.booleans()) else [f.name for f in kept]
    names = [*names, *(f"n{i}" for i in range(new))]
    fields = [draw(_edited_field(f, ids, name)) for f, name in zip(kept, names, strict=False)]
    for i in range(new):
        fields.append(Field(next(ids.new), f"n{i}", _numbered(draw(types(1)), ids), draw(st.booleans())))
    return Struct(tuple(draw(st.permutations(fields))) if draw(st.booleans()) else tuple(fields))


@st.composite
def _edited_field(draw: st.DrawFn, field: Field, ids: _Ids, name: str) -> Field:
    doc = draw(st.sampled_from([field.doc, "said"])) if name not in ("element", "value") else None
    required = draw(st.sampled_from([field.required, not field.required]))
    return replace(field, name=name, type=draw(edits(field.type, ids)), required=required, doc=doc)


def _numbered(type_: Type, ids: _Ids) -> Type:
    return renumber_fields(type_, lambda: next(ids.new))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Table, Table]:
    """A table, and what a migration could want of it."""
    numbers = count(1)
    root = renumber_fields(draw(structs()), lambda: next(numbers))
    assert isinstance(root, Struct)
    blank = table("x: int")
    before = replace(
        blank, schema=replace(blank.schema, fields=root.fields), last_column_id=next(numbers) - 1
    )
    target = draw(edits(root, _Ids(count(-1, -1))))
    assert isinstance(target, Struct)
    return before, replace(before, schema=replace(before.schema, fields=target.fields))
