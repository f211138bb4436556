"""The laws of drift: what others did is told, declared so that all of it is found done, and led back."""

from __future__ import annotations

from functools import reduce

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from icemigrate.files.write.migration_entries import format_migration_file
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.drift.accepted_changes import accepted_table_entry
from icemigrate.planning.drift.comparable_tables import is_never_server_managed
from icemigrate.planning.drift.differing_facts import find_differing_facts, is_expired_reference
from icemigrate.planning.drift.reconcile_target import ReconcileContext, find_reconcile_target
from icemigrate.planning.merge import with_catalog_ids
from icemigrate.planning.plan import RECONCILE_VERSION
from icemigrate.planning.undo import MigrationUndo, UndoEnvironment, plan_undo
from tests.support.evolution_strategies import NAME, evolutions
from tests.support.shared_plans import plan_text

ALL = ("destructive", "incompatible", "irreversible")


@st.composite
def hands(draw: st.DrawFn) -> tuple[Table, Table]:
    """A table as it was recorded, and what others made of it."""
    drawn = draw(evolutions())
    return drawn.before, drawn.actual


@settings(max_examples=10)
@given(hands())
def test_nothing_is_told_of_a_table_that_is_as_it_was_recorded(sides: tuple[Table, Table]) -> None:
    recorded, _ = sides
    assert find_differing_facts(recorded, recorded) == ()
    assert (
        accepted_table_entry(recorded, recorded, NAME, is_never_server_managed, lambda table: table).entry
        is None
    )
    assert find_reconcile_target(recorded, recorded, ReconcileContext(NAME, NAME)) is None


@settings(max_examples=60)
@given(hands())
def test_what_was_accepted_is_found_done_and_then_nothing_is_told(sides: tuple[Table, Table]) -> None:
    recorded, there = sides
    accepted = accepted_table_entry(recorded, there, NAME, is_never_server_managed, lambda table: table)
    assume(not accepted.notes)
    told = find_differing_facts(recorded, there)
    if accepted.entry is None:
        assert told == ()
        return
    event(f"{len(told)} facts")
    text = format_migration_file([accepted.entry], allow=ALL, because="it is so")
    judged = plan_text(text, DeclaredState({NAME: recorded}, frozenset({NAME.namespace})), {NAME: there})
    assert judged.plan is not None, (judged.said, text)
    assert judged.table.conflicts == (), text
    assert [c.text for c in judged.table.changes()] == [], text
    assert judged.table.wanted is not None
    assert find_differing_facts(with_catalog_ids(judged.table.wanted, there), there) == (), text


@settings(max_examples=60)
@given(hands())
def test_what_is_led_back_is_as_it_was_recorded(sides: tuple[Table, Table]) -> None:
    recorded, there = sides
    refs = (*recorded.refs.values(), *there.refs.values())
    snapshots = frozenset(ref.snapshot_id for ref in refs) | {7}
    way = find_reconcile_target(
        recorded, there, ReconcileContext(NAME, NAME, snapshots=snapshots, then=recorded.snapshot)
    )
    if way is None:
        assert not any(f.managed for f in find_differing_facts(recorded, there))
        return
    assume(not way.problems)
    record = UndoRecord(RECONCILE_VERSION, (way.undo,))
    undo = MigrationUndo(RECONCILE_VERSION, "", "", record, {NAME: Evidence(existing_snapshots=snapshots)})
    assert way.undo.after is not None
    state = DeclaredState({NAME: way.undo.after}, frozenset({NAME.namespace}))
    (plan,) = plan_undo([undo], state, {NAME: there}, UndoEnvironment("p", "lake")).migrations
    assume(not plan.problems)
    assert plan.conflicts == ()
    (table,) = plan.tables
    after = reduce(lambda t, c: c.change.apply(t), table.changes(), there)
    left = [
        f
        for f in find_differing_facts(recorded, after)
        if f.managed and not is_expired_reference(f, recorded)
    ]
    event("led back")
    assert left == []
    # What nobody declared is left as it was.
    foreign = [{f.key for f in find_differing_facts(recorded, t) if not f.managed} for t in (there, after)]
    assert foreign[0] == foreign[1]
