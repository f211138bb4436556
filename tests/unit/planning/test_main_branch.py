"""The main branch: every table's without being declared; limits of its own can be given it, and taken off."""

from __future__ import annotations

import pytest

from icemigrate.files.write.migration_entries import entry_between
from icemigrate.frozen import replace
from icemigrate.iceberg.metadata_parts import read_refs
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Snapshot, Table
from icemigrate.planning.drift.comparable_tables import as_declared, is_never_server_managed
from icemigrate.planning.drift.differing_facts import find_differing_facts
from icemigrate.planning.drift.reconcile_target import ReconcileContext, find_reconcile_target
from icemigrate.planning.plan_file import structural_json
from icemigrate.spark.conflict_check import table_without_rows
from tests.support.imported_tables import imported
from tests.support.memory_lake import Lake
from tests.support.small_tables import table

BARE, KEPT = Ref("branch", 7), Ref("branch", 7, min_snapshots_to_keep=5)
LIMITED = "tables: [{name: db.t, branches: {main: {retention: {snapshots: {keep_at_least: 5}}}}}]"
TABLE = table("a: int")


def written(main: Ref = BARE) -> Table:
    """The table after a commit of somebody's rows."""
    return replace(TABLE, snapshot=Snapshot(main.snapshot_id, 0, 1), refs={"main": main})


def by_a_writer(there: Table) -> Table:
    """The table after one more commit of rows."""
    main = replace(there.refs["main"], snapshot_id=there.refs["main"].snapshot_id + 1)
    return replace(there, snapshot=Snapshot(main.snapshot_id, 0, 1), refs={**there.refs, "main": main})


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", "tables: [{name: db.t, columns: [{name: id, type: int}]}]")
    lake.by_hand(lambda t: replace(t, snapshot=Snapshot(7, 0, 1), refs={"main": BARE}))
    return lake


def test_its_limits_are_given_and_go_again_however_much_was_written_since(lake: Lake) -> None:
    lake.apply("0002", LIMITED)
    assert lake.table().refs["main"] == KEPT
    lake.by_hand(by_a_writer)
    lake.rollback("0002")
    assert lake.table().refs["main"] == Ref("branch", 8)


def test_limits_that_somebody_gave_it_already_are_found_done(lake: Lake) -> None:
    lake.by_hand(lambda t: replace(t, refs={"main": KEPT}))
    lake.apply("0002", LIMITED)
    assert lake.table().refs["main"] == KEPT
    # So it was not the migration's doing, and stays when that is taken back.
    lake.rollback("0002")
    assert lake.table().refs["main"] == KEPT


def test_limits_of_a_table_that_was_never_written_to_go_again() -> None:
    lake = Lake()
    lake.apply("0001", "tables: [{name: db.t, columns: [{name: id, type: int}]}]")
    lake.apply("0002", LIMITED)
    assert lake.table().refs["main"] == replace(KEPT, snapshot_id=CURRENT_SNAPSHOT)
    lake.by_hand(
        lambda t: replace(t, snapshot=Snapshot(8, 0, 1), refs={"main": replace(KEPT, snapshot_id=8)})
    )
    lake.rollback("0002")
    assert lake.table().refs["main"] == Ref("branch", 8)


def test_a_migration_that_takes_limits_away_can_be_written() -> None:
    limited = replace(TABLE, refs={"main": KEPT})
    assert entry_between(limited, TABLE)["branches"] == {"main": {}}


def test_limits_that_somebody_set_are_told_accepted_and_led_back() -> None:
    (fact,) = find_differing_facts(TABLE, written(KEPT))
    assert (fact.subject, fact.actual, fact.managed) == (
        ("branches", "main"),
        "branch, kept at least 5 snapshots",
        False,
    )
    accepted = as_declared(TABLE, written(KEPT), is_never_server_managed, foreign=True)
    assert accepted.refs["main"].min_snapshots_to_keep == 5
    recorded = replace(TABLE, refs={"main": replace(KEPT, snapshot_id=CURRENT_SNAPSHOT)})
    assert find_differing_facts(recorded, written(KEPT)) == find_differing_facts(TABLE, written()) == ()
    there = written(replace(KEPT, min_snapshots_to_keep=9))
    way = find_reconcile_target(recorded, there, ReconcileContext(TABLE.name, TABLE.name))
    assert way is not None
    assert not way.problems


def test_limits_that_somebody_set_are_imported() -> None:
    kept = {"retention": {"snapshots": {"keep_at_least": 5}}}
    assert imported(written(KEPT)).entry["branches"] == {"main": kept}
    assert "branches" not in imported(written()).entry


def test_an_age_of_its_own_says_nothing() -> None:
    limits = {"type": "branch", "snapshot-id": 7, "max-ref-age-ms": 60000}
    refs = read_refs({"refs": {"main": limits, "audit": limits}}, {7})
    assert refs == {"main": BARE, "audit": replace(BARE, max_ref_age_ms=60000)}


def test_rows_make_no_plan_stale_and_limits_do() -> None:
    for as_planned in (table_without_rows, structural_json):
        assert as_planned(written()) == as_planned(by_a_writer(written())) == as_planned(TABLE)
        assert as_planned(written(KEPT)) == as_planned(by_a_writer(written(KEPT))) != as_planned(written())


def test_limits_that_no_file_can_say_are_left_out_of_an_import() -> None:
    there = written(KEPT)
    odd = {"t": Ref("tag", 7, 90_000), "b": Ref("branch", 7, None, 1500), "c": Ref("branch", 7, 60_000)}
    found = imported(replace(there, refs={**there.refs, **odd}))
    assert found.unsaid == ("tags.t", "branches.b")
    assert set(found.entry["branches"]) == {"main", "c"}
