"""Which migrations one transaction of the catalog holds, and of which a reader could see a part."""

from __future__ import annotations

import pytest

from icemigrate.frozen import replace
from icemigrate.planning.plan import Direction, MigrationPlan
from icemigrate.planning.transactions import is_seen_partly, transaction_obstacle
from tests.support.memory_lake import Lake
from tests.support.planned_migrations import make_plan

MAKE = """
tables:
  - {name: db.t, columns: [{name: a, type: int}, {name: day, type: date}]}
  - {name: db.u, columns: [{name: a, type: int}]}
"""
ADD = "{name: db.t, columns: [{name: b, type: int}]}"


def planned(*entries: str) -> MigrationPlan:
    """A migration of two tables that exist."""
    lake = Lake()
    lake.apply("0001", MAKE)
    text = "allow: [destructive, incompatible, irreversible]\ntables:\n"
    text += "".join(f"  - {entry}\n" for entry in entries)
    plan = make_plan({"0002": text}, lake.engine.tables, base=lake.state, namespaces=lake.engine.namespaces)
    return plan.migrations[0]


@pytest.mark.parametrize(
    ("entry", "obstacle"),
    [
        ("{name: db.u, properties: {a: b}}", None),
        ("{name: db.u, checks: [{before: 'SELECT a FROM {table} WHERE a < 0'}]}", None),
        (
            "{name: db.u, columns: [{name: b, type: int}], backfill: [{set: {b: a}}]}",
            "it changes rows of `db.u`",
        ),
        ("{name: db.v, renamed_from: db.u}", "`db.v`: rename table"),
        ("{name: db.u, drop: true}", "`db.u`: drop table"),
        ("{name: db.v, columns: [{name: a, type: int}]}", "`db.v`: create table"),
    ],
)
def test_a_transaction_holds_changes_of_metadata_of_tables_that_exist(
    entry: str, obstacle: str | None
) -> None:
    migration = planned(ADD, entry)
    found = transaction_obstacle(migration)
    assert found is None if obstacle is None else str(found).startswith(obstacle)
    assert is_seen_partly(migration)


def test_an_undo_that_needs_two_commits_is_not_held() -> None:
    migration = planned(ADD, "{name: db.u, columns: [{name: b, type: int}]}")
    two = [replace(table, steps=(*table.steps, *table.steps)) for table in migration.tables]
    split = replace(migration, tables=tuple(two))
    assert transaction_obstacle(split) is None
    undo = replace(split, direction=Direction.ROLLBACK)
    assert transaction_obstacle(undo) == "`db.t` needs 2 commits"


def test_no_reader_sees_a_part_of_one_table_or_of_new_tables() -> None:
    assert not is_seen_partly(planned(ADD))
    new = (f"{{name: db.{name}, columns: [{{name: a, type: int}}]}}" for name in ("v", "w"))
    assert not is_seen_partly(planned(*new))
