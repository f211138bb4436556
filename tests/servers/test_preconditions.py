"""What a commit rests on, where rows come between the last look and the commit: REST asserts least of it."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.errors import IcemigrateError
from icemigrate.spark import commit, metadata_commit
from tests.servers.lake import Lake

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.parametrize("kind", ["rest"], indirect=True)

MAKE = """
    tables:
      - name: market_data.trades
        format_version: {version}
        columns: [{{name: n, type: int}}, {{name: d, type: date}}]
"""
LATE = "INSERT INTO {t} (n, d) VALUES (1, DATE '2026-01-02')"


def written_late(lake: Lake, monkeypatch: Patch, name: str = "build_metadata") -> None:
    """A row comes when a commit has been made ready by a function of this name, and before it is sent."""
    build, done = getattr(metadata_commit, name), list[int]()

    def late(*args: object) -> object:
        built = build(*args)
        if not done:
            done.append(1)
            lake.sql(LATE)
        return built

    monkeypatch.setattr(metadata_commit, name, late)


def test_a_date_stays_one_where_rows_come_before_the_commit(lake: Lake, monkeypatch: Patch) -> None:
    lake.write("0001_make", MAKE.format(version=3))
    lake.apply()
    lake.write("0002_promote", "tables: [{name: market_data.trades, columns: [{name: d, type: timestamp}]}]")
    written_late(lake, monkeypatch)
    with pytest.raises(IcemigrateError, match="the table has rows"):
        lake.apply()
    assert lake.sql("SELECT CAST(d AS string) FROM {t}") == [("2026-01-02",)]


def test_a_type_stays_wide_where_rows_come_before_its_undo(lake: Lake, monkeypatch: Patch) -> None:
    lake.write("0001_make", MAKE.format(version=2))
    lake.apply()
    lake.write("0002_widen", "tables: [{name: market_data.trades, columns: [{name: n, type: long}]}]")
    lake.sql(LATE)
    lake.apply()
    with monkeypatch.context() as patch:
        written_late(lake, patch)
        with pytest.raises(IcemigrateError, match="rows were written"):
            lake.api.rollback(spark=lake.session)
    assert lake.type_of("n") == "long"
    assert lake.sql("SELECT n FROM {t}") == [(1,), (1,)]


def test_a_column_stays_optional_where_a_null_comes_before_the_commit(lake: Lake, monkeypatch: Patch) -> None:
    lake.write("0001_make", MAKE.format(version=2))
    lake.apply()
    lake.sql(LATE)
    wanted = "tables: [{name: market_data.trades, columns: [{name: n, required: true}]}]"
    lake.write("0002_require", f"{{allow: [incompatible], {wanted}}}")
    monkeypatch.setattr("tests.servers.test_preconditions.LATE", LATE.replace("(1,", "(NULL,"))
    written_late(lake, monkeypatch, "assert_main_unmoved")
    with pytest.raises(IcemigrateError, match="rows were written to"):
        lake.apply()
    assert lake.sql("SELECT count(*) FROM {t} WHERE n IS NULL") == [(1,)]


def test_rows_that_come_before_the_commit_of_what_allows_any_are_another_try(
    lake: Lake, monkeypatch: Patch
) -> None:
    lake.write("0001_make", MAKE.format(version=2))
    lake.apply()
    lake.sql(LATE)
    lake.write("0002_rename", "tables: [{name: market_data.trades, renames: {n: m}}]")
    land, came = commit.commit_changes, list[object]()

    def late(*args: Any) -> bool:
        if not came:
            came.append(lake.sql(LATE))
        return land(*args)

    monkeypatch.setattr(commit, "commit_changes", late)
    lake.apply()
    assert lake.sql("SELECT m FROM {t}") == [(1,), (1,)]
