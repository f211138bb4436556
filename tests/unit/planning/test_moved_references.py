"""Tags and branches that a migration moves to another snapshot."""

from __future__ import annotations

import pytest

from icemigrate.errors import ConflictError
from icemigrate.files.replay.declared_differences import declared_differences
from icemigrate.frozen import replace
from icemigrate.iceberg.file_evidence_values import Evidence
from icemigrate.iceberg.snapshot_pins import SnapshotLog, SnapshotPin, snapshot_log
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.planning.drift.differing_facts import find_differing_facts
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from icemigrate.spark.engine_port import Marker
from icemigrate.spark.publish import DirectPublisher
from tests.support.memory_lake import Lake, problems
from tests.support.planned_migrations import make_plan, pending

FIRST, SECOND, THIRD = 1_767_225_600_000, 1_767_312_000_000, 1_767_398_400_000
LOG = SnapshotLog({1: FIRST, 2: SECOND, 3: THIRD}, ((FIRST, 1), (SECOND, 2), (THIRD, 3)))


def _moved(of: str, keys: str) -> str:
    return f"allow: [destructive]\ntables:\n  - name: db.t\n    {of}: {{{keys}}}\n"


def _lake() -> Lake:
    """A table with three snapshots, a tag on the first and a branch on the second."""
    lake = Lake()
    lake.apply("0001", "tables:\n  - name: db.t\n    columns: [{name: id, type: long}]\n")
    at(lake, 1)
    lake.apply("0002", "tables:\n  - name: db.t\n    tags: {golden: {}}\n")
    at(lake, 2)
    lake.apply("0003", "tables:\n  - name: db.t\n    branches: {audit: {}}\n")
    at(lake, 3)
    return lake


def at(lake: Lake, snapshot_id: int) -> None:
    def written(table: Table) -> Table:
        refs = {**table.refs, "main": Ref("branch", snapshot_id)}
        return replace(table, snapshot=Snapshot(snapshot_id, 0, 3), snapshot_log=LOG, refs=refs)

    lake.by_hand(written)


def _texts(lake: Lake, text: str) -> list[str]:
    around = PlanningContext("market", "local")
    planned = plan_migrations([pending("0009", text)], lake.state, lake.engine.tables, around)
    found = [f"{p.rule}: {p.message}" for m in planned.migrations for p in m.problems]
    return found or [c.text for m in planned.migrations for t in m.tables for c in t.changes()]


@pytest.mark.parametrize(
    ("pin", "snapshot_id"),
    [
        ("snapshot: 2", 2),
        ("as_of: 2026-01-02T01:00:00+01:00", 2),
        ("as_of: '2026-01-02 00:59:59+01:00'", 1),
        ("branch: main", 3),
        ("branch: audit", 2),
    ],
)
def test_a_tag_moves_to_the_snapshot_that_a_later_file_declares(pin: str, snapshot_id: int) -> None:
    lake = _lake()
    if snapshot_id != 1:
        lake.apply("0004", _moved("tags", f"golden: {{{pin}}}"))
    assert lake.table().refs["golden"] == Ref("tag", snapshot_id)


def test_the_plan_names_both_snapshots_and_their_times() -> None:
    assert _texts(_lake(), _moved("tags", "golden: {branch: main, retention: {max_age: 30d}}")) == [
        "move tag golden from snapshot 1 (2026-01-01 00:00:00 UTC) to snapshot 3 (2026-01-03 00:00:00 UTC), "
        "kept for 30 days"
    ]
    assert _texts(_lake(), _moved("tags", "new: {as_of: 2026-01-02T00:00:00Z}")) == [
        "create tag new at snapshot 2 (2026-01-02 00:00:00 UTC)"
    ]


def test_without_a_snapshot_a_declared_reference_stays_where_it_is() -> None:
    assert _texts(_lake(), "tables:\n  - name: db.t\n    tags: {golden: {}}\n") == []
    lake = _lake()
    lake.apply("0004", _moved("tags", "golden: {snapshot: 2}"))
    assert lake.state.tables[lake.table().name].pins["golden"] == SnapshotPin("snapshot", "2", 2)
    assert _texts(lake, _moved("tags", "golden: {snapshot: 2}")) == []


@pytest.mark.parametrize(
    ("pin", "message"),
    [
        ("snapshot: 9", "`snapshot: 9`: table `db.t` has no such snapshot"),
        (
            "as_of: 2025-12-31T23:59:59Z",
            "`as_of: 2025-12-31T23:59:59+00:00`: the first snapshot that table `db.t` still has is of "
            "2026-01-01 00:00:00 UTC",
        ),
        ("branch: adit", "`branch: adit`: table `db.t` has no such branch"),
    ],
)
def test_a_snapshot_that_is_missing_is_an_error_of_the_plan(pin: str, message: str) -> None:
    found = _texts(_lake(), _moved("tags", f"golden: {{{pin}}}"))
    assert found == [f"no-such-snapshot: tag `golden` cannot point to {message}"]


def test_a_tag_does_not_move_to_rows_that_the_same_plan_writes() -> None:
    text = "allow: [destructive]\ntables:\n  - name: db.t\n    tags: {golden: {branch: main}}\n"
    rows = "    backfill: [{set: {id: '1'}, where: 'id = 0'}]\n"
    (found,) = _texts(_lake(), text + rows)
    assert found.startswith("pin-before-rows: tag `golden` cannot point to `branch: main`")


