"""Renames and moves among siblings at any depth: safe after every statement, never more than are needed."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.changes.change import SqlStatement
from icemigrate.files.write.yaml_text import to_yaml
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import FieldPath, format_path, parse_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_edits import edit_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, List, Map, Primitive, Struct, Type
from tests.support.shared_plans import Judged, plan_text
from tests.support.small_tables import NAME, table

NAMES = ("a", "A", "b", "B", "c", "x.y", "select", "é", "😎 mood", "back`tick", "n" * 300)
PLACES = ("", "s", "l.element", "m.value")
_RENAME = re.compile(r"ALTER TABLE lake\.db\.t RENAME COLUMN (.+) TO (.+)\Z", re.DOTALL)


def nested(place: str, fields: Sequence[Field]) -> Table:
    """A table whose fields stand at this place."""
    inner: Type = Struct(tuple(fields))
    ids = max(f.id for f in fields) + 1
    if place == "s":
        outer = [Field(ids, "s", inner, required=True)]
    elif place == "l.element":
        outer = [Field(ids, "l", List(Field(ids + 1, "element", inner)))]
    elif place == "m.value":
        key = Field(ids + 1, "key", Primitive("string"), required=True)
        outer = [Field(ids, "m", Map(key, Field(ids + 2, "value", inner)))]
    else:
        outer = list(fields)
    blank = table("id: long")
    return replace(blank, schema=Schema(tuple(outer)), last_column_id=ids + 2)


def planned(before: Table, keys: dict[str, object], actual: Table) -> Judged:
    text = to_yaml({"allow": ["destructive"], "tables": [{"name": "db.t", **keys}]})
    return plan_text(text, DeclaredState({NAME: before}, frozenset({NAME.namespace})), {NAME: actual})


def statements(judged: Judged) -> list[str]:
    found = [s for step in judged.table.steps for s in step.statements]
    return [s.text for s in found if isinstance(s, SqlStatement)]


def unquoted(path: str) -> FieldPath:
    """A path as Spark SQL writes it."""
    parts = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", path)
    return tuple(quoted.replace("``", "`") if quoted else plain for quoted, plain in parts)


def renamed(before: Table, statement: str) -> Table:
    """What Spark makes of a rename; it takes no name that a sibling has, whatever its case."""
    found = _RENAME.match(statement)
    assert found, statement
    path, (name,) = unquoted(found[1]), unquoted(found[2])
    one = before.schema.find(path)
    assert one is not None, f"nothing is called {path}"
    others = [p[-1] for p, _ in before.schema.walk() if p[:-1] == path[:-1]]
    assert name.lower() not in [other.lower() for other in others], f"{name} is taken"
    return replace(before, schema=edit_by_id(before.schema, one.id, lambda f: replace(f, name=name)))


def cycles(names: Sequence[str], to: Sequence[str]) -> int:
    """How many circles the renames go in, names taken without case: each needs one name in passing."""
    holder = {name.lower(): i for i, name in enumerate(names)}
    next_of = {
        i: holder[new.lower()]
        for i, (old, new) in enumerate(zip(names, to, strict=True))
        if old != new and new.lower() in holder
    }
    seen: set[int] = set()
    found = 0
    for start in next_of:
        line: list[int] = []
        at: int | None = start
        while at is not None and at not in seen:
            seen.add(at)
            line.append(at)
            at = next_of.get(at)
        found += at is not None and at in line
    return found


@st.composite
def renames(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """A place, the names there, and what they shall be."""
    unique = st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique_by=str.lower)
    names = draw(unique)
    to = draw(
        st.one_of(
            st.permutations(names),
            st.lists(st.sampled_from(NAMES), min_size=len(names), max_size=len(names), unique_by=str.lower),
            st.just([n.swapcase() for n in names]),
        )
    )
    return draw(st.sampled_from(PLACES)), names, list(to)


@given(renames())
def test_renames_are_few_and_go_on_after_any_statement(drawn: tuple[str, list[str], list[str]]) -> None:
    place, names, to = drawn
    before = nested(place, [Field(i, n, Primitive("int")) for i, n in enumerate(names, 1)])
    above = parse_path(place) if place else ()
    pairs = [(old, new) for old, new in zip(names, to, strict=True) if old != new]
    moves = {format_path((*above, old)): format_path((new,)) for old, new in pairs}
    judged = planned(before, {"renames": moves} if moves else {"description": "same"}, before)
    assert judged.ready, (judged.said, judged.rules)
    said = [s for s in statements(judged) if " RENAME COLUMN " in s]
    assert len(said) == len(moves) + cycles(names, to)
    there = before
    for statement in said:
        rest = planned(before, {"renames": moves}, there)
        assert rest.ready, (there, rest.rules, rest.plan and rest.plan.conflicts)
        assert rest.after.schema == judged.after.schema
        there = renamed(there, statement)
    assert there.schema == judged.after.schema
    assert statements(planned(before, {"renames": moves}, there)) == [] or not moves


def fewest_moves(order: tuple[int, ...], goal: tuple[int, ...]) -> int:
    """By trying everything: how many times one must be taken out and put somewhere else."""
    waiting = deque([(order, 0)])
    seen = {order}
    while waiting:
        now, steps = waiting.popleft()
        if now == goal:
            return steps
        for following in _one_move(now):
            if following not in seen:
                seen.add(following)
                waiting.append((following, steps + 1))
    raise AssertionError("every order is reached")


def _one_move(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for i in range(len(order)):
        rest = order[:i] + order[i + 1 :]
        for j in range(len(order)):
            yield (*rest[:j], order[i], *rest[j:])


@st.composite
def orders(draw: st.DrawFn) -> tuple[str, list[int], list[int]]:
    """A place, the fields there by id, and what shall stand there: some gone, some new (negative)."""
    there = list(range(1, draw(st.integers(2, 6)) + 1))
    kept = [i for i in there if draw(st.integers(0, 5))] or there[:1]
    new = [-i for i in range(1, draw(st.integers(0, 2)) + 1)]
    return draw(st.sampled_from(PLACES)), there, draw(st.permutations(kept + new))


@given(orders())
def test_moves_are_as_few_as_can_be(drawn: tuple[str, list[int], list[int]]) -> None:
    place, there, goal = drawn
    before = nested(place, [Field(i, f"c{i}", Primitive("int")) for i in there])
    above = parse_path(place) if place else ()

    def path(i: int) -> str:
        return format_path((*above, f"c{i}" if i > 0 else f"new{-i}"))

    columns: list[dict[str, object]] = []
    for at, i in enumerate(goal):
        one: dict[str, object] = {"name": path(i)} | ({"type": "int"} if i < 0 else {})
        columns.append(one | ({"first": True} if at == 0 else {"after": path(goal[at - 1])}))
    gone = [path(i) for i in there if i not in goal]
    keys: dict[str, object] = {"columns": columns} | ({"drop_columns": gone} if gone else {})
    judged = planned(before, keys, before)
    assert judged.ready, (judged.said, judged.rules)
    said = statements(judged)
    kept = [i for i in there if i in goal]
    altering = (s for s in said if " ALTER COLUMN" in s)
    moved = [place for s in altering for place in re.findall(r"\S+ (?:FIRST|AFTER )", s)]
    assert len(moved) == fewest_moves(tuple(kept), tuple(i for i in goal if i > 0))
    names = [p[-1] for p, _ in judged.after.schema.walk() if p[:-1] == above and p[-1][0] in "cn"]
    assert names == [parse_path(path(i))[-1] for i in goal]


@pytest.mark.parametrize("place", PLACES)
def test_a_reversed_order_is_one_move_less_than_there_are_fields(place: str) -> None:
    before = nested(place, [Field(i, f"c{i}", Primitive("int")) for i in range(1, 101)])
    above = f"{place}." if place else ""
    columns = [{"name": f"{above}c100", "first": True}]
    columns += [{"name": f"{above}c{i}", "after": f"{above}c{i + 1}"} for i in range(99, 0, -1)]
    (statement,) = statements(planned(before, {"columns": columns}, before))
    assert statement.count(" AFTER ") == 99


def test_identifiers_in_structs_make_way_for_renames_and_come_back_after_any_statement() -> None:
    deepest = "required struct<j: required int, i: required int>"
    before = table(
        f"id: required long, s: required struct<k: required int, t: {deepest}>", identifier="id, s.k, s.t.j"
    )
    keys: dict[str, object] = {"renames": {"s": "r", "s.t": "u", "s.t.j": "i", "s.t.i": "j"}}
    judged = planned(before, keys, before)
    assert judged.ready
    assert judged.after.schema.identifier_ids == before.schema.identifier_ids
    said = statements(judged)
    assert said[0] == "ALTER TABLE lake.db.t DROP IDENTIFIER FIELDS s.k, s.t.j"
    assert said[-1] == "ALTER TABLE lake.db.t SET IDENTIFIER FIELDS id, r.k, r.u.i"
    (root,) = before.schema.identifier_ids & {1}
    there = replace(before, schema=replace(before.schema, identifier_ids=frozenset({root})))
    for statement in said[1:]:
        rest = planned(before, keys, there)
        assert rest.ready
        assert rest.after.schema == judged.after.schema
        if " RENAME COLUMN " in statement:
            there = renamed(there, statement)
    assert there.schema.fields == judged.after.schema.fields
