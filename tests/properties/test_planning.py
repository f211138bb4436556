"""The laws of planning: random tables, random migrations written as YAML, random changes by other hands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import assume, event, given

import icemigrate
from icemigrate.changes import KINDS
from icemigrate.changes.base import Reversible
from icemigrate.declare.author import document, dump, entry_between
from icemigrate.diff import difference, unproved
from icemigrate.frozen import replace
from icemigrate.merge import merge
from icemigrate.model import legality
from icemigrate.model.schema import Entry, index
from icemigrate.model.sides import EMPTY_STATE, State, Wanted
from icemigrate.model.table import Table
from icemigrate.model.types import children, is_nested, walk
from icemigrate.plan import Plan
from icemigrate.plan_file import dumps, load, loads
from icemigrate.planner import settle
from icemigrate.render.documents import plan_document
from icemigrate.results import PlanResult
from tests.folding import fold_text
from tests.shared_plans import Judged, plan_text, plan_value
from tests.strategies import NAME, Evolution, befores, evolutions

ALL = ("destructive", "incompatible", "irreversible")
SCHEMA = json.loads(
    (Path(icemigrate.__file__).parent / "schemas" / "plan.schema.json").read_text(encoding="utf-8")
)
Facts = Mapping[tuple[object, ...], Any]
GONE = "gone"


def state(table: Table) -> State:
    return State({table.name: table}, frozenset({table.name.namespace}))


def migration(evolution: Evolution) -> str:
    return dump([entry_between(evolution.before, evolution.wanted)], allow=ALL)


def planned(evolution: Evolution) -> Judged:
    judged = plan_text(migration(evolution), state(evolution.before), {NAME: evolution.actual})
    assert not judged.said, "what is written is read again without a mistake"
    event("ready" if judged.ready else "conflict" if judged.table.conflicts else "refused")
    return judged


def declared(evolution: Evolution) -> Table:
    """What the migration wants, as the fold of its text has it."""
    (wanted,) = fold_text(migration(evolution), state(evolution.before)).wanted
    assert wanted.table is not None
    return wanted.table


# An oracle of its own: a table as a flat list of facts


def facts(table: Table) -> dict[tuple[object, ...], Any]:
    """Everything that a migration can speak of; fields by id, what belongs to the server left out."""
    out: dict[tuple[object, ...], Any] = {}
    for i, entry in index(table.schema).items():
        f = entry.field
        out |= {
            (i, "name"): f.name,
            (i, "type"): type(f.type).__name__ if is_nested(f.type) else f.type,
            (i, "required"): f.required,
            (i, "doc"): f.doc,
            (i, "initial"): f.initial_default,
            (i, "default"): f.write_default,
        }
    out["identifier",] = table.schema.identifier_ids
    out["spec",] = frozenset((f.source_ids, f.transform, f.name) for f in table.spec.live)
    out["order",] = table.sort_order.fields
    out["format",] = table.format_version
    out |= {("property", k): v for k, v in table.properties.items()}
    out |= {("ref", n): replace(r, snapshot_id=0) for n, r in table.refs.items()}
    return out


def twins(base: Table, wanted: Table, actual: Table) -> dict[int, int]:
    """Which new field stands in the catalog under the same name already, put there by another hand."""
    known, have = index(base.schema), index(actual.schema)
    found: dict[int, int] = {}
    for i, entry in index(wanted.schema).items():
        if i > 0:
            continue
        parent = found.get(entry.parent, entry.parent) if entry.parent is not None else None
        if entry.parent is not None and not _alike(index(wanted.schema)[entry.parent], have.get(parent or 0)):
            continue
        for j, there in have.items():
            if j not in known and (there.parent, there.field.name) == (parent, entry.field.name):
                found[i] = j
    return found


def _alike(one: Entry, other: Entry | None) -> bool:
    return other is not None and type(one.field.type) is type(other.field.type)


def renumbered(table: Table, ids: Mapping[int, Any]) -> dict[tuple[object, ...], Any]:
    """The facts of a table under other ids."""

    def new(i: Any) -> Any:
        return ids.get(i, i)

    out = {(new(key[0]), *key[1:]): value for key, value in facts(table).items()}
    out["identifier",] = frozenset(map(new, table.schema.identifier_ids))
    out["spec",] = frozenset((tuple(map(new, s)), t, n) for s, t, n in out["spec",])
    out["order",] = tuple(
        replace(f, source_ids=tuple(map(new, f.source_ids))) for f in table.sort_order.fields
    )
    return out


def conflicting(evolution: Evolution, wanted: Table) -> set[object]:
    """Facts that are neither as they were nor as they shall be."""
    base, actual = evolution.before, evolution.actual
    ids = twins(base, wanted, actual)
    known, want, have = facts(base), renumbered(wanted, ids), facts(actual)
    old, new, there = index(base.schema), index(wanted.schema), index(actual.schema)
    out: set[object] = set()
    for key in known.keys() | want.keys():
        b, w, a = (side.get(key, GONE) for side in (known, want, have))
        field_id = key[0]
        if not isinstance(field_id, int):
            lost = any(is_lost(i, ids, new, there) for i in sources(key[0], w))
            if b != w and (lost or (a not in (b, w) and not halfway(key[0], evolution, wanted, b, w, a))):
                out.add(key)
        elif field_id in old and w == GONE:
            # A field that goes does so whatever it is called by now; but nobody else's goes with it.
            parent = old[field_id].parent
            inside = walk(there[field_id].field.type) if field_id in there else ()
            if (parent is None or parent in new) and any(f.id not in old for _, f in inside):
                out.add(field_id)
        elif field_id in old or field_id > 0:
            if b != w and a not in (b, w):
                out.add(field_id)
        else:
            parent = new[field_id].parent
            if parent in old and parent not in there:
                out.add(field_id)
    return out


def sources(of: object, value: Any) -> Iterator[int]:
    """The fields without which a fact cannot be."""
    if of == "identifier":
        yield from value
    elif of == "spec":
        yield from (i for ids, _, _ in value for i in ids)
    elif of == "order":
        yield from (i for f in value for i in f.source_ids)


def is_lost(
    field_id: int, ids: Mapping[int, int], wanted: Mapping[int, Entry], actual: Mapping[int, Entry]
) -> bool:
    """Whether a field can be neither found nor made: itself or what it shall stand in is gone, or another."""
    at: int | None = field_id
    while at is not None and at < 0 and at not in ids:
        at = wanted[at].parent
    if at is None:
        return False
    above = actual.get(ids.get(at, at))
    return above is None or (at != field_id and not _alike(wanted[at], above))


def halfway(of: object, evolution: Evolution, wanted: Table, b: Any, w: Any, a: Any) -> bool:
    """Whether a value is one that the statements of the migration leave in between."""
    if of == "spec":
        return all(f in a for f in b if f in w) and all(f in b or f in w for f in a)
    old, new = index(evolution.before.schema), index(wanted.schema)
    if of == "identifier":
        moved = [i for i in b if i in w and len(old[i].path) > 1 and old[i].path != new[i].path]
        return bool(b - a) and not a - b and all(i not in w or i in moved for i in b - a)
    return of == "order" and a == () and any(f.source_ids[0] not in new for f in b)


# The laws


@given(evolutions(by_hand=False))
def test_a_plan_leads_from_what_was_to_what_is_wanted(evolution: Evolution) -> None:
    judged = planned(evolution)
    assert not judged.table.conflicts
    assert "unproved" not in judged.rules
    assume(judged.ready)
    outcome = judged.after
    wanted = settle(declared(evolution), outcome)
    assert facts(outcome) == facts(wanted)
    assert orders(outcome) == orders(wanted)
    kept = {f.id for _, f in evolution.wanted.schema.walk() if f.id > 0}
    fresh = {f.id for _, f in outcome.schema.walk()} - kept
    assert all(i > evolution.before.last_column_id for i in fresh), "a new field never takes an old id"


def orders(table: Table) -> list[list[int]]:
    """Ids of all siblings, in their order."""
    return [
        [f.id for f in children(t)]
        for t in (table.schema.root, *(f.type for _, f in table.schema.walk() if is_nested(f.type)))
    ]


@given(evolutions())
def test_wanted_facts_come_and_those_of_others_stay(evolution: Evolution) -> None:
    judged = planned(evolution)
    assert "unproved" not in judged.rules
    assume(judged.ready)
    wanted = settle(declared(evolution), judged.after)
    base, want, have, out = map(facts, (evolution.before, wanted, evolution.actual, judged.after))
    for key in base.keys() | want.keys() | have.keys() | out.keys():
        b, w, a = (side.get(key, GONE) for side in (base, want, have))
        if b != w:
            assert out.get(key, GONE) == w, key
        elif not _goes_along(evolution, key):
            assert out.get(key, GONE) == a, key


def _goes_along(evolution: Evolution, key: tuple[object, ...]) -> bool:
    """Whether a fact is of a field inside one that goes."""
    field_id, there = key[0], index(evolution.actual.schema)
    gone = index(evolution.before.schema).keys() - index(evolution.wanted.schema).keys()
    while isinstance(field_id, int):
        if field_id in gone:
            return True
        field_id = there[field_id].parent if field_id in there else None
    return False


@given(evolutions())
def test_a_conflict_is_a_fact_that_is_neither_as_it_was_nor_as_wanted(evolution: Evolution) -> None:
    judged = planned(evolution)
    expected = conflicting(evolution, declared(evolution))
    assert bool(judged.table.conflicts) == bool(expected), (judged.table.conflicts, expected)
    of_table = {c.fact.partition(":")[2].split(".")[0] for c in judged.table.conflicts} - {"columns"}
    named = {"identifier": "identifier", "spec": "partition_by", "order": "sort_by"}
    named |= {"format": "format_version", "property": "properties", "ref": "tags"}
    assert of_table == {named[str(key[0])] for key in expected if isinstance(key, tuple)}


@given(evolutions())
def test_overwriting_every_conflict_leaves_none(evolution: Evolution) -> None:
    judged = planned(evolution)
    assume(judged.table.conflicts)
    wanted = declared(evolution)
    facts_ = frozenset(c.fact for c in judged.table.conflicts)
    left = merge(evolution.before, wanted, evolution.actual, overwrite=facts_).conflicts
    # Only what rests on fields that somebody dropped stays refused.
    assert all("absent" in c.actual or "there is no" in c.actual for c in left)


@given(evolutions())
def test_a_plan_that_has_run_leaves_nothing_to_do(evolution: Evolution) -> None:
    judged = planned(evolution)
    assume(judged.ready)
    outcome = judged.after
    # A run that died before its record: base is what it was.
    again = plan_text(migration(evolution), state(evolution.before), {NAME: outcome})
    assert again.ready
    assert again.table.steps == ()
    # And with the record: base is what was settled.
    base = settle(declared(evolution), outcome)
    nothing = plan_value(Wanted(NAME, base, NAME), (), state(base), outcome)
    assert nothing.table.steps == ()
    assert nothing.table.conflicts == ()


@given(evolutions())
def test_a_run_that_died_is_finished_by_the_next(evolution: Evolution) -> None:
    judged = planned(replace(evolution, actual=evolution.before))
    assume(judged.ready)
    found = list(judged.table.changes())
    for done in range(len(found)):
        half = reduce(lambda t, c: c.change.apply(t), found[:done], evolution.before)
        rest = plan_text(migration(evolution), state(evolution.before), {NAME: half})
        assert not rest.table.conflicts
        assert "unproved" not in rest.rules
        if rest.ready:
            top = evolution.before.last_column_id
            assert by_name(rest.after, top) == by_name(judged.after, top)


def by_name(table: Table, above: int) -> dict[tuple[object, ...], Any]:
    """The facts of a table; new fields by name, since which of them comes first depends on what was done."""
    ids = {i: e.path for i, e in index(table.schema).items() if i > above}
    return renumbered(table, ids)


@given(evolutions())
def test_a_plan_is_the_same_as_a_file(evolution: Evolution) -> None:
    judged = planned(evolution)
    assert judged.plan is not None
    plan = Plan(
        "p",
        "local",
        "sqlite:x",
        "lake",
        (judged.plan,),
        (("0001", "sum"),),
        {NAME: evolution.actual},
        state(evolution.before),
        frozenset({"db.t:identifier"}),
        "1",
    )
    assert loads(dumps(plan), "plan.json") == plan
    shown = json.loads(json.dumps(plan_document(PlanResult(plan))))
    jsonschema.validate(shown, SCHEMA)
    assert load(shown) == plan


@given(befores())
def test_a_declared_table_is_made_as_declared(table: Table) -> None:
    bare = replace(table, refs={}, uuid=None)
    judged = plan_text(dump([document(bare)]), EMPTY_STATE, {})
    assert not judged.said
    assert judged.plan is not None
    (plan,) = judged.plan.tables
    assert plan.wanted is not None
    assume(judged.ready)
    made = judged.after
    assert facts(settle(plan.wanted, made)).items() <= facts(made).items()
    again = plan_text(dump([document(bare)]), EMPTY_STATE, {NAME: made}, version="0002")
    assert again.ready
    assert again.table.steps == (), "a creation that was cut short is found done"


@given(evolutions())
def test_a_lossless_plan_is_undone_by_merging_with_base_and_wanted_exchanged(evolution: Evolution) -> None:
    judged = planned(evolution)
    assume(judged.ready)
    assume(all(c.reversal.answer is not Reversible.NO for c in judged.table.changes()))
    outcome = judged.after
    back = merge(settle(declared(evolution), outcome), evolution.before, outcome)
    alone = evolution.actual == evolution.before
    wrong = any(not b.is_warning for b in legality.problems(back.target, outcome))
    # What others did may stand in the way, and is not undone; or may forbid what was before.
    assume(alone or not (back.conflicts or wrong))
    assert not back.conflicts
    undoing = difference(outcome, back.target, KINDS)
    assert unproved(undoing, KINDS) == ()
    if alone:
        assert facts(undoing.after) == facts(evolution.before)
    else:
        # What the migration did is gone, whatever others did meanwhile.
        want, was = facts(settle(declared(evolution), outcome)), facts(evolution.before)
        undone = facts(undoing.after)
        ours = {key for key in want.keys() | was.keys() if want.get(key, GONE) != was.get(key, GONE)}
        assert {k: undone.get(k, GONE) for k in ours} == {k: was.get(k, GONE) for k in ours}
