"""Names that need care, renamed and moved at every depth on a real table with rows, and taken back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.files.write.yaml_text import to_yaml
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.types import Struct
from tests.support.random_rows import differing
from tests.support.undo_project import UndoWorld, facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TableName(("db",), "t")
NAMES = (
    "Plain",
    "with space",
    "x.y",
    "select",
    "é",
    "😎 mood",
    "back`tick",
    "it's",
    '"',
    "${HOME}",
    "n" * 1000,
)
"""Each stands for a column, a field of a struct, and one in a list's elements and a map's values."""
SWAPPED = {
    "Plain": "plain",
    "with space": "x.y",
    "x.y": "select",
    "select": "with space",
    "é": "😎 mood",
    "😎 mood": "é",
    "back`tick": "`",
    "it's": "n" * 1000,
    "n" * 1000: "m" * 1000,
    '"': "-- no comment",
    "${HOME}": "${PATH}",
}
"""A change of case, a circle of three, two that swap, a chain, and new names."""
NESTS = ("s", "l.element", "m.value")


@pytest.fixture
def world(tmp_path: Path, spark: SparkSession) -> UndoWorld:
    return UndoWorld(tmp_path, spark)


def migrate(world: UndoWorld, version: str, keys: dict[str, Any]) -> None:
    world.file(version, to_yaml({"tables": [{"name": "db.t", **keys}]}))
    world.project.apply(spark=world.spark)


def paths(name: str) -> list[str]:
    """Where a name stands."""
    return [format_path((name,)), *(f"{nest}.{format_path((name,))}" for nest in NESTS)]


def names_at(world: UndoWorld, *path: str) -> list[str]:
    schema = world.actual(T).schema
    one = schema.find(path)
    type_ = schema.root if one is None else one.type
    assert isinstance(type_, Struct)
    return [f.name for f in type_.fields]


@pytest.mark.parametrize("version", [1, 3])
def test_odd_names_are_made_renamed_moved_and_taken_back(world: UndoWorld, version: int) -> None:
    inner = [{"name": format_path((n,)), "type": "int"} for n in NAMES]
    columns = [
        {"name": "id", "type": "int", "required": True},
        {
            "name": "s",
            "required": True,
            "fields": [{"name": "k", "type": "long", "required": True}, *inner],
        },
        {"name": "l", "element": {"fields": inner}},
        {"name": "m", "key": {"type": "string"}, "value": {"fields": inner}},
        *inner,
    ]
    migrate(world, "0001", {"format_version": version, "columns": columns, "identifier": ["id", "s.k"]})
    world.write(T, 1, 2, 3)
    before, rows = world.actual(T), world.rows(T)

    renames = {path: format_path((to,)) for old, to in SWAPPED.items() for path in paths(old)}
    migrate(world, "0002", {"renames": {**renames, "s": "🧱", "s.k": "K"}})
    for found in (names_at(world)[4:], names_at(world, "🧱")[1:], names_at(world, "l", "element")):
        assert found == [SWAPPED[n] for n in NAMES]
    now = world.actual(T)
    assert now.schema.identifier_ids == before.schema.identifier_ids
    assert [f.id for _, f in now.schema.walk()] == [f.id for _, f in before.schema.walk()]
    for number, row in world.rows(T).items():
        assert list(differing(rows[number], row, now.schema)) == []

    back = [SWAPPED[n] for n in reversed(NAMES)]
    moved = [
        {"name": f"l.element.{format_path((n,))}"}
        | ({"after": f"l.element.{format_path((back[at - 1],))}"} if at else {"first": True})
        for at, n in enumerate(back)
    ]
    migrate(world, "0003", {"columns": moved})
    assert names_at(world, "l", "element") == back
    world.project.rollback(to="0001", spark=world.spark)
    assert facts(world.actual(T)) == facts(before)
    assert world.rows(T) == rows
