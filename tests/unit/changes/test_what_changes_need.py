"""Each change says what it needs: on a table that lacks it a plan is refused, and nothing else is caught."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from icemigrate.changes.change import Change
from icemigrate.changes.drop_column import DropColumn
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import UNPARTITIONED
from icemigrate.iceberg.schema_edits import edit_by_id, remove_by_id
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Struct
from icemigrate.planning.plan import PlannedChange, Step
from icemigrate.spark.conflict_check import require_no_conflict, require_preconditions
from icemigrate.spark.publish import apply_step
from tests.support import case_documents as documents
from tests.support.case_documents import Case, make_plan

CASES = [case for case in documents.all_cases() if case.is_positive]


def with_less(table: Table) -> Iterator[Table]:
    """The table as other clients may leave it: a field, a name, a partition field or references are gone."""
    structs = {None, *(f.id for _, f in table.schema.walk() if isinstance(f.type, Struct))}
    for _, field in table.schema.walk():
        if table.schema.parent_of(field.id) in structs:
            yield replace(table, schema=remove_by_id(table.schema, field.id))
            other = replace(field, name=f"{field.name}_other")
            yield replace(table, schema=edit_by_id(table.schema, field.id, lambda _, f=other: f))
    for gone in table.spec.fields:
        rest = tuple(f for f in table.spec.fields if f != gone)
        yield replace(table, spec=replace(table.spec, fields=rest))
    yield replace(table, spec=UNPARTITIONED)
    yield replace(table, schema=replace(table.schema, fields=()))
    yield replace(table, refs={}, heads={})
    yield replace(table, properties={})


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_a_plan_fits_a_table_or_is_refused(case: Case) -> None:
    """Any exception that is no fault would be a need that a change does not state."""
    world = documents.world_before(case)
    plan = make_plan(world, "0100", case.migration).plan
    assert plan is not None
    tried = 0
    for table in plan.tables:
        there = world.actual.get(table.name)
        for now in () if there is None else with_less(there):
            assert there is not None
            tried += 1
            with suppress(IcemigrateError):
                require_preconditions(there, table.all_steps, now)
            with suppress(IcemigrateError):
                require_no_conflict(there, table.all_steps, now)
            with suppress(IcemigrateError):
                for step in table.all_steps:
                    now = apply_step(step, now)
    assert tried or all(world.actual.get(t.name) is None for t in plan.tables)


def test_a_bug_in_a_change_shows_as_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(c for c in CASES if c.id.startswith("drop_column"))
    world = documents.world_before(case)
    plan = make_plan(world, "0100", case.migration).plan
    assert plan is not None

    def broken(change: Change, table: Table) -> Table:
        raise LookupError("a bug")

    monkeypatch.setattr(DropColumn, "apply", broken)
    steps = [s for t in plan.tables for s in t.all_steps if _drops(s)]
    there = world.actual[plan.tables[0].name]
    assert there is not None
    with pytest.raises(LookupError, match="a bug"):
        apply_step(steps[0], there)


def _drops(step: Step) -> bool:
    changes: tuple[PlannedChange, ...] = step.changes
    return any(isinstance(planned.change, DropColumn) for planned in changes)
