"""The laws of drift: what others did is told, declared so that all of it is found done, and led back."""

from __future__ import annotations

from functools import reduce

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from icemigrate.declare.author import dump
from icemigrate.drift.accepting import accept
from icemigrate.drift.facts import compare, is_expired
from icemigrate.drift.reconciling import Known, way_back
from icemigrate.drift.values import nobody
from icemigrate.model.evidence import Evidence
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import UndoRecord
from icemigrate.plan import RECONCILED
from icemigrate.planner import settle
from icemigrate.undo import Place, Undo, plan_undo
from tests.shared_plans import plan_text
from tests.strategies import NAME, evolutions

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
    assert compare(recorded, recorded) == ()
    assert accept(recorded, recorded, NAME, nobody, lambda table: table).entry is None
    assert way_back(recorded, recorded, Known(NAME, NAME)) is None


@settings(max_examples=60)
@given(hands())
def test_what_was_accepted_is_found_done_and_then_nothing_is_told(sides: tuple[Table, Table]) -> None:
    recorded, there = sides
    accepted = accept(recorded, there, NAME, nobody, lambda table: table)
    assume(not accepted.notes)
    told = compare(recorded, there)
    if accepted.entry is None:
        assert told == ()
        return
    event(f"{len(told)} facts")
    text = dump([accepted.entry], allow=ALL, because="it is so")
    judged = plan_text(text, State({NAME: recorded}, frozenset({NAME.namespace})), {NAME: there})
    assert judged.plan is not None, (judged.said, text)
    assert judged.table.conflicts == (), text
    assert [c.text for c in judged.table.changes()] == [], text
    assert judged.table.wanted is not None
    assert compare(settle(judged.table.wanted, there), there) == (), text


@settings(max_examples=60)
@given(hands())
def test_what_is_led_back_is_as_it_was_recorded(sides: tuple[Table, Table]) -> None:
    recorded, there = sides
    refs = (*recorded.refs.values(), *there.refs.values())
    snapshots = frozenset(ref.snapshot_id for ref in refs) | {7}
    way = way_back(recorded, there, Known(NAME, NAME, snapshots=snapshots, then=recorded.snapshot))
    if way is None:
        assert not any(f.managed for f in compare(recorded, there))
        return
    assume(not way.problems)
    record = UndoRecord(RECONCILED, (way.undo,))
    undo = Undo(RECONCILED, "", "", record, {NAME: Evidence(there=snapshots)})
    assert way.undo.after is not None
    state = State({NAME: way.undo.after}, frozenset({NAME.namespace}))
    (plan,) = plan_undo([undo], state, {NAME: there}, Place("p", "lake")).migrations
    assume(not plan.problems)
    assert plan.conflicts == ()
    (table,) = plan.tables
    after = reduce(lambda t, c: c.change.apply(t), table.changes(), there)
    left = [f for f in compare(recorded, after) if f.managed and not is_expired(f, recorded)]
    event("led back")
    assert left == []
    # What nobody declared is left as it was.
    foreign = [{f.key for f in compare(recorded, t) if not f.managed} for t in (there, after)]
    assert foreign[0] == foreign[1]
