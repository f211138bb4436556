"""Kinds of change of a column, together: folding what they find gives what was wanted."""

from __future__ import annotations

from hypothesis import given

from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.planning.table_difference import find_difference, remaining_differences
from tests.support.column_edits import COLUMN_KINDS, pairs
from tests.support.small_tables import NAME


@given(pairs())
def test_the_changes_that_are_found_lead_to_what_was_wanted(pair: tuple[Table, Table]) -> None:
    before, target = pair
    outcome = find_difference(before, target, COLUMN_KINDS)
    assert remaining_differences(outcome, COLUMN_KINDS) == ()
    new = schema_index(outcome.after.schema)
    assert all(i > 0 for i in new)
    assert len(new) == len(list(outcome.after.schema.walk())), "an id was given twice"
    for field_id, entry in schema_index(target.schema).items():
        if field_id > 0:
            assert new[field_id].field.name == entry.field.name
    assert outcome.after.last_column_id == max([before.last_column_id, *new])


@given(pairs())
def test_every_found_change_can_say_how_it_is_done(pair: tuple[Table, Table]) -> None:
    before, target = pair
    for found in find_difference(before, target, COLUMN_KINDS).found:
        assert found.change.statements(found.before, "lake")
        assert found.change.describe()
        assert found.change.subject
        assert found.change.table == NAME
        assert [p.rule for p in found.change.problems(found.before)] == []
