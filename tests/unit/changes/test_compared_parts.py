"""A kind of change is detected only where one of the parts that it compares differs."""

from __future__ import annotations

import pytest
from hypothesis import given

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import ALL_PARTS, Change, TablePair, TablePart
from icemigrate.frozen import replace
from icemigrate.iceberg.table import Ref, Table
from icemigrate.planning.table_difference import find_difference, remaining_differences
from tests.support.evolution_strategies import befores
from tests.support.small_tables import spec_of, table, with_columns

BASE = replace(
    table("id: required long, v: int, at: timestamp", partition="day(at)", sort="v"),
    properties={"k": "1"},
    refs={"t": Ref("tag", 7)},
)


def with_parts_of(target: Table, source: Table, parts: frozenset[TablePart]) -> Table:
    """A table with some parts of another one."""
    schema = target.schema
    if "fields" in parts:
        schema = replace(schema, fields=source.schema.fields)
    if "identifier" in parts:
        schema = replace(schema, identifier_ids=source.schema.identifier_ids)
    others = {part: getattr(source, part) for part in parts - {"fields", "identifier"}}
    return replace(target, schema=schema, **others)


@given(before=befores(), other=befores())
def test_equal_parts_need_no_change_whatever_else_differs(before: Table, other: Table) -> None:
    for kind in CHANGE_KINDS:
        after = with_parts_of(other, before, kind.compares)
        assert list(kind.detect(TablePair(before, after))) == [], kind.kind


@pytest.mark.parametrize(
    ("part", "target"),
    [
        ("fields", with_columns(BASE, "id: required long, v: long, at: timestamp")),
        ("identifier", replace(BASE, schema=replace(BASE.schema, identifier_ids=frozenset({1})))),
        ("spec", replace(BASE, spec=spec_of(BASE.schema, "v"))),
        ("sort_order", replace(BASE, sort_order=replace(BASE.sort_order, fields=()))),
        ("properties", replace(BASE, properties={"k": "2"})),
        ("format_version", replace(BASE, format_version=3)),
        ("refs", replace(BASE, refs={})),
    ],
)
def test_kinds_of_equal_parts_are_not_asked(
    part: TablePart, target: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pair: TablePair) -> None:
        raise AssertionError("its parts are equal")

    assert TablePair(BASE, target).differing_parts == {part}
    expected = find_difference(BASE, target, CHANGE_KINDS)
    asked = list[type[Change]]()
    for kind in CHANGE_KINDS:
        if part in kind.compares:
            asked.append(kind)
        else:
            monkeypatch.setattr(kind, "detect", refuse)
    found = find_difference(BASE, target, CHANGE_KINDS)
    assert found == expected
    assert [type(f.change) for f in found.found]
    assert len(asked) < len(CHANGE_KINDS) / 2
    # The result has no difference left, so no kind is asked to prove it.
    for kind in asked:
        if kind.compares != ALL_PARTS:
            monkeypatch.setattr(kind, "detect", refuse)
    assert remaining_differences(found, CHANGE_KINDS) == ()


def test_every_part_is_compared_by_a_kind_and_a_new_table_differs_in_all() -> None:
    assert (
        frozenset[TablePart]().union(*(k.compares for k in CHANGE_KINDS if k.compares < ALL_PARTS))
        == ALL_PARTS
    )
    assert TablePair(None, BASE).differing_parts == ALL_PARTS
