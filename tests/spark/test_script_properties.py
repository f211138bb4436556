"""Random scripts of edits on random tables: applied, read back equal, rolled back, equal to before.

Each version is applied and rolled back by Spark, and from the same base by commits of metadata in Python.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import note
from hypothesis import strategies as st

from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import VOID
from icemigrate.iceberg.schema import IndexedField, schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import is_nested
from tests.support import random_spark_runs
from tests.support.python_twin import PythonTwin
from tests.support.random_migrations import EDITS, RARE, migrations
from tests.support.random_tables import lake_tables
from tests.support.random_undo_course import ALL, Course, legal, lost_rows
from tests.support.script_story import Story, others, rows_come, told
from tests.support.undo_project import UndoWorld, disordered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFERENCES = {"create_reference", "change_reference", "drop_reference"}
_BOUND_TO_ROWS = {"widen_type", "make_optional"}
"""Kinds whose way back ends with the next row; they are drawn where no row comes."""
OF_QUIET = sorted(EDITS.keys() - RARE - REFERENCES)
OF_WRITTEN = sorted(EDITS.keys() - RARE - REFERENCES - _BOUND_TO_ROWS)
EDITS_OF_A_VERSION = 4

SCRIPTS = "tables with a script of edits, applied, read back and taken back, rows and others in between"


@pytest.mark.parametrize(
    ("tables", "versions"), [(len(OF_QUIET), 1), (4, 3)], ids=["one_version", "three_versions"]
)
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_scripts_are_taken_back(spark: SparkSession, format_version: int, tables: int, versions: int) -> None:
    def course(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            stories = [_story(data.draw, at, format_version) for at in range(tables)]
            _course(data.draw, UndoWorld(Path(folder), spark), stories, range(2, 2 + versions))
        random_spark_runs.COUNTED[SCRIPTS, f"format {format_version}"] += tables

    random_spark_runs.run(f"{format_version} {versions}", course)


def _story(draw: Callable[..., Any], at: int, format_version: int) -> Story:
    start = draw(lake_tables(f"db.t{at}", format_version))
    return Story(Course("script", start), writes=draw(st.integers(0, 3)) > 0)


def _course(draw: Callable[..., Any], world: UndoWorld, stories: list[Story], versions: range) -> None:
    world.file("0001", format_migration_file([creation_entry(s.course.start) for s in stories]))
    world.project.apply(spark=world.spark)
    for version in versions:
        for s in stories:
            rows_come(world, s)
        _migrate(draw, world, stories, version)
        for s in stories:
            others(draw, world, s, version)
    for s in stories:
        rows_come(world, s)
    at_once = draw(st.booleans())
    for version in versions[:1] if at_once else reversed(versions):
        _take_back(world, stories, version, to="0001" if at_once else None)


def _migrate(draw: Callable[..., Any], world: UndoWorld, stories: list[Story], version: int) -> None:
    """One more version: an edit script of every table, applied and read back."""
    declared = world.declared()
    entries, wanted = [], []
    kinds = _kinds(draw, stories)
    for s in stories:
        actual, known = world.actual(s.course.name), declared[s.course.name]
        s.before[version] = actual
        seen = replace(known, snapshot=actual.snapshot)
        among = OF_WRITTEN if s.writes else OF_QUIET
        kind = own if (own := kinds[s.course.name]) in among else draw(st.sampled_from(among))
        goal = draw(migrations(seen, kind, _sound(s, known, actual), EDITS_OF_A_VERSION, among))
        wanted.append(goal)
        entries += [entry_between(known, goal)] if goal != seen else []
    note(text := format_migration_file(entries or [{"name": "db.t0"}], allow=ALL))
    world.file(f"{version:04}", text)
    twin = PythonTwin(world)
    world.project.apply(spark=world.spark)
    twin.project.apply()
    assert "\n".join(twin.differences()) == ""
    if draw(st.booleans()):
        twin.replace_original()
    for s, goal in zip(stories, wanted, strict=True):
        s.after[version] = world.actual(s.course.name)
        assert list(_unlike(goal, s.after[version], s)) == []
        assert list(lost_rows(world, s.course, s.course.name)) == []


def _kinds(draw: Callable[..., Any], stories: list[Story]) -> dict[TableName, str]:
    """Another kind of change for each table; one without new rows gets the kinds that a row would end."""
    kinds = sorted(draw(st.permutations(OF_QUIET)), key=lambda kind: kind not in _BOUND_TO_ROWS)
    tables = sorted(stories, key=lambda s: s.writes)
    return {s.course.name: kind for s, kind in zip(tables, kinds, strict=False)}


def _sound(s: Story, known: Table, actual: Table) -> Callable[[Table], bool]:
    """Whether a migration may lead to a table, and no row is null where a field becomes required."""
    is_legal, old = legal(known, actual), schema_index(known.schema)
    missed = {i for i in old if any(i not in schema_index(under) for under in s.course.written.values())}
    missed |= {i for lost in s.course.lost.values() for i in lost}

    def is_sound(wanted: Table) -> bool:
        newly = {i for i, e in schema_index(wanted.schema).items() if e.field.required and i in old}
        return not any(i in missed and not old[i].field.required for i in newly) and is_legal(wanted)

    return is_sound


def _unlike(wanted: Table, actual: Table, s: Story) -> Iterator[str]:
    """What of a table is not as the script wants it, fields that others touched left out."""
    here, there = schema_index(wanted.schema), schema_index(actual.schema)
    paths = {e.path: e for e in there.values()}
    for i, entry in here.items():
        found = there.get(i) if i > 0 else paths.get(entry.path)
        if i not in s.touched_by_others and (found is None or _about(entry) != _about(found)):
            yield f"{s.course.name}: {entry.path} is {found}, not {entry}"
    # A place is told by a neighbour, which others may have taken.
    if not s.touched_by_others and list(paths) != [e.path for e in here.values()]:
        yield f"{s.course.name}: the fields are {list(paths)}, not {[e.path for e in here.values()]}"
    for key, value in wanted.properties.items():
        if actual.properties.get(key) != value:
            yield f"{s.course.name}: property {key}"
    terms = [{(str(f.transform), f.name) for f in t.spec.live} for t in (wanted, actual)]
    if terms[0] != terms[1] or len(wanted.sort_order.fields) != len(actual.sort_order.fields):
        yield f"{s.course.name}: partitioned by {terms[1]}, not {terms[0]}"


def _about(entry: IndexedField) -> tuple[Any, ...]:
    f = entry.field
    type_ = type(f.type).__name__ if is_nested(f.type) else f.type
    return f.name, type_, f.required, f.doc, f.write_default


def _take_back(world: UndoWorld, stories: list[Story], version: int, to: str | None) -> None:
    """Take a version back, or all from it on, and compare with what was there before it."""
    planned = world.project.plan_rollback(to=to, spark=world.spark)
    told_why = [d.message for d in planned.diagnostics]
    assert planned.ready, (told_why, [(m.conflicts, m.problems) for m in planned.plan.migrations])
    twin = PythonTwin(world)
    world.project.rollback(to=to, spark=world.spark)
    twin.project.rollback(to=to)
    assert "\n".join(twin.differences()) == ""
    assert world.project.plan().is_empty, "a version that was taken back is held"
    for s in stories:
        assert list(_not_as_before(s, version, world.actual(s.course.name))) == []
        assert list(lost_rows(world, s.course, s.course.name)) == []


def _not_as_before(s: Story, version: int, actual: Table) -> Iterator[str]:
    before = s.before[version]
    now, expected = told(actual), s.expected(version)
    eased = {i for i in _missed(s) if expected.get((i, "required")) and now.get((i, "required")) is False}
    excused = {(i, "required") for i in eased} | ({"identifier"} if eased & _with_parents(before) else set())
    standing = _under_voids(before, actual)
    excused |= {key for key in now.keys() | expected.keys() if key[0] in standing}
    for key in (now.keys() | expected.keys()) - excused:
        if now.get(key) != expected.get(key):
            yield f"{s.course.name}: {key} is {now.get(key)}, not {expected.get(key)}, as before {version}"
    yield from disordered(before, actual)


def _under_voids(before: Table, actual: Table) -> set[int]:
    """Fields that a version added and partitioned by: in format 1 they stay, under void partition fields."""
    old, now = schema_index(before.schema), schema_index(actual.schema)

    def top(i: int) -> int:
        above = now[i].parent
        return i if above is None or above in old else top(above)

    voids = [f.source_ids[0] for f in actual.spec.fields if f.transform == VOID]
    tops = {top(i) for i in voids if i in now and i not in old}
    return {i for i in now if i not in old and top(i) in tops}


def _missed(s: Story) -> set[int]:
    """Fields that may be null in some row, written without them or compacted: they come back as optional."""
    out = {i for lost in s.course.lost.values() for i in lost}
    for under in s.course.written.values():
        there = schema_index(under)
        for before in s.before.values():
            out |= {i for i in schema_index(before.schema) if i not in there or not there[i].field.required}
    return out


def _with_parents(table: Table) -> set[int | None]:
    """The identifier's fields and the structs that they stand in."""
    entries, out = schema_index(table.schema), set[int | None](table.schema.identifier_ids)
    for i in table.schema.identifier_ids:
        at: int | None = i
        while at is not None:
            out.add(at)
            at = entries[at].parent
    return out
