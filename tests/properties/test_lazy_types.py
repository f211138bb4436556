"""Structs that are read when they are asked for: only time tells them from those that were made whole."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.iceberg.lazy_types import lazy_type
from icemigrate.iceberg.schema import Schema, differing_fields, schema_index
from icemigrate.iceberg.schema_json import schema_to_json, type_to_json
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_json import table_from_text, table_to_text
from icemigrate.iceberg.types import (
    Struct,
    Type,
    children,
    descendants,
    has_descendant,
    is_nested,
    walk_fields,
)
from icemigrate.planning.merge import merge_tables
from tests.properties.test_planning import planned
from tests.support.evolution_strategies import Evolution, befores, evolutions


def unread(table: Table) -> Table:
    """The table as it comes out of a history."""
    return table_from_text(table_to_text(table).encode())


def sharing(base: Table, actual: Table) -> Table:
    """A table with the columns of another one where they are equal, as a catalog loads it."""
    known = {column.id: column for column in base.schema.fields}
    fields = tuple(known[f.id] if known.get(f.id) == f else f for f in actual.schema.fields)
    return replace(actual, schema=replace(actual.schema, fields=fields))


@given(befores())
def test_an_unread_table_is_equal_in_all_that_can_be_asked(table: Table) -> None:
    assert unread(table) == table
    assert table == unread(table)
    assert unread(table) == unread(table)
    assert repr(unread(table).schema) == repr(table.schema)
    assert [hash(f) for f in unread(table).schema.fields] == [hash(f) for f in table.schema.fields]
    assert list(unread(table).schema.walk()) == list(table.schema.walk())
    assert schema_to_json(unread(table).schema) == schema_to_json(table.schema)
    assert pickle.loads(pickle.dumps(unread(table).schema)) == table.schema
    assert copy.deepcopy(unread(table)) == table


def _nested(table: Table) -> list[Type]:
    return [f.type for _, f in table.schema.walk() if is_nested(f.type)]


@given(befores(), st.randoms(use_true_random=False))
def test_what_is_below_is_known_before_it_is_read(table: Table, random: Any) -> None:
    for type_ in [table.schema.root, *_nested(table)]:
        late = lazy_type(json.loads(json.dumps(type_to_json(type_))))
        fields = [f for _, f in walk_fields(type_)]
        found = descendants(late)
        assert found == descendants(type_)
        assert found.ids == {f.id for f in fields}
        assert found.lowest == min((f.id for f in fields), default=0)
        assert found.leaves == {f.type for f in fields if not is_nested(f.type)}
        assert found.is_dotted == any("." in f.name for f in fields)
        one = random.choice([*found.ids, 99_999])
        assert has_descendant(late, one) == (one in found.ids)


@given(befores())
def test_what_is_below_is_kept(table: Table) -> None:
    text = table_to_text(table)
    for kept in (text, json.dumps({k: v for k, v in json.loads(text).items() if k != "nested"})):
        read = table_from_text(kept.encode())
        assert read == table
        for column, same in zip(read.schema.fields, table.schema.fields, strict=True):
            assert descendants(column.type) == descendants(same.type)


@given(befores(), befores())
def test_types_differ_as_they_do_when_they_are_read(one: Table, other: Table) -> None:
    assert (unread(one).schema == unread(other).schema) == (one.schema == other.schema)
    assert (unread(one).schema == other.schema) == (one.schema == other.schema)


@given(befores())
def test_an_index_finds_what_a_walk_finds(table: Table) -> None:
    walked = {f.id: (path, f) for path, f in table.schema.walk()}
    for schema in (unread(table).schema, table.schema):
        found = schema_index(schema)
        for field_id, (path, field) in reversed(walked.items()):
            assert field_id in found
            assert (found[field_id].path, found[field_id].field) == (path, field)
            line = schema.line_to(field_id)
            assert (tuple(f.name for f in line), line[-1]) == (path, field)
            assert schema.parent_of(field_id) == found[field_id].parent
            above = found[field_id].parent
            assert field in (schema.fields if above is None else children(walked[above][1].type))
        assert 99_999 not in found
        assert list(found) == list(walked)
        assert found.get(99_999) is None
        assert schema.line_to(99_999) == ()


@given(evolutions())
def test_what_is_apart_is_all_that_differs(evolution: Evolution) -> None:
    base, wanted = evolution.before.schema, evolution.wanted.schema
    assert list(differing_fields(wanted, Schema())) == list(schema_index(wanted).items())
    assert list(differing_fields(wanted, wanted)) == []
    told = dict(differing_fields(wanted, sharing(evolution.wanted, evolution.before).schema))
    for field_id, entry in schema_index(wanted).items():
        there = schema_index(base).get(field_id)
        assert field_id in told or (there is not None and there.field == entry.field)


@given(evolutions())
def test_a_plan_is_the_same_whatever_was_read(evolution: Evolution) -> None:
    """The history's table unread, and the catalog's with the columns that it has in common with it."""
    base = unread(evolution.before)
    late = replace(evolution, before=base, actual=sharing(base, unread(evolution.actual)))
    assert merge_tables(base, late.wanted, late.actual) == merge_tables(
        evolution.before, evolution.wanted, evolution.actual
    )
    one, other = planned(late), planned(evolution)
    assert one.table == other.table
    assert (one.ready, one.rules, one.said) == (other.ready, other.rules, other.said)
    assert one.after == other.after


def test_fields_are_made_only_when_they_are_asked_for() -> None:
    """Nothing that this test does not ask for is read: it would fail."""
    broken = {"id": 3, "name": "deep", "required": False, "type": {"type": "struct", "fields": [{"id": 4}]}}
    whole = {"id": 2, "name": "x", "required": False, "type": "int"}
    type_ = lazy_type({"type": "struct", "fields": [whole, broken]})
    assert isinstance(type_, Struct)
    assert [f.name for f in type_.fields] == ["x", "deep"]
    assert type_.fields[1].type == type_.fields[1].type
    same = lazy_type({"type": "struct", "fields": [whole, broken]})
    assert same == type_
