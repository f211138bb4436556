"""What we write, the fold reads: for random tables and random edits of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.partitioning import PartitionSpec
from icemigrate.iceberg.table import Table
from tests.support.replayed_migrations import migration, settled
from tests.support.table_strategies import edits, tables, with_new_ids_in_order, without_ids


def folded(entry: dict[str, object], before: DeclaredState) -> Table:
    found = replay_migration(
        before, migration(format_migration_file([entry], description="it's: a #1", allow=["destructive"]))
    )
    assert not found.diagnostics, found.diagnostics
    (wanted,) = found.wanted
    assert wanted.table is not None
    return wanted.table


@given(tables())
def test_a_document_declares_the_table(table: Table) -> None:
    declared = folded(creation_entry(table), EMPTY_STATE)
    assert without_ids(declared) == without_ids(table)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Table, Table]:
    before = draw(tables())
    return before, draw(edits(before))


@given(pairs())
def test_an_entry_leads_from_the_one_table_to_the_other(pair: tuple[Table, Table]) -> None:
    before, after = pair
    result = folded(entry_between(before, after), DeclaredState({before.name: before}))
    assert with_new_ids_in_order(replace(result, dropped=())) == with_new_ids_in_order(after)


@given(tables())
def test_between_a_table_and_itself_there_is_nothing(table: Table) -> None:
    assert entry_between(table, table) == {"name": str(table.name)}


@given(pairs())
def test_the_way_back_restores_what_was_dropped_under_its_own_ids(pair: tuple[Table, Table]) -> None:
    before, wanted = pair
    there = settled(folded(entry_between(before, wanted), DeclaredState({before.name: before})))
    back = folded(entry_between(there, before), DeclaredState({before.name: there}))
    assert comparable(back) == comparable(before)
    named = {f.id for f in before.schema.fields if f.name == name_in(there, f.id, f.name)}
    assert named <= {f.id for f in back.schema.fields}


def comparable(table: Table) -> Table:
    """The table without ids of fields and of partition fields, and without what is dropped."""
    spec = PartitionSpec(tuple(replace(f, id=0) for f in table.spec.fields))
    return without_ids(replace(table, spec=spec, last_partition_id=0, dropped=()))


def name_in(table: Table, field_id: int, name: str) -> str | None:
    """The name under which a column is there or dropped; ``None`` where a later drop hides it."""
    last = [d for d in table.dropped if d.parent is None and d.field.name == name][-1:]
    if any(d.field.id == field_id for d in last):
        return name
    return name if any(f.id == field_id for f in table.schema.fields) else None
