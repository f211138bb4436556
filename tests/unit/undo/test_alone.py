"""One version taken back alone or redone: only where no other version's file is left without its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from icemigrate import executor
from icemigrate.app.opening import open_project
from icemigrate.app.planning import plan
from icemigrate.app.rolling_back import plan_rollback
from icemigrate.errors import ConflictError, UsageError
from icemigrate.history.journal import Journal
from icemigrate.history.write import HistoryWriter
from tests.embedded import HISTORY, Embedded, applied

CREATE = "tables: [{name: db.t, columns: [{name: a, type: int}, {name: b, type: int}]}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    return applied(tmp_path, CREATE)


def write(shop: Embedded, version: str, entry: str) -> None:
    shop.write(f"{version}_m.yaml", f"tables: [{{{entry}}}]\n")


def rollback(shop: Embedded, **choice: str) -> None:
    todo = plan_rollback(open_project(shop.folder), **choice).plan  # type: ignore[arg-type]
    shop.engine.expect(todo)
    executor.apply(todo, shop.engine, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    shop.save()


@pytest.mark.parametrize(
    ("first", "later", "told"),
    [
        ("name: db.t, properties: {k: v}", "name: db.u, renamed_from: db.t", "the name of db.t"),
        (
            "name: db.t, columns: [{name: a, description: x}]",
            "name: db.t, renames: {a: c}",
            "the name of db.t.a",
        ),
        (
            "name: db.t, renames: {a: c}",
            "name: db.t, columns: [{name: c, description: x}]",
            "the name of db.t.a",
        ),
    ],
)
def test_what_a_later_version_renamed_or_calls_by_its_new_name_keeps_it(
    shop: Embedded, first: str, later: str, told: str
) -> None:
    write(shop, "0002", first)
    write(shop, "0003", later)
    shop.apply()
    with pytest.raises(ConflictError, match=r"0002 cannot be taken back alone") as refused:
        rollback(shop, only="2")
    assert f"0003 ({told})" in refused.value.message
    assert refused.value.hint == "`icemigrate rollback --to 0001` takes all of them back"
    rollback(shop, only="3")
    rollback(shop, only="2")


def test_what_builds_on_a_held_version_is_redone_after_it(shop: Embedded) -> None:
    write(shop, "0002", "name: db.t, renames: {a: c}")
    write(shop, "0003", "name: db.t, columns: [{name: c, type: int, description: x}]")
    write(shop, "0004", "name: db.t, properties: {k: v}")
    shop.apply()
    rollback(shop, to="1")
    with pytest.raises(ConflictError, match=r"0003 cannot be redone yet: .* are held: 0002") as refused:
        plan(open_project(shop.folder), redo="3")
    assert refused.value.hint == "`icemigrate apply --redo 0002` first"
    assert not plan(open_project(shop.folder), redo="4").is_empty
    assert not plan(open_project(shop.folder), redo="2").is_empty


def test_a_table_under_a_name_that_a_held_version_gives_is_not_made_anew(shop: Embedded) -> None:
    write(shop, "0002", "name: db.u, renamed_from: db.t")
    write(shop, "0003", "name: db.u, columns: [{name: c, type: long}]")
    shop.apply()
    rollback(shop, to="1")
    with pytest.raises(ConflictError, match=r"0003 cannot be redone yet"):
        plan(open_project(shop.folder), redo="3")


def test_a_file_that_speaks_of_what_held_versions_made_is_not_blamed(shop: Embedded) -> None:
    write(shop, "0002", "name: db.t, properties: {k: v}")
    write(shop, "0003", "name: db.x, columns: [{name: a, type: int}]")
    shop.write("0004_m.yaml", "tables: [{name: db.t, drop_columns: [b]}]\nallow: [destructive db.t.b]\n")
    shop.write(
        "0005_m.yaml",
        "tables: [{name: db.t, restore_columns: [b]}, {name: db.y, renamed_from: db.x}]\n",
    )
    shop.apply()
    rollback(shop, to="1")
    with pytest.raises(
        ConflictError, match=r"0005 cannot be redone yet: .* are held: 0003.*; 0004"
    ) as refused:
        plan(open_project(shop.folder), redo="5")
    assert refused.value.hint == "`icemigrate apply --redo 0003` first, then 0004"


def test_a_held_version_whose_file_is_gone_or_another_one_is_told(shop: Embedded) -> None:
    write(shop, "0002", "name: db.t, properties: {k: v}")
    write(shop, "0003", "name: db.t, properties: {l: v}")
    shop.apply()
    rollback(shop, to="1")
    (shop.folder / "migrations" / "0002_m.yaml").unlink()
    write(shop, "0003", "name: db.t, properties: {m: v}")
    found = plan(open_project(shop.folder)).plan
    assert (found.held, found.held_gone, found.held_edited) == (("0002", "0003"), ("0002",), ("0003",))
    with pytest.raises(UsageError, match="0002 is held, and there is no file of it"):
        plan(open_project(shop.folder), redo="2")
