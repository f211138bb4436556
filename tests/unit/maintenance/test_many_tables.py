"""What `maintain` reads for many tables: each table once, and the history once for all of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.catalog.sqlite_reader import SqliteCatalog
from icemigrate.errors import ExitCode
from icemigrate.history import history_properties
from icemigrate.iceberg.locations import NearbyTables, TableLocations, copies_of, shared_with
from icemigrate.iceberg.names import TableName
from tests.support.table_project import TableProject

TABLES = """\
tables:
  - name: "otel.${tenant}_logs"
    for_each: {tenant: [%s]}
    columns: [{name: %s, type: string}]
    retention: {snapshots: {max_age: 1s}}
"""
PARTS = st.sampled_from(["a", "ab", "b", "a-", "metadata"])
FOLDERS = st.builds(
    lambda root, parts: "/".join([root, *parts]),
    st.sampled_from(["", "s3://lake", "s3://lake2"]),
    st.lists(PARTS, min_size=1, max_size=3),
)


@st.composite
def many_places(draw: st.DrawFn) -> list[TableLocations]:
    """Tables whose folders are at, in and above those of others, and that share files."""
    found = []
    for number in range(draw(st.integers(1, 6))):
        location, *others = draw(st.lists(FOLDERS, min_size=1, max_size=3))
        files = frozenset(f"{one}/v1.json" for one in draw(st.lists(FOLDERS, max_size=2)))
        name, is_guessed = TableName(("db",), f"t{number}"), draw(st.booleans())
        found.append(TableLocations(name, location, frozenset([location, *others]), files, is_guessed))
    return found


@given(many_places())
def test_the_tables_near_one_are_all_that_share_its_files(places: list[TableLocations]) -> None:
    nearby = NearbyTables(places)
    for table in places:
        assert nearby.of(table.name) == table
        near = list(nearby.near(table))
        assert list(shared_with(table, near)) == list(shared_with(table, places))
        assert list(copies_of(table, near)) == list(copies_of(table, places))


def reads(folder: Path, tenants: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a run without an engine reads all rows of the catalog, and undo records of the history."""
    folder.mkdir()
    names = ", ".join(f"t{number}" for number in range(tenants))
    project = TableProject.create(folder, TABLES % (names, "body"))
    project.migrate(2, TABLES % (names, "host"))
    found = Counter[str]()

    def count(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            found[name] += 1
            return real(*args, **options)

        monkeypatch.setattr(owner, name, call)

    with monkeypatch.context() as patches:
        monkeypatch = patches
        count(SqliteCatalog, "_all_rows")
        count(history_properties, "unpack_undo")
        count(history_properties, "may_have_last_copies")
        assert project.run("maintain", "--dry-run") == ExitCode.OK
    return found


def test_the_history_is_not_read_for_each_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (reads(tmp_path / str(count), count, monkeypatch) for count in (2, 8))
    assert few == many
    assert few["unpack_undo"] > 0
