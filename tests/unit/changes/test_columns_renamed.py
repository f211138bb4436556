"""Columns that are called otherwise."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icemigrate.changes.change import Reversibility
from icemigrate.changes.rename_column import RenameColumn
from icemigrate.iceberg.table import Table
from tests.support.column_edits import (
    METRICS,
    combined,
    detected,
    edited,
    layout,
    rules,
    texts,
    with_rows,
)
from tests.support.small_tables import table, with_columns


def renames(base: Table, columns: str, renamed: Mapping[str, str]) -> list[RenameColumn]:
    """The renames that lead to other columns; ``renamed`` is new: old."""
    return detected(RenameColumn, base, with_columns(base, columns, renamed))


def test_rename_by_itself() -> None:
    base = table("id: int, volume: int", properties={METRICS + "volume": "full"})
    (change,) = renames(base, "id: int, `the quantity`: int", {"`the quantity`": "volume"})
    assert change.describe() == "volume → `the quantity`"
    assert change.subject == ("renames", "volume")
    after = change.apply(base)
    assert layout(after.schema) == "id:1 the quantity:2"
    assert after.properties == {METRICS + "the quantity": "full"}
    assert texts(change.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t RENAME COLUMN volume TO `the quantity`"
    ]
    assert change.reversal(with_rows(base)).answer is Reversibility.YES
    assert rules(change, base) == []


def test_renames_run_from_the_deepest_up() -> None:
    base = table("s: struct<a: int>, l: list<struct<x: int>>")
    changes = renames(
        base,
        "t: struct<b: int>, k: list<struct<y: int>>",
        {"t": "s", "t.b": "s.a", "k": "l", "k.element.y": "l.element.x"},
    )
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN l.element.x TO y",
        "ALTER TABLE lake.db.t RENAME COLUMN s.a TO b",
        "ALTER TABLE lake.db.t RENAME COLUMN s TO t",
        "ALTER TABLE lake.db.t RENAME COLUMN l TO k",
    ]


def test_a_change_of_case_goes_over_a_third_name() -> None:
    base = table("id: int, note: int")
    (change,) = renames(base, "id: int, Note: int", {"Note": "note"})
    assert texts(change.statements(base, "lake")) == [
        "ALTER TABLE lake.db.t RENAME COLUMN note TO __icemigrate_2",
        "ALTER TABLE lake.db.t RENAME COLUMN __icemigrate_2 TO Note",
    ]
    assert layout(change.apply(base).schema) == "id:1 Note:2"


def test_a_chain_is_ordered() -> None:
    base = table("a: int, b: int")
    changes = renames(base, "B: int, c: int", {"B": "a", "c": "b"})
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN b TO c",
        "ALTER TABLE lake.db.t RENAME COLUMN a TO B",
    ]


def test_a_swap_and_a_rotation() -> None:
    base = table("s: struct<a: int, b: int>, x: int, y: int, z: int")
    changes = renames(
        base,
        "s: struct<b: int, a: int>, y: int, z: int, x: int",
        {"s.b": "s.a", "s.a": "s.b", "y": "x", "z": "y", "x": "z"},
    )
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN s.a TO __icemigrate_5",
        "ALTER TABLE lake.db.t RENAME COLUMN s.b TO a",
        "ALTER TABLE lake.db.t RENAME COLUMN s.__icemigrate_5 TO b",
        "ALTER TABLE lake.db.t RENAME COLUMN x TO __icemigrate_2",
        "ALTER TABLE lake.db.t RENAME COLUMN z TO x",
        "ALTER TABLE lake.db.t RENAME COLUMN y TO z",
        "ALTER TABLE lake.db.t RENAME COLUMN __icemigrate_2 TO y",
    ]


@pytest.mark.parametrize(
    "properties",
    [
        {"a": "1", "b": "2", "c": "3"},
        {"a": "1"},
        {"b": "2"},
        {"c": "3"},
        {"a": "1", "c": "3"},
        {"b": "2", "c": "3"},
    ],
)
def test_properties_follow_through_a_rotation(properties: Mapping[str, str]) -> None:
    base = table("a: int, b: int, c: int", properties={METRICS + k: v for k, v in properties.items()})
    after = base
    for change in renames(base, "b: int, c: int, a: int", {"b": "a", "c": "b", "a": "c"}):
        after = change.apply(after)
    assert layout(after.schema) == "b:1 c:2 a:3"
    new = {"a": "b", "b": "c", "c": "a"}
    assert after.properties == {METRICS + new[k]: v for k, v in properties.items()}


def test_identifiers_in_structs_step_aside() -> None:
    base = table(
        "id: required long, place: required struct<lat: required long, lng: required long>",
        identifier="id, place.lat",
    )
    inner = renames(
        base,
        "id: required long, place: required struct<latitude: required long, lng: required long>",
        {"place.latitude": "place.lat"},
    )
    assert combined(inner, base) == [
        "ALTER TABLE lake.db.t DROP IDENTIFIER FIELDS place.lat",
        "ALTER TABLE lake.db.t RENAME COLUMN place.lat TO latitude",
        "ALTER TABLE lake.db.t SET IDENTIFIER FIELDS id, place.latitude",
    ]
    outer = renames(
        base,
        "key: required long, spot: required struct<lat: required long, lng: required long>",
        {"spot": "place", "key": "id"},
    )
    assert combined(outer, base) == [
        "ALTER TABLE lake.db.t DROP IDENTIFIER FIELDS place.lat",
        "ALTER TABLE lake.db.t RENAME COLUMN id TO key",
        "ALTER TABLE lake.db.t RENAME COLUMN place TO spot",
        "ALTER TABLE lake.db.t SET IDENTIFIER FIELDS key, spot.lat",
    ]
    assert inner[0].apply(base).schema.identifier_ids == base.schema.identifier_ids


def test_other_renames_leave_identifiers_alone() -> None:
    base = table("id: required long, s: required struct<a: required int, b: int>", identifier="id, s.a")
    changes = renames(
        base, "key: required long, s: required struct<a: required int, c: int>", {"key": "id", "s.c": "s.b"}
    )
    assert combined(changes, base) == [
        "ALTER TABLE lake.db.t RENAME COLUMN s.b TO c",
        "ALTER TABLE lake.db.t RENAME COLUMN id TO key",
    ]


def test_a_rename_onto_a_name_in_use_ends() -> None:
    """The rules about the resulting table refuse it; here it must only come to an end."""
    base = table("a: int, b: int")
    after = edited(base, "a", name="b")
    (change,) = detected(RenameColumn, base, after)
    assert (
        texts(change.statements(base, "lake"))[-1]
        == "ALTER TABLE lake.db.t RENAME COLUMN __icemigrate_1 TO b"
    )


def test_rename_below_a_map_key_is_refused() -> None:
    base = table("m: map<struct<a: struct<b: int>>, int>")
    (change,) = renames(base, "m: map<struct<a: struct<c: int>>, int>", {"m.key.a.c": "m.key.a.b"})
    assert rules(change, base) == ["map-key"]
