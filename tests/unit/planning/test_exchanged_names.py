"""Tables that exchange their names in one migration, over a name of icemigrate's own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icemigrate.execution.failures import Undone
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.names import TableName
from icemigrate.planning.plan import Plan, TablePlan
from icemigrate.planning.replay import exchanged_names
from icemigrate.planning.stages import statement_texts
from tests.support.memory_lake import Lake
from tests.support.planned_migrations import make_plan
from tests.support.replayed_migrations import migration

SWAP = (
    "tables: [{name: db.a, renamed_from: db.b}, "
    "{name: db.b, renamed_from: db.a, columns: [{name: n, type: int}]}]"
)
CIRCLE = (
    "tables: [{name: db.b, renamed_from: db.a}, {name: db.c, renamed_from: db.b}, "
    "{name: db.a, renamed_from: db.c}]"
)
ASIDE = "icemigrate_aside__{}__market__0002"


def _lake() -> Lake:
    """Tables `a`, `b` and `c`, each with a column of its first name."""
    lake = Lake()
    tables = ", ".join(f"{{name: db.{n}, columns: [{{name: {n}, type: long}}]}}" for n in "abc")
    lake.apply("0001", f"tables: [{tables}]")
    return lake


def _where(lake: Lake) -> dict[str, str]:
    """The name of each table now, by the name that it was created with."""
    return {t.schema.fields[0].name: n.name for n, t in lake.engine.tables.items() if n.namespace == ("db",)}


def _declared(lake: Lake) -> dict[str, str]:
    return {table.schema.fields[0].name: name.name for name, table in lake.state.tables.items()}


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            SWAP,
            ["there is no declared table `db.a` to rename", "there is no declared table `db.b` to rename"],
        ),
        (
            "tables: [{name: db.a, renamed_from: db.x}, {name: db.x, drop_columns: [n]}]",
            [
                "there is no declared table `db.x` to rename",
                "there is no declared table `db.x`, and without `columns` none can be created",
            ],
        ),
        (
            "tables: [{name: db.a, renamed_from: db.x}, {name: db.b, renamed_from: db.x}]",
            [
                "`db.x` is renamed twice in this file: here and at m.yaml:1:17",
                "there is no declared table `db.x` to rename",
                "there is no declared table `db.x` to rename",
            ],
        ),
        (
            "tables: [{name: db.a, columns: [{name: n, type: int}], renames: {x: y, y: x}}]",
            [
                "`renames` is not allowed in the first entry of `db.a`",
                "there is no column `x` to rename",
                "there is no column `y` to rename",
            ],
        ),
    ],
)
def test_an_error_of_one_entry_hides_none_of_another(text: str, messages: list[str]) -> None:
    found = replay_migration(EMPTY_STATE, migration(text))
    assert [d.message for d in found.diagnostics] == messages
    assert found.wanted == ()


def _plan(lake: Lake, text: str) -> Plan:
    return make_plan({"0002": text}, lake.engine.tables, base=lake.state, namespaces=[("db",)])


def _rename(lake: Lake, old: str, new: str) -> None:
    lake.by_hand(lambda table: replace(table, name=TableName(("db",), new)), f"db.{old}")


AFTER: Mapping[str, dict[str, str]] = {
    SWAP: {"a": "b", "b": "a", "c": "c"},
    CIRCLE: {"a": "b", "b": "c", "c": "a"},
}
BEFORE = {n: n for n in "abc"}


def test_only_exchanged_names_are_given_up_and_taken_by_renames() -> None:
    """A plan asks the catalog for a name in between of these alone."""
    a, b, c = (TableName(("db",), n) for n in "abc")
    renamed = "{name: db.c, renamed_from: db.a}"
    created = "{name: db.a, columns: [{name: id, type: long}]}"
    assert exchanged_names(migration(f"tables: [{renamed}, {created}]")) == frozenset()
    assert exchanged_names(migration(SWAP)) == {a, b}
    assert exchanged_names(migration(CIRCLE)) == {a, b, c}


def test_the_plan_goes_over_a_name_of_its_own() -> None:
    plan = _plan(_lake(), SWAP)
    aside = ASIDE.format("b")
    texts = statement_texts(plan.migrations[0], "local", "market")
    assert [t for t in texts if "RENAME TO" in t] == [
        f"ALTER TABLE local.db.b RENAME TO db.{aside}",
        "ALTER TABLE local.db.a RENAME TO db.b",
        f"ALTER TABLE local.db.{aside} RENAME TO db.a",
    ]
    first, last = plan.migrations[0].tables
    text = f"rename table db.b to db.{aside} until its new name is free"
    assert next(c.text for c in first.changes()) == text
    impacts = [impact.reason for c in last.changes() for impact in c.change.writer_impacts()]
    assert impacts == ["writes `db.b`, which this migration renames to `db.a`"]


@pytest.mark.parametrize("text", [SWAP, CIRCLE])
def test_names_are_exchanged_and_exchanged_back(text: str) -> None:
    lake = _lake()
    lake.apply("0002", text)
    assert _where(lake) == _declared(lake) == AFTER[text]
    lake.rollback("0002")
    assert _where(lake) == _declared(lake) == BEFORE
    lake.apply("0002", text)
    assert _where(lake) == _declared(lake) == AFTER[text]


def _states(text: str) -> list[tuple[str, int]]:
    return [(text, steps) for steps in range(5)]


@pytest.mark.parametrize(("text", "steps"), [*_states(SWAP), *_states(CIRCLE)])
def test_an_interrupted_exchange_is_continued_and_undone(text: str, steps: int) -> None:
    """After each number of renames; the same renames are made by hand here."""
    for is_undone in (False, True):
        lake = _lake()
        renames = _renames(_plan(lake, text))
        if steps > len(renames):
            return
        if is_undone:
            lake.apply("0002", text)
            renames = _renames_of(lake.undo("0002").migrations[0].tables)
        for old, new in renames[:steps]:
            _rename(lake, old, new)
        if is_undone:
            lake.rollback("0002")
            assert _where(lake) == _declared(lake) == BEFORE
        else:
            lake.apply("0002", text)
            assert _where(lake) == _declared(lake) == AFTER[text]


@pytest.mark.parametrize(("text", "steps"), [*_states(SWAP), *_states(CIRCLE)])
def test_a_failed_exchange_is_undone(text: str, steps: int) -> None:
    lake = _lake()
    renames = _renames(_plan(lake, text))
    if steps >= len(renames):
        return
    lake.engine.fails.add(f"db.{renames[steps][0]} RENAME TO db.{renames[steps][1]}")
    with pytest.raises(Undone):
        lake.run(_plan(lake, text), lake.undo_of_failure)
    assert _where(lake) == _declared(lake) == BEFORE


@pytest.mark.parametrize(("text", "steps"), [*_states(SWAP), *_states(CIRCLE)])
def test_the_undo_begins_wherever_an_apply_ended(text: str, steps: int) -> None:
    """After each number of renames of the apply; the later ones are taken back by hand here."""
    lake = _lake()
    renames = _renames(_plan(lake, text))
    lake.apply("0002", text)
    for old, new in reversed(renames[steps:]):
        _rename(lake, new, old)
    lake.rollback("0002")
    assert _where(lake) == _declared(lake) == BEFORE


def _renames(plan: Plan) -> list[tuple[str, str]]:
    return _renames_of(plan.migrations[0].tables)


def _renames_of(tables: tuple[TablePlan, ...]) -> list[tuple[str, str]]:
    changes = [c.change for t in tables for c in t.changes() if c.change.kind == "rename_table"]
    return [(c.table.name, c.new.name) for c in changes]  # type: ignore[attr-defined]


def test_another_table_under_the_name_in_between_is_refused() -> None:
    lake = _lake()
    _rename(lake, "c", ASIDE.format("b"))
    with pytest.raises(AssertionError, match="table-exists"):
        _plan(lake, SWAP)
