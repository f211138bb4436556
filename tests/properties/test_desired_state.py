"""The entry of ``diff`` leads from the declared table to the desired one, for random tables."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from icemigrate.desired_state.desired_table import DesiredTable
from icemigrate.desired_state.match_fields import FieldRenames
from icemigrate.desired_state.match_tables import TableMatch, match_table
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.write.migration_entries import creation_entry, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from tests.support.evolution_strategies import Evolution, evolutions
from tests.support.replayed_migrations import migration, settled
from tests.support.table_strategies import without_ids

KEPT_IN_PLACE = {"location": None, "snapshot": None, "uuid": None}


def desired_table(evolution: Evolution) -> DesiredTable:
    """The wanted table as a file declares it: without the ids that the catalog knows."""
    bare = without_ids(replace(evolution.wanted, dropped=()))
    return DesiredTable(replace(bare, **KEPT_IN_PLACE), is_whole=True, is_format_stated=True)


def replayed(match: TableMatch) -> Table:
    """The declared table after the migration that ``diff`` writes."""
    assert match.before is not None
    if match.entry is None:
        return match.before
    found = replay_migration(
        DeclaredState({match.before.name: match.before}),
        migration(format_migration_file([match.entry], description="d", allow=["destructive"])),
    )
    assert not found.diagnostics, found.diagnostics
    (target,) = found.wanted
    assert target.table is not None
    return settled(target.table)


def renames(evolution: Evolution) -> FieldRenames:
    """The renames that the ids show, where only the field's own name differs."""
    old, new = schema_index(evolution.before.schema), schema_index(evolution.wanted.schema)
    return {
        old[i].path: new[i].field.name
        for i in old.keys() & new.keys()
        if old[i].field.name != new[i].field.name
    }


@given(evolutions(by_hand=False))
def test_the_file_leads_to_the_desired_table(evolution: Evolution) -> None:
    desired = desired_table(evolution)
    match = match_table(evolution.before, desired, {}, include_drops=True)
    assume(not match.problems)
    assert creation_entry(replayed(match)) == creation_entry(desired.table)


@given(evolutions(by_hand=False))
def test_with_the_renames_as_hints_each_field_keeps_its_id(evolution: Evolution) -> None:
    desired = desired_table(evolution)
    match = match_table(evolution.before, desired, renames(evolution), include_drops=True)
    assume(not match.problems)
    after = replayed(match)
    assert {i for i in schema_index(evolution.wanted.schema) if i > 0} <= schema_index(after.schema).keys()
    names = {i: entry.path for i, entry in schema_index(after.schema).items()}
    wanted = {i: entry.path for i, entry in schema_index(evolution.wanted.schema).items() if i > 0}
    assert {i: names[i] for i in wanted} == wanted


@given(evolutions(by_hand=False), st.booleans())
def test_without_drops_each_declared_field_stays_beside_the_desired_ones(
    evolution: Evolution, is_whole: bool
) -> None:
    desired = replace(desired_table(evolution), is_whole=is_whole)
    match = match_table(evolution.before, desired, {}, include_drops=False)
    assume(not match.problems)
    after = replayed(match)
    assert schema_index(evolution.before.schema).keys() <= schema_index(after.schema).keys()
    paths = {entry.path for entry in schema_index(after.schema).values()}
    assert {entry.path for entry in schema_index(desired.table.schema).values()} <= paths
    assert evolution.before.refs.keys() <= after.refs.keys()


@given(evolutions(by_hand=False))
def test_a_table_that_is_as_desired_needs_no_entry(evolution: Evolution) -> None:
    same = replace(evolution.before, name=evolution.wanted.name)
    desired = desired_table(replace(evolution, wanted=same))
    match = match_table(evolution.before, desired, {}, include_drops=True)
    assert match.problems == ()
    assert match.entry is None
