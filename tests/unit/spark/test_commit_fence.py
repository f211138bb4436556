"""What a commit has to pass, and the names that say whose a table, a tag or a branch is."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from icemigrate.errors import ConflictError, EngineError, LockLost
from icemigrate.execution.fencing import fence_interrupted_migrations
from icemigrate.history.head_snapshot import LockInfo
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.ref_names import (
    before_tag_name,
    branch_name,
    is_branch_of,
    is_icemigrate_branch,
    is_icemigrate_tag,
    is_reserved,
    older_tag_names,
    refill_branch_name,
    run_branch_name,
    tag_name,
)
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, Table, trash_name, trash_names
from icemigrate.iceberg.table_properties import FENCE_PROPERTY, OWNER_PROPERTY
from icemigrate.spark.commit_fence import Fence
from tests.support.memory_journal import journal_in_memory
from tests.support.recording_engine import RecordingEngine

NAME = TableName.parse("db.t")
NOON = datetime(2026, 11, 27, 12, 0, tzinfo=timezone.utc)


def guard(epoch: int = 7, is_lost: bool = False) -> Fence:
    def require() -> None:
        if is_lost:
            raise LockLost("the lease ran out")

    return Fence("shop", "h", epoch, require)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {OWNER_PROPERTY: "shop"},
        {CREATED_BY_PROPERTY: "shop/0001"},
        {OWNER_PROPERTY: "shop", CREATED_BY_PROPERTY: "desk/0001"},
        {FENCE_PROPERTY: "h/7"},
        {FENCE_PROPERTY: "another history/99"},
        {FENCE_PROPERTY: "what somebody wrote"},
    ],
)
def test_a_table_of_ours_that_no_later_holder_has_fenced_is_admitted(properties: dict[str, str]) -> None:
    guard().require_access(NAME, {"properties": properties})


def test_a_table_that_a_later_holder_has_fenced_is_not_touched() -> None:
    with pytest.raises(LockLost, match="fenced table `db"):
        guard().require_access(NAME, {"properties": {FENCE_PROPERTY: "h/8"}})


def test_the_lock_is_looked_at_behind_the_read() -> None:
    with pytest.raises(LockLost, match="the lease ran out"):
        guard(is_lost=True).require_access(NAME, {})


@pytest.mark.parametrize(
    "properties", [{OWNER_PROPERTY: "desk"}, {CREATED_BY_PROPERTY: "desk/0001"}], ids=["owner", "maker"]
)
def test_a_table_of_another_project_is_not_touched(properties: dict[str, str]) -> None:
    with pytest.raises(
        ConflictError, match="belongs to project `desk`, and this is project `shop`"
    ) as refused:
        guard().require_access(NAME, {"properties": properties})
    assert refused.value.hint is not None
    assert f"('{OWNER_PROPERTY}'='shop')" in refused.value.hint


def test_equal_versions_of_two_projects_share_no_name() -> None:
    names = {
        name
        for project in ("a", "a-0001", "A_b")
        for name in (
            tag_name(project, "0002"),
            before_tag_name(project, "0002"),
            branch_name(project, "0002"),
        )
    }
    assert len(names) == 9
    assert all(map(is_reserved, names))
    assert len({trash_name(NAME, project, "0002") for project in ("a", "b")}) == 2


def test_names_of_earlier_releases_are_still_ours() -> None:
    assert all(map(is_icemigrate_tag, older_tag_names("0002")))
    assert is_icemigrate_branch("icemigrate-0002-data")
    assert is_branch_of("icemigrate-0002-data", "shop", "0002")
    assert is_icemigrate_branch("icemigrate-refill")
    assert is_branch_of("icemigrate-refill", "shop", "0002")
    assert str(trash_names(NAME, "shop", "0002")[1]) == "icemigrate_trash.db__t__0002"


def test_a_branch_of_any_run_is_known_as_the_migrations() -> None:
    run = run_branch_name("shop", "0002", "0123456789abcdef")
    assert run == "icemigrate-shop-0002-data-01234567"
    assert is_icemigrate_branch(run)
    assert is_branch_of(run, "shop", "0002")
    assert not is_branch_of(run, "shop", "0003")
    assert not is_branch_of(run, "desk", "0002")
    assert not is_icemigrate_branch("icemigrate-mine")


def test_a_refill_writes_on_a_branch_of_its_project_and_run() -> None:
    run = refill_branch_name("shop", "0123456789abcdef")
    assert run == "icemigrate-shop-refill-01234567"
    assert is_icemigrate_branch(run)
    assert is_reserved(refill_branch_name("shop"))
    assert is_branch_of(run, "shop", "0002"), "a fence drops it"
    assert not is_branch_of(run, "desk", "0002")
    assert not is_icemigrate_branch("icemigrate-shop-refill-mine")


@pytest.fixture
def reconciling() -> RecordingEngine:
    """A process has died while it reconciled a table; it writes no intent, so its lock names the table."""
    engine = RecordingEngine({NAME: Table(NAME, Schema())})
    writer = journal_in_memory(engine, "shop").writer
    writer.prepare()
    gone = LockInfo("run", "ann", "here", 7, NOON, lease_s=0, action="reconcile", tables=(str(NAME),))
    writer.swap(writer.head().id, "step", gone)
    return engine


def tables_of_lock(journal: Journal) -> tuple[str, ...]:
    """The tables that the lock names, as the next process reads it."""
    lock = journal.writer.head().lock
    return () if lock is None else lock.tables


def test_tables_that_a_silent_reconcile_may_have_begun_are_fenced(reconciling: RecordingEngine) -> None:
    journal = journal_in_memory(reconciling, "shop")
    with journal.hold_lock("apply", "bob", "there") as held:
        assert tables_of_lock(journal) == (str(NAME),), (
            "a process that takes over from this one fences it too"
        )
        with fence_interrupted_migrations(reconciling, held):
            assert f"fence {NAME}" in reconciling.log
    assert tables_of_lock(journal) == ()


def test_tables_of_a_lock_that_was_taken_away_are_fenced() -> None:
    engine = RecordingEngine({NAME: Table(NAME, Schema())})
    journal = journal_in_memory(engine, "shop")
    with journal.hold_lock("reconcile", "ann", "here") as held:
        held.may_change([str(NAME)])
        held.lock.write("step")
        record = HistoryRecord(
            None, "", "", "shop", "here", RunOutcome.UNLOCKED, NOON, NOON, "bob", "desk", "1"
        )
        journal.unlock(journal.writer.head().id, record)
        with pytest.raises(LockLost):
            held.lock.write("step")
    with journal.hold_lock("apply", "bob", "there") as held, fence_interrupted_migrations(engine, held):
        assert f"fence {NAME}" in engine.log
    assert tables_of_lock(journal) == ()


def test_a_takeover_that_cannot_fence_leaves_it_to_the_next_process(reconciling: RecordingEngine) -> None:
    reconciling.fails = {"fence"}
    journal = journal_in_memory(reconciling, "shop")
    with (
        pytest.raises(EngineError),
        journal.hold_lock("apply", "bob", "there") as held,
        fence_interrupted_migrations(reconciling, held),
    ):
        raise AssertionError("nothing is changed behind a fence that is not there")
    assert tables_of_lock(journal) == (str(NAME),)
