"""Properties, description and references: what is found, said and foretold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import Change, HazardKind, MetadataCommit, Reversibility, SqlStatement
from icemigrate.changes.reference_sql import CURRENT_SNAPSHOT
from icemigrate.frozen import replace
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.planning.steps import as_steps
from icemigrate.planning.table_difference import DetectedChange, find_difference, remaining_differences
from tests.support.small_tables import table

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def found(before: Table, after: Table) -> tuple[DetectedChange, ...]:
    outcome = find_difference(before, after, CHANGE_KINDS)
    assert remaining_differences(outcome, CHANGE_KINDS) == ()
    return outcome.found


def changes(before: Table, after: Table) -> list[Change]:
    return [f.change for f in found(before, after)]


def one(before: Table, after: Table) -> Change:
    (change,) = changes(before, after)
    return change


def said(before: Table, after: Table) -> list[str]:
    """The statements, grouped as a plan has them, without `ALTER TABLE lake.db.t`."""
    statements = [s for step in as_steps(found(before, after), "lake") for s in step.statements]
    assert all(isinstance(s, SqlStatement) for s in statements)
    return [s.text.removeprefix("ALTER TABLE lake.db.t ") for s in statements if isinstance(s, SqlStatement)]


def with_properties(**properties: str) -> Table:
    return table("id: long", properties=properties)


# Properties and description


def test_properties_are_set_together_and_taken_away_together() -> None:
    before, after = with_properties(a="1", b="2", c="3", d="4"), with_properties(a="1", b="zwei", e="it's")
    assert said(before, after) == [
        "SET TBLPROPERTIES ('b' = 'zwei', 'e' = 'it\\'s')",
        "UNSET TBLPROPERTIES ('c', 'd')",
    ]
    assert [c.describe() for c in changes(before, after)] == [
        "set b (2 → zwei)",
        "set e (unset → it's)",
        "unset c (3 → unset)",
        "unset d (4 → unset)",
    ]
    assert changes(before, after)[0].subject == ("properties", "b")
    assert {c.reversal(before).answer for c in changes(before, after)} == {Reversibility.YES}
    assert said(with_properties(a="1"), with_properties(a="2")) == ["SET TBLPROPERTIES ('a' = '2')"]
    assert said(with_properties(a="1"), with_properties()) == ["UNSET TBLPROPERTIES ('a')"]


def test_a_description() -> None:
    plain, told = with_properties(), with_properties(comment="it's all")
    assert said(plain, told) == ["COMMENT ON TABLE lake.db.t IS 'it\\'s all'"]
    assert said(told, plain) == ["UNSET TBLPROPERTIES ('comment')"]
    assert one(plain, told).subject == ("description",)
    assert one(plain, told).describe() == "describe the table"
    assert one(told, plain).describe() == "remove the description"
    assert one(told, plain).reversal(told).answer is Reversibility.YES


# References


def with_refs(refs: Mapping[str, Ref], snapshot: int | None = 7) -> Table:
    here = None if snapshot is None else Snapshot(snapshot, 0, 1)
    return replace(table("id: long"), refs=dict(refs), snapshot=here)


TAG = Ref("tag", CURRENT_SNAPSHOT, 10 * DAY)
BRANCH = Ref("branch", CURRENT_SNAPSHOT, 90 * MINUTE, 5 * HOUR, 3)


@pytest.mark.parametrize(
    ("name", "ref", "statement", "text"),
    [
        ("release-1", TAG, "CREATE TAG `release-1` RETAIN 10 DAYS", "create tag release-1, kept for 10 days"),
        (
            "audit",
            BRANCH,
            "CREATE BRANCH audit RETAIN 90 MINUTES WITH SNAPSHOT RETENTION 3 SNAPSHOTS 5 HOURS",
            "create branch audit, kept for 90 minutes, at least 3 snapshots, snapshots for 5 hours",
        ),
        ("t", Ref("tag", 5), "CREATE TAG t AS OF VERSION 5", "create tag t at snapshot 5"),
    ],
)
def test_a_reference_is_made(name: str, ref: Ref, statement: str, text: str) -> None:
    before, after = with_refs({}), with_refs({name: ref})
    assert said(before, after) == [statement]
    change = one(before, after)
    assert change.describe() == text
    assert change.apply(before).refs[name].snapshot_id == (5 if ref.snapshot_id == 5 else 7)
    assert (change.hazards(before), list(change.problems(before))) == ((), [])
    assert change.reversal(before).answer is (
        Reversibility.WHILE if ref.kind == "branch" else Reversibility.YES
    )
    assert change.subject == ("branches" if ref.kind == "branch" else "tags", name)


def test_the_tag_of_a_table_without_a_snapshot_is_a_metadata_commit_and_its_branch_is_sql() -> None:
    empty = with_refs({}, None)
    tag, branch = (one(empty, with_refs({"r": ref}, None)) for ref in (TAG, BRANCH))
    assert [type(s) for c in (tag, branch) for s in c.statements(empty, "lake")] == [
        MetadataCommit,
        SqlStatement,
    ]
    assert [*tag.problems(empty), *branch.problems(empty)] == []


def test_ages_are_whole_minutes() -> None:
    before = with_refs({})
    (problem,) = one(before, with_refs({"t": replace(TAG, max_ref_age_ms=1)})).problems(before)
    assert problem.rule == "age-not-in-minutes"


OLD = {"r": replace(BRANCH, snapshot_id=5)}
KEPT = "WITH SNAPSHOT RETENTION"


@pytest.mark.parametrize(
    ("changed", "destructive"),
    [
        ({"max_ref_age_ms": DAY}, False),
        ({"min_snapshots_to_keep": 2}, True),
        ({"max_snapshot_age_ms": HOUR}, True),
        ({"max_ref_age_ms": None, "max_snapshot_age_ms": None, "min_snapshots_to_keep": None}, True),
    ],
)
def test_the_limits_of_a_reference_change_where_it_is_by_then(
    changed: dict[str, Any], destructive: bool
) -> None:
    before, after = with_refs(OLD), with_refs({"r": replace(OLD["r"], **changed)})
    change = one(before, after)
    assert change.statements(before, "lake") == (MetadataCommit(change.describe()),)
    is_changed(change, before, destructive)
    moved = with_refs({"r": replace(OLD["r"], snapshot_id=6)})
    assert change.apply(moved).refs["r"] == replace(after.refs["r"], snapshot_id=6)


@pytest.mark.parametrize(
    ("changed", "statements"),
    [
        (
            {"snapshot_id": 6},
            [f"REPLACE BRANCH r AS OF VERSION 6 RETAIN 90 MINUTES {KEPT} 3 SNAPSHOTS 5 HOURS"],
        ),
        (
            {"snapshot_id": 6, **dict.fromkeys(("max_ref_age_ms", "max_snapshot_age_ms"))},
            ["DROP BRANCH r", f"CREATE BRANCH r AS OF VERSION 6 {KEPT} 3 SNAPSHOTS"],
        ),
    ],
)
def test_a_reference_moves(changed: dict[str, Any], statements: list[str]) -> None:
    before, after = with_refs(OLD), with_refs({"r": replace(OLD["r"], **changed)})
    assert said(before, after) == statements
    change = one(before, after)
    is_changed(change, before, destructive=True)
    assert change.apply(before).refs["r"] == after.refs["r"]


def is_changed(change: Change, before: Table, destructive: bool) -> None:
    assert [(h.kind, h.scope) for h in change.hazards(before)] == (
        [(HazardKind.DESTRUCTIVE, "db.t.r")] if destructive else []
    )
    assert change.reversal(before).answer is Reversibility.WHILE
    assert list(change.problems(before)) == []
    assert change.describe().startswith(("change branch r", "move branch r from snapshot"))


def test_a_reference_that_names_no_snapshot_stays_where_it_is() -> None:
    assert changes(with_refs(OLD), with_refs({"r": BRANCH})) == []


def test_a_branch_stays_a_branch() -> None:
    before = with_refs(OLD)
    (problem,) = one(before, with_refs({"r": TAG})).problems(before)
    assert (problem.rule, problem.subject) == ("reference-kind", ("tags", "r"))


def test_a_reference_is_dropped() -> None:
    before, after = with_refs({"t": Ref("tag", 5)}), with_refs({})
    assert said(before, after) == ["DROP TAG t"]
    change = one(before, after)
    assert [(h.kind, h.scope) for h in change.hazards(before)] == [(HazardKind.DESTRUCTIVE, "db.t.t")]
    assert change.reversal(before).answer is Reversibility.WHILE
    assert (change.describe(), change.subject, list(change.problems(before))) == (
        "drop tag t",
        ("tags", "t"),
        [],
    )


def test_main_is_never_dropped() -> None:
    before = with_refs({"main": Ref("branch", 7)})
    assert [p.rule for p in one(before, with_refs({})).problems(before)] == ["main-branch"]


def test_main_has_limits_of_its_own() -> None:
    bare, limited = Ref("branch", 7), Ref("branch", 7, min_snapshots_to_keep=3)
    before, after = with_refs({"main": bare}), with_refs({"main": limited})
    change = one(before, after)
    assert (change.describe(), list(change.problems(before))) == (
        "change branch main, kept at least 3 snapshots",
        [],
    )
    assert change.apply(before) == after


def test_main_of_a_table_without_rows_begins_with_its_limits() -> None:
    before = with_refs({})
    limited = with_refs({"main": Ref("branch", CURRENT_SNAPSHOT, min_snapshots_to_keep=3)})
    assert said(before, limited) == ["CREATE BRANCH main WITH SNAPSHOT RETENTION 3 SNAPSHOTS"]
    assert one(before, limited).reversal(before).answer is Reversibility.YES
    assert changes(before, with_refs({"main": Ref("branch", CURRENT_SNAPSHOT)})) == []
