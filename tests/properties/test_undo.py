"""The law of undoing: a migration taken back leaves what was before it, and what others did since."""

from __future__ import annotations

from functools import reduce
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from icemigrate.files.write.migration_entries import entry_between, format_migration_file
from icemigrate.frozen import replace
from icemigrate.history.undo_record_codec import pack_undo, unpack_undo
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.partitioning import VOID
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.types import Field, Primitive, is_nested
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.merge import with_catalog_ids
from icemigrate.planning.plan import PlannedMigrations, TablePlan
from icemigrate.planning.undo import MigrationUndo, UndoEnvironment, UndoOptions, plan_undo
from tests.support.evolution_strategies import NAME, Evolution, evolutions
from tests.support.shared_plans import plan_text

ALL = ("destructive", "incompatible", "irreversible")


def facts(table: Table) -> dict[Any, Any]:
    """What a migration can speak of, by field id."""
    out: dict[Any, Any] = {}
    for i, entry in schema_index(table.schema).items():
        kind = type(entry.field.type).__name__ if is_nested(entry.field.type) else entry.field.type
        out[i] = (entry.path, kind, entry.field.required, entry.field.doc, entry.field.write_default)
    out["identifier"] = table.schema.identifier_ids
    out["spec"] = {(f.source_ids, f.transform, f.name) for f in table.spec.live}
    out["order"] = table.sort_order.fields
    out |= {("property", key): value for key, value in table.properties.items()}
    out |= {("ref", name): (ref.kind, ref.max_ref_age_ms) for name, ref in table.refs.items()}
    return out


def applied(evolution: Evolution) -> tuple[Table, UndoRecord, DeclaredState]:
    """The migration carried out, over whatever somebody else did to the table before it."""
    before, actual = evolution.before, evolution.actual
    state = DeclaredState({before.name: before}, frozenset({before.name.namespace}))
    text = format_migration_file([entry_between(before, evolution.wanted)], allow=ALL)
    judged = plan_text(text, state, {NAME: actual})
    if judged.plan is not None and judged.table.conflicts:
        overwritten = [c.fact for c in judged.table.conflicts]
        judged = plan_text(text, state, {NAME: actual}, overwrite=overwritten)
    assume(judged.ready)
    table = judged.table
    after = fold(table, actual)
    assert table.wanted is not None
    declared = with_catalog_ids(table.wanted, after)
    undo = TableUndo(NAME, NAME, before, declared, actual, after)
    return after, UndoRecord("0002", (undo,)), state.after(NAME, NAME, declared)


def fold(plan: TablePlan, table: Table) -> Table:
    return reduce(lambda t, c: c.change.apply(t), plan.changes(), table)


def take_back(record: UndoRecord, now: Table, state: DeclaredState) -> PlannedMigrations:
    there = frozenset(ref.snapshot_id for ref in now.refs.values()) | {-1, 7}
    undo = MigrationUndo("0002", "", "", record, {NAME: Evidence(existing_snapshots=there)})
    return plan_undo([undo], state, {NAME: now}, UndoEnvironment("p", "lake"), UndoOptions(partial=True))


def needed(before: Table, back: Table) -> dict[Any, Any]:
    """What has to stay: the sources of partition fields that format version 1 keeps as void ones."""
    entries, known = schema_index(back.schema), schema_index(before.schema)
    stays: set[int] = set()
    for source in (f.source_ids[0] for f in back.spec.fields if f.transform == VOID):
        top: int | None = source if source in entries and source not in known else None
        while top is not None:
            stays.add(top)
            parent = entries[top].parent
            top = parent if parent not in known else None
    below = {i for i, e in entries.items() if e.parent in stays and i not in known}
    while below - stays:
        stays |= below
        below = {i for i, e in entries.items() if e.parent in stays and i not in known}
    return {i: fact for i, fact in facts(back).items() if i in stays}


@given(evolutions(by_hand=False))
def test_a_migration_taken_back_leaves_the_table_as_it_was(evolution: Evolution) -> None:
    after, record, state = applied(evolution)
    planned = take_back(record, after, state)
    (migration,) = planned.migrations
    (table,) = migration.tables
    assert migration.problems == ()
    upgraded = evolution.before.format_version != after.format_version
    event("upgraded" if upgraded else "same format")
    back = fold(table, after)
    event("a column stays" if needed(evolution.before, back) else "all goes back")
    assert facts(back) == facts(evolution.before) | needed(evolution.before, back)
    assert back.format_version == after.format_version
    assert [len(step.statements) for step in table.steps] in ([], [1])
    declared = planned.state.tables[NAME]
    assert facts(declared) == facts(evolution.before)
    again = take_back(record, back, state)
    assert [list(t.changes()) for t in again.migrations[0].tables] == [[]]


@given(evolutions())
def test_a_migration_over_others_changes_goes_back_to_what_they_had_made(evolution: Evolution) -> None:
    actual = evolution.actual
    after, record, state = applied(evolution)
    planned = take_back(record, after, state)
    (migration,) = planned.migrations
    assert migration.problems == ()
    said = [note for note in migration.tables[0].notes if "before the migration" in note]
    event("others had changed its facts" if said else "its facts were as declared")
    back = fold(migration.tables[0], after)
    assert facts(back) == facts(actual) | needed(actual, back)
    assert facts(planned.state.tables[NAME]) == facts(evolution.before)


@given(evolutions(by_hand=False), st.integers(0, 3))
def test_what_others_added_since_stays(evolution: Evolution, place: int) -> None:
    after, record, state = applied(evolution)
    theirs = Field(after.last_column_id + 1, "added_by_others", Primitive("string"))
    fields = list(after.schema.fields)
    fields.insert(min(place, len(fields)), theirs)
    now = replace(
        after,
        schema=replace(after.schema, fields=tuple(fields)),
        properties={**after.properties, "by.others": "x"},
        last_column_id=theirs.id,
    )
    (migration,) = take_back(record, now, state).migrations
    assert migration.problems == ()
    back = fold(migration.tables[0], now)
    expected = {
        **facts(evolution.before),
        **needed(evolution.before, back),
        **{k: v for k, v in facts(now).items() if k in (theirs.id, ("property", "by.others"))},
    }
    assert facts(back) == expected


@given(evolutions(by_hand=False))
def test_a_record_is_read_as_it_was_written(evolution: Evolution) -> None:
    _, record, _ = applied(evolution)
    assert unpack_undo(pack_undo(record)) == record
