"""Every kind of change done, taken back and done again on random tables, with others at work in between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Reversibility
from icemigrate.changes.keep_view import KeptViewChange
from icemigrate.errors import ConflictError, Mistakes
from icemigrate.planning.undo import UndoOptions
from tests.support import random_spark_runs
from tests.support.random_migrations import EDITS
from tests.support.random_undo_course import (
    LATER,
    Course,
    give_way,
    judge,
    lost_rows,
    make,
    meanwhile,
    migrate,
    planned_changes,
    prelude,
    promised,
    starts,
    write,
)
from tests.support.undo_project import UndoWorld, disordered, facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_COLUMNS = (
    "rename_column",
    "drop_column",
    "add_column",
    "widen_type",
    "make_optional",
    "make_required",
    "describe_column",
    "move_column",
    "set_default",
    "free_identifier",
)
OF_LAYOUTS = (
    "set_identifier",
    "free_sort_order",
    "set_sort_order",
    "add_partition_field",
    "drop_partition_field",
    "rename_partition_field",
    "write_distribution",
    "describe_table",
    "set_property",
    "unset_property",
)
OF_TABLES = (
    "create_table",
    "adopt_table",
    "rename_table",
    "drop_table",
    "upgrade_format",
    "restore_column",
    "create_reference",
    "change_reference",
    "drop_reference",
)
NOT_IN = {1: {"set_default"}, 2: {"set_default"}, 3: {"upgrade_format"}}
"""What a format version has not, or is the end of."""
CASES = {
    f"{version}-{name}": (version, kinds)
    for name, kinds, versions in (
        # Columns of version 1 are those of version 2, and so are layouts of version 3.
        ("columns", OF_COLUMNS, (1, 2, 3) if random_spark_runs.SOAKS else (2, 3)),
        ("layouts", OF_LAYOUTS, (1, 2, 3) if random_spark_runs.SOAKS else (1, 2)),
        ("tables", OF_TABLES, (1, 2, 3)),
    )
    for version in versions
}
"""Kinds of change with a format version; `make soak` combines them all."""
AGAIN = frozenset({2})
"""The format versions whose tables are changed a third time."""

DONE = "tables changed, taken back and changed again, with others at work in between"


def test_every_kind_has_its_table() -> None:
    # Kept views belong to the catalog, not to a table: `test_views.py` undoes them.
    kinds = {k.kind for k in CHANGE_KINDS if not issubclass(k, KeptViewChange)}
    assert {*OF_COLUMNS, *OF_LAYOUTS, *OF_TABLES} == kinds
    assert kinds == {*EDITS, "create_table", "adopt_table", "rename_table", "drop_table"}


@pytest.mark.parametrize(("format_version", "kinds"), CASES.values(), ids=CASES)
def test_what_is_taken_back_is_as_it_was(
    spark: SparkSession, format_version: int, kinds: tuple[str, ...]
) -> None:
    here = tuple(k for k in kinds if k not in NOT_IN[format_version])

    def course(data: st.DataObject) -> None:
        _course(spark, format_version, here, data)

    random_spark_runs.run(f"{format_version}: {', '.join(here)}", course)


def _course(spark: SparkSession, format_version: int, kinds: tuple[str, ...], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = UndoWorld(Path(folder), spark)
        courses = data.draw(starts(kinds, format_version))
        make(world, courses)
        prelude(data.draw, world, courses)
        plans = {p.declared: p for p in migrate(data.draw, world, courses)}
        for c in courses:
            assert c.kind in {p.change.kind for p in planned_changes(plans[c.name_after])}, c
        meanwhile(world, courses)
        _take_back(world, courses, {c.name: promised(plans[c.name_after]) for c in courses})
        _come_between(world, courses)
        _redo(world, courses)
        if format_version in AGAIN:
            ready = world.project.plan_rollback(spark=world.spark).ready
            world.project.rollback(options=UndoOptions(partial=not ready), spark=world.spark)
            _redo(world, courses)
        random_spark_runs.COUNTED[DONE, f"format {format_version}"] += len(courses)


def _take_back(world: UndoWorld, courses: list[Course], promises: dict[Any, Reversibility]) -> None:
    verdicts = {c.name: judge(c) for c in courses}
    stuck = {name: v.stuck for name, v in verdicts.items() if v.stuck}
    doubtful = any(v.doubtful for v in verdicts.values())
    for name, keys in stuck.items():
        ours = {k for k in keys if k == "format" or k[-1] in ("type", "required")}
        assert not ours or promises[name] is not Reversibility.YES, "it was promised without a condition"
    planned = world.project.plan_rollback(spark=world.spark)
    told = [d.message for d in planned.diagnostics], [c for m in planned.plan.migrations for c in m.conflicts]
    if stuck:
        assert not planned.ready, stuck
    elif not doubtful:
        assert planned.ready, told
    if not planned.ready:
        there = world.locations()
        with pytest.raises((Mistakes, ConflictError)):
            world.project.rollback(spark=world.spark)
        assert world.locations() == there, "refused before anything is touched"
    options = UndoOptions(partial=not planned.ready)
    assert world.project.rollback(options=options, spark=world.spark).rolled_back == ("0003",)
    assert world.project.plan().is_empty
    declared = world.declared()
    for c in courses:
        if c.before is None:
            assert c.name not in declared
            assert world.engine.table(c.name) is None
            continue
        _is_as_before(world, c, verdicts[c.name].may_stay)
        assert list(lost_rows(world, c, c.name)) == []
        # Without rows PyIceberg 0.12 fails on a uuid that is nested.
        if c.before.format_version < 3 and c.written:
            assert list(lost_rows(world, c, c.name, by_pyiceberg=True)) == []


def _is_as_before(world: UndoWorld, c: Course, may_stay: frozenset[Any]) -> None:
    assert c.before is not None
    now, expected = facts(world.actual(c.name)), {**facts(c.before), **c.added}
    left = {} if c.after is None else facts(c.after)
    for key in now.keys() | expected.keys():
        if key in may_stay:
            assert now.get(key) in (expected.get(key), left.get(key), *_eased(key)), (str(c.name), key)
        else:
            assert now.get(key) == expected.get(key), (str(c.name), key)
    assert list(disordered(c.before, world.actual(c.name))) == []


def _eased(key: Any) -> tuple[Any, ...]:
    """What else a fact may be: a column that came back where rows were written without it is optional."""
    return (False,) if key[-1] == "required" else ()


def _come_between(world: UndoWorld, courses: list[Course]) -> None:
    for c in courses:
        give_way(world, c)
        if c.before is not None and c.has_rows:
            write(world, c, c.name, *LATER)
            assert list(lost_rows(world, c, c.name)) == []


def _redo(world: UndoWorld, courses: list[Course]) -> None:
    """Done again it ends as it ended the first time, and nobody has to be told of a difference."""
    world.project.apply(world.project.plan(redo="0003"), spark=world.spark)
    for c in courses:
        if c.after is not None:
            now, expected = facts(world.actual(c.name_after)), {**facts(c.after), **c.added}
            assert _with_new_heads(c, now) == _with_new_heads(c, expected), str(c.name)
            assert list(disordered(c.after, world.actual(c.name_after))) == []
            assert list(lost_rows(world, c, c.name_after)) == []


def _with_new_heads(c: Course, found: dict[Any, Any]) -> dict[Any, Any]:
    """The facts, but for the snapshots of references that the migration makes: the current one, each time."""
    known = {} if c.before is None else facts(c.before)
    return {k: (v[0], v[2]) if k[0] == "ref" and k not in known else v for k, v in found.items()}
