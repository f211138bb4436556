"""One version taken back alone or redone: only where no other version's file is left without its names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.errors import ConflictError, UsageError
from icemigrate.execution.run import run_plan
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import add_partition_field
from icemigrate.iceberg.partitioning import SortField, SortOrder, Transform
from icemigrate.iceberg.table import Table
from icemigrate.planning.undo import UndoOptions
from icemigrate.project import open_project
from tests.support.embedded_project import HISTORY, Embedded, applied

CREATE = "tables: [{name: db.t, columns: [{name: a, type: int}, {name: b, type: int}]}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    return applied(tmp_path, CREATE)


def write(shop: Embedded, version: str, entry: str) -> None:
    shop.write(f"{version}_m.yaml", f"tables: [{{{entry}}}]\n")


def rollback(shop: Embedded, **choice: str) -> None:
    todo = plan_rollback(open_project(shop.folder), **choice).plan  # type: ignore[arg-type]
    shop.engine.expect(todo)
    run_plan(todo, shop.engine, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
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
    with pytest.raises(ConflictError, match=r"cannot roll back 0002 alone") as refused:
        rollback(shop, only="2")
    assert f"0003 ({told})" in refused.value.message
    assert refused.value.hint == "`icemigrate rollback --to 0001` rolls all of them back"
    rollback(shop, only="3")
    rollback(shop, only="2")


def test_what_builds_on_a_held_version_is_redone_after_it(shop: Embedded) -> None:
    write(shop, "0002", "name: db.t, renames: {a: c}")
    write(shop, "0003", "name: db.t, columns: [{name: c, type: int, description: x}]")
    write(shop, "0004", "name: db.t, properties: {k: v}")
    shop.apply()
    rollback(shop, to="1")
    with pytest.raises(ConflictError, match=r"0003 cannot be redone yet: .* rolled back: 0002") as refused:
        plan(open_project(shop.folder), redo="3")
    assert refused.value.hint == "`icemigrate apply --redo 0002 --redo 0003` applies them together"
    assert plan(open_project(shop.folder), redo=["2", "3"]).ready
    assert not plan(open_project(shop.folder), redo="4").is_empty
    assert not plan(open_project(shop.folder), redo="2").is_empty


def test_a_refused_redo_names_the_column_of_its_own_table(shop: Embedded) -> None:
    # Field id 2 is `b` of one table and `kind` of the other.
    text = "tables: [{name: db.e, columns: [{name: at, type: int}, {name: kind, type: int}]}]\n"
    shop.write("0002_m.yaml", text)
    shop.apply()
    write(shop, "0003", "name: db.e, columns: [{name: kind, description: x}]")
    shop.apply()
    entry = "{name: db.e, columns: [{name: kind, description: y}]}, {name: db.t, properties: {k: v}}"
    shop.write("0004_m.yaml", f"tables: [{entry}]\n")
    shop.apply()
    rollback(shop, to="2")
    with pytest.raises(ConflictError, match="0004 cannot be redone yet") as refused:
        plan(open_project(shop.folder), redo="4")
    assert "0003 (db.e.kind" in refused.value.message


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
        ConflictError, match=r"0005 cannot be redone yet: .* are rolled back: 0003.*; 0004"
    ) as refused:
        plan(open_project(shop.folder), redo="5")
    together = "--redo 0003 --redo 0004 --redo 0005"
    assert refused.value.hint == f"`icemigrate apply {together}` applies them together"


def test_a_held_version_whose_file_is_gone_or_another_one_is_told(shop: Embedded) -> None:
    write(shop, "0002", "name: db.t, properties: {k: v}")
    write(shop, "0003", "name: db.t, properties: {l: v}")
    shop.apply()
    rollback(shop, to="1")
    (shop.folder / "migrations" / "0002_m.yaml").unlink()
    write(shop, "0003", "name: db.t, properties: {m: v}")
    found = plan(open_project(shop.folder)).plan
    assert (found.held, found.held_gone, found.held_edited) == (("0002", "0003"), ("0002",), ("0003",))
    with pytest.raises(UsageError, match="0002 is rolled back, but its file is missing"):
        plan(open_project(shop.folder), redo="2")


def test_a_repeated_rollback_goes_one_version_back_and_says_so(shop: Embedded) -> None:
    write(shop, "0002", "name: db.t, properties: {k: v}")
    shop.apply()

    def noted() -> list[str]:
        return [d.message for d in plan_rollback(open_project(shop.folder)).diagnostics]

    assert noted() == []
    rollback(shop)
    result = plan_rollback(open_project(shop.folder))
    assert [m.version for m in result.plan.migrations] == ["0001"]
    assert noted() == ["0001 is the last applied version; rolled back already: 0002"]
    assert plan_rollback(open_project(shop.folder), to="1").plan.is_empty
    with pytest.raises(UsageError, match="already rolled back"):
        plan_rollback(open_project(shop.folder), only="2")


@pytest.mark.parametrize(
    ("change", "why", "statement"),
    [
        (
            lambda t, i: add_partition_field(t, i, Transform("identity"), "odd name"),
            "the partition field `odd name` has the source `c`",
            "ALTER TABLE … DROP PARTITION FIELD `odd name`",
        ),
        (
            lambda t, i: replace(t, sort_order=SortOrder((SortField((i,)),), id=1)),
            "the table is sorted by `c`",
            "`ALTER TABLE … WRITE UNORDERED`",
        ),
        (
            lambda t, i: replace(t, schema=replace(t.schema, identifier_ids=frozenset({i}))),
            "`c` is an identifier field",
            "`ALTER TABLE … DROP IDENTIFIER FIELDS c`",
        ),
    ],
)
def test_what_another_client_built_on_an_added_column_is_named_with_its_removal(
    shop: Embedded, change: Callable[[Table, int], Table], why: str, statement: str
) -> None:
    write(shop, "0002", "name: db.t, columns: [{name: c, type: int}], properties: {k: v}")
    shop.apply()
    name = TableName.parse("db.t")
    there = shop.engine.tables[name]
    column = there.schema.find(("c",))
    assert column is not None
    shop.engine.tables[name] = change(there, column.id)
    shop.save()
    (problem,) = (p for m in plan_rollback(open_project(shop.folder)).plan.migrations for p in m.problems)
    assert problem.message == f"the undo removes what another client's change of the table needs: {why}"
    partly = plan_rollback(open_project(shop.folder), options=UndoOptions(partial=True)).plan
    assert partly.ready
    assert problem.hint == f"run {statement} first; `--partial` undoes the rest"
    shop.engine.tables[name] = there
    shop.save()
    assert plan_rollback(open_project(shop.folder)).plan.ready