@pytest.mark.parametrize(("of", "name"), [("tags", "golden"), ("branches", "audit")])
def test_an_undo_moves_it_back(of: str, name: str) -> None:
    lake = _lake()
    before = lake.table().refs[name]
    lake.apply("0004", _moved(of, f"{name}: {{branch: main}}"))
    assert lake.table().refs[name].snapshot_id == 3
    lake.rollback("0004", evidence=Evidence(existing_snapshots=frozenset({1, 2})))
    assert lake.table().refs[name] == before
    assert lake.state.tables[lake.table().name].pins == {}


def test_a_second_move_is_undone_to_the_first() -> None:
    lake = _lake()
    lake.apply("0004", _moved("branches", "audit: {snapshot: 1}"))
    lake.apply("0005", _moved("branches", "audit: {branch: main}"))
    lake.rollback("0005", evidence=Evidence(existing_snapshots=frozenset({1})))
    assert lake.table().refs["audit"].snapshot_id == 1
    lake.rollback("0004", evidence=Evidence(existing_snapshots=frozenset({2})))
    assert lake.table().refs["audit"].snapshot_id == 2


def test_an_undo_refuses_to_lose_rows_of_a_moved_branch_and_needs_the_old_snapshot() -> None:
    lake = _lake()
    lake.apply("0004", _moved("branches", "audit: {branch: main}"))
    assert "snapshot-expired" in problems(lake.undo("0004"))
    lake.by_hand(lambda t: replace(t, refs={**t.refs, "audit": Ref("branch", 4)}))
    assert "branch-written" in problems(
        lake.undo("0004", evidence=Evidence(existing_snapshots=frozenset({2})))
    )


def test_the_old_snapshot_has_its_tag_before_a_statement_moves_the_reference() -> None:
    lake = _lake()
    lake.apply("0004", _moved("tags", "golden: {snapshot: 2}"))
    words = ("mark db.t icemigrate-market-0004", "REPLACE")
    found = [next(w for w in words if w in text) for text in lake.engine.log if any(w in text for w in words)]
    assert found == [words[0], words[1], words[0]]
    first, last = (marker for _, marker in lake.engine.markers[-2:])
    assert (first.released, first.is_started) == ((1,), True)
    assert not last.is_started


def test_a_run_that_continues_another_moves_no_tag_of_a_released_snapshot() -> None:
    marker, tag = Marker("market", "0004", "", "", released=(5, 7)), "icemigrate-market-0004-released"
    assert marker.released_tags({}) == ((tag, 5), (f"{tag}-2", 7))
    assert marker.released_tags({tag: 7}) == ((f"{tag}-2", 5), (tag, 7))
    assert marker.released_tags({tag: 9, f"{tag}-2": 5}) == ((f"{tag}-2", 5), (f"{tag}-3", 7))


def test_a_branch_that_another_client_wrote_to_since_does_not_move() -> None:
    lake = _lake()
    plan = make_plan(
        {"0004": _moved("branches", "audit: {branch: main}")}, lake.engine.tables, base=lake.state
    )
    before = lake.table()
    lake.by_hand(lambda t: replace(t, refs={**t.refs, "audit": Ref("branch", 4)}))
    marker = Marker("market", "0004", "", "")
    with pytest.raises(ConflictError, match="is at snapshot 4 now, not at 2"):
        DirectPublisher(lake.engine).publish(plan.migrations[0].tables[0], before, marker, lambda event: None)
    assert not any("REPLACE" in text for text in lake.engine.log)


def test_drift_is_a_moved_tag_only_if_the_file_pins_it() -> None:
    lake = _lake()
    lake.apply("0004", _moved("tags", "pinned: {snapshot: 1}"))
    moved = {"golden": Ref("tag", 3), "pinned": Ref("tag", 3)}
    lake.by_hand(lambda t: replace(t, refs={**t.refs, **moved}))
    base = lake.state.tables[lake.table().name]
    found = [(f.subject, f.recorded, f.actual) for f in find_differing_facts(base, lake.table()) if f.managed]
    kept = "tag, kept forever, at snapshot"
    assert found == [(("tags", "pinned"), f"{kept} 1", f"{kept} 3")]


def test_another_snapshot_is_another_declaration() -> None:
    lake = _lake()
    lake.apply("0004", _moved("tags", "golden: {snapshot: 2}"))
    (undo,) = lake.record("0004").tables
    assert undo.after is not None
    edited = replace(undo.after, pins={"golden": SnapshotPin("snapshot", "1")})
    assert declared_differences(undo.after, edited, ("applied", "file")) == (
        "db.t: tags.golden.snapshot: applied 2, file 1",
    )
    # The snapshot that a pin meant in an environment is not declared.
    same = replace(undo.after, pins={"golden": SnapshotPin("snapshot", "2")})
    assert declared_differences(undo.after, same, ("applied", "file")) == ()


def test_of_two_snapshots_in_one_millisecond_the_last_of_the_log_is_current() -> None:
    metadata = {
        "snapshots": [{"snapshot-id": n, "timestamp-ms": FIRST} for n in (9, 4)],
        "snapshot-log": [{"snapshot-id": n, "timestamp-ms": FIRST} for n in (9, 4)],
    }
    assert snapshot_log(metadata).as_of("2026-01-01T00:00:00+00:00") == 4
