"""What files, of main and of branches, have against columns that become required, as a plan tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from icemigrate.catalog.catalog_port import Catalog
from icemigrate.evidence.not_null_checks import with_not_null_problems
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import FieldQuery, MissingValues
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_edits import remove_by_id
from icemigrate.iceberg.table import MAIN_BRANCH, BranchHead, DroppedField, Ref, Snapshot, Table
from icemigrate.planning.plan import Plan
from icemigrate.planning.rename_tracker import RenameTracker
from tests.support.planned_migrations import make_plan
from tests.support.small_tables import NAME, table

NONE, LACKING = MissingValues(0, 0, 0), MissingValues(2, 0, 0, 0, 1, "s3://lake/t/data/1.parquet")
OLD = TableName.parse("db.old")


class Manifests:
    """A catalog whose manifests say the same of every field, by snapshot; what is asked of them is kept."""

    def __init__(self, found: Mapping[int, MissingValues | None]) -> None:
        self.found = found
        self.asked: list[tuple[TableName, int, Mapping[int, FieldQuery]]] = []

    def missing_values(
        self, name: TableName, snapshot_id: int, fields: Mapping[int, FieldQuery]
    ) -> Mapping[int, MissingValues] | None:
        self.asked.append((name, snapshot_id, fields))
        gaps = self.found.get(snapshot_id, NONE)
        return None if gaps is None else dict.fromkeys(fields, gaps)


def with_rows(of: Table, **branches: BranchHead) -> Table:
    """The table with three rows on snapshot 1, and branches that stand elsewhere."""
    refs = {MAIN_BRANCH: 1, **{name: head.snapshot.id for name, head in branches.items()}}
    return replace(
        of,
        snapshot=Snapshot(1, 1, 3),
        refs={name: Ref("branch", at) for name, at in refs.items()},
        heads=branches,
    )


def planned(there: Table, *entries: str, base: Table | None = None) -> Plan:
    """Migrations from 0002 on, each of one table.

    :param base: as the history has it, where that is not as it is.
    """
    files = {
        f"{n:04}": f"{{allow: [incompatible, destructive], tables: [{{{entry}}}]}}"
        for n, entry in enumerate(entries, start=2)
    }
    known = base or replace(there, snapshot=None, refs={}, heads={})
    return make_plan(files, {NAME: there}, "lake", DeclaredState({NAME: known}), [("db",)])


def told(plan: Plan, there: Table, manifests: Manifests) -> list[tuple[str, str, str]]:
    """Version, rule and message."""
    done = with_not_null_problems(plan.migrations, {NAME: there}, cast(Catalog, manifests), "lake")
    rules = [(m.version, p.rule, p.message) for m in done for p in (*m.problems, *m.warnings)]
    return [one for one in rules if one[1] not in ("branch-follows-schema", "rows-left-on-branch")]


REQUIRED = "name: db.t, columns: [{name: v, required: true}]"


@pytest.mark.parametrize(
    ("gaps", "rule", "message"),
    [
        (
            LACKING,
            "required-not-in-every-file",
            "`v` cannot be required: 2 rows are in a file that lacks it (s3://lake/t/data/1.parquet), "
            "and a file that lacks a required field cannot be read",
        ),
        (
            MissingValues(1, 5, 5, 0, 3, "x"),
            "required-not-in-every-file",
            "`v` cannot be required: 1 row is in 3 files that lack it (one is x), and a file that lacks "
            "a required field cannot be read",
        ),
        (
            MissingValues(0, 1, 5),
            "required-holds-nulls",
            "`v` cannot be required: there is a null in it, which Spark would read as 0",
        ),
    ],
)
def test_what_files_of_main_lack_is_refused(gaps: MissingValues, rule: str, message: str) -> None:
    there = with_rows(table("id: long, v: int"))
    manifests = Manifests({1: gaps})
    assert told(planned(there, REQUIRED), there, manifests) == [("0002", rule, message)]
    assert manifests.asked == [(NAME, 1, {2: FieldQuery(frozenset({2}))})]


def test_what_updates_by_merge_on_read_is_told_another_way() -> None:
    hints = []
    for mode in ("copy-on-write", "merge-on-read"):
        there = with_rows(table("id: long, v: int", properties={"write.update.mode": mode}))
        (done,) = with_not_null_problems(
            planned(there, REQUIRED).migrations, {NAME: there}, cast(Catalog, Manifests({1: LACKING})), "lake"
        )
        hints.append(done.problems[0].hint or "")
    assert ["INSERT OVERWRITE" in hint for hint in hints] == [False, True]


@pytest.mark.parametrize("gaps", [MissingValues(0, 0, 3), None])
def test_where_manifests_of_main_do_not_tell_its_rows_are_asked(gaps: MissingValues | None) -> None:
    there = with_rows(table("id: long, v: int"))
    plan = planned(there, REQUIRED)
    assert [work.text for work in plan.migrations[0].tables[0].rows] == [
        "check before: every row has a value of v"
    ]
    assert told(plan, there, Manifests({1: gaps})) == []


@pytest.mark.parametrize("gaps", [MissingValues(0, 0, 3), None, LACKING])
def test_a_required_column_that_comes_back_cannot_be_asked_about(gaps: MissingValues | None) -> None:
    full = table("id: long, q: required int")
    field = full.schema.by_id(2)
    assert field is not None
    gone = replace(full, schema=remove_by_id(full.schema, 2))
    base = replace(gone, dropped=(DroppedField(field, None, ("q",), 1),))
    there = with_rows(gone)
    plan = planned(there, "name: db.t, restore_columns: [q]", base=base)
    ((_, rule, message),) = told(plan, there, Manifests({1: gaps}))
    expected = "may-lack-required" if gaps is not LACKING else "required-not-in-every-file"
    assert (rule, "`q`" in message) == (expected, True)
    # The way that is told.
    optional = "name: db.t, restore_columns: [q], columns: [{name: q, required: false}]"
    assert told(planned(there, optional, base=base), there, Manifests({1: gaps})) == []


def test_where_a_default_is_read_nothing_is_lacking_and_rows_are_asked_for_nulls() -> None:
    plain = table("id: long, v: int", format_version=3)
    fields = tuple(
        replace(f, initial_default=7, write_default=7) if f.name == "v" else f for f in plain.schema.fields
    )
    defaulted = replace(plain, schema=replace(plain.schema, fields=fields))
    there = with_rows(defaulted, one=BranchHead(Snapshot(5, 0, 2), defaulted.schema))
    plan = planned(there, REQUIRED)
    assert [work.text for work in plan.migrations[0].tables[0].rows] == [
        "check before: every row has a value of v"
    ]
    assert told(plan, there, Manifests({1: LACKING, 5: LACKING})) == []
    both = Manifests(dict.fromkeys((1, 5), replace(LACKING, nulls=2)))
    assert [rule for _, rule, _ in told(plan, there, both)] == ["required-holds-nulls", "branch-holds-nulls"]


@pytest.mark.parametrize(
    ("columns", "path", "sought"),
    [
        ("a: struct<x: int, z: string>", "a.z", FieldQuery(frozenset({3}), frozenset({2, 3}))),
        ("a: required struct<x: int, z: string>", "a.z", FieldQuery(frozenset({3}))),
        (
            "a: struct<b: required struct<z: int>, c: int>",
            "a.b.z",
            FieldQuery(frozenset({4}), frozenset({3, 4})),
        ),
    ],
)
def test_what_is_in_a_struct_that_may_be_null_is_asked_with_it(
    columns: str, path: str, sought: FieldQuery
) -> None:
    there = with_rows(table(columns))
    manifests = Manifests({})
    plan = planned(there, f"name: db.t, columns: [{{name: {path}, required: true}}]")
    told(plan, there, manifests)
    ((_, _, fields),) = manifests.asked
    (asked,) = fields.values()
    names = {f.name for _, f in there.schema.walk() if f.id in asked.leaves}
    assert names == {"z"}
    assert len(asked.around) == len(sought.around)


FREED = (
    (
        "name: db.old, renamed_from: db.t",
        "name: db.t, columns: [{name: id, type: long}, {name: v, type: int}]",
    ),
    ("name: db.t, drop: true", "name: db.t, columns: [{name: id, type: long}, {name: v, type: int}]"),
)


@pytest.mark.parametrize("entries", FREED)
def test_a_table_that_gets_a_name_that_was_given_free_is_not_the_one_of_before(
    entries: tuple[str, ...],
) -> None:
    there = with_rows(table("id: long, v: int"))
    plan = planned(there, *entries, REQUIRED)
    manifests = Manifests({1: LACKING})
    assert told(plan, there, manifests) == []
    assert manifests.asked == []
    followed = RenameTracker()
    assert [followed.now(m.tables[0]) for m in plan.migrations] == [NAME, None, None]


def test_a_table_is_followed_over_its_names() -> None:
    there = with_rows(table("id: long, v: int"))
    again = REQUIRED.replace("db.t", "db.new")
    plan = planned(there, "name: db.old, renamed_from: db.t", "name: db.new, renamed_from: db.old", again)
    manifests = Manifests({1: LACKING})
    assert [version for version, _, _ in told(plan, there, manifests)] == ["0004"]
    assert [name for name, _, _ in manifests.asked] == [NAME]


FILL = "name: db.t, backfill: [{set: {v: '1'}, where: v is null}]"
BRANCH = "name: db.t, branches: {audit: {}}"


@pytest.mark.parametrize(
    ("entries", "rules"),
    [
        ((FILL, REQUIRED), []),
        ((BRANCH, REQUIRED), ["branch-lacks-required", "required-not-in-every-file"]),
        ((BRANCH, FILL, REQUIRED), ["branch-lacks-required"]),
        ((FILL, BRANCH, REQUIRED), []),
        ((BRANCH, "name: db.t, branches: {audit: null}", FILL, REQUIRED), []),
    ],
)
def test_branches_that_the_plans_make_have_the_files_of_main(
    entries: tuple[str, ...], rules: list[str]
) -> None:
    there = with_rows(table("id: long, v: int"))
    plan = planned(there, *entries)
    assert [rule for _, rule, _ in told(plan, there, Manifests({1: LACKING}))] == rules


def test_a_branch_that_is_dropped_is_nobodys() -> None:
    there: Any = with_rows(table("id: long, v: int"), one=BranchHead(Snapshot(5, 0, 2)))
    plan = planned(there, "name: db.t, branches: {one: null}, columns: [{name: v, required: true}]")
    assert told(plan, there, Manifests({5: LACKING})) == []


@pytest.mark.parametrize(
    ("gaps", "rules"),
    [
        (MissingValues(0, 0, 3), []),
        (MissingValues(0, 0, 3, silent=1), ["may-lack-required"]),
        (None, ["may-lack-required"]),
    ],
)
def test_rows_whose_struct_is_null_do_not_tell_what_their_file_lacks(
    gaps: MissingValues | None, rules: list[str]
) -> None:
    there = with_rows(table("a: struct<x: int, z: string>"))
    plan = planned(there, "name: db.t, columns: [{name: a.z, required: true}]")
    assert [rule for _, rule, _ in told(plan, there, Manifests({1: gaps}))] == rules
