"""What went wrong for others who evolve Iceberg tables, as far as planning decides it.

Each test says which scenario of ``reports.md`` it is, a page that is kept beside the project with the shared
cases; ``tests/spark/test_reports_on_spark.py`` has what real tables must show.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pytest

from icemigrate.changes.change import SqlStatement
from icemigrate.errors import StalePlan
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import passing_name
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.planning.plan import MigrationPlan, Plan, PlannedMigrations
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.planning.plan_staleness import require_not_stale
from icemigrate.planning.planner import plan_migrations
from tests.support.planned_migrations import pending
from tests.support.replayed_migrations import entry
from tests.support.shared_plans import AROUND, Judged, plan_text
from tests.support.small_tables import NAME, field_at, table, with_columns

METRICS = "write.metadata.metrics.column."


def state(t: Table) -> DeclaredState:
    return DeclaredState({t.name: t}, frozenset({t.name.namespace}))


def plan(before: Table, text: str, actual: Table | None = None, allow: str = "") -> Judged:
    """One migration of ``before``, planned against it or against what became of it."""
    head = f"allow: [{allow}]\n" if allow else ""
    return plan_text(head + entry(text), state(before), {NAME: actual or before})


def changes(judged: Judged) -> list[str]:
    return [f"{c.change.symbol} {c.text}" for c in judged.table.changes()]


def warnings(judged: Judged) -> set[str]:
    assert judged.plan is not None
    return {w.rule for w in judged.plan.warnings}


@pytest.mark.parametrize("term", ["sales_region as region", "sales_region"])
def test_b01_a_partition_name_blocks_the_column_and_nothing_is_applied(term: str) -> None:
    orders = table("id: long, region: string", partition="identity(region)")
    judged = plan(
        orders,
        f"""
        renames: {{region: sales_region}}
        columns: [{{name: region, type: int}}]
        partition_by: [{term}]
        """,
    )
    assert judged.rules == {"partition-name-is-a-column"}
    assert judged.plan is not None
    assert "`region`" in judged.plan.problems[0].message
    assert not judged.ready


def test_b03_a_change_of_case_goes_over_a_third_name_and_half_of_it_is_recognised() -> None:
    customers = table("id: long, Email: string")
    rename = "renames: {Email: email}"
    judged = plan(customers, rename)
    (step,) = judged.table.steps
    third = passing_name(2)
    assert [s.text for s in step.statements if isinstance(s, SqlStatement)] == [
        f"ALTER TABLE lake.db.t RENAME COLUMN Email TO {third}",
        f"ALTER TABLE lake.db.t RENAME COLUMN {third} TO email",
    ]
    assert field_at(judged.after.schema, "email").id == 2
    half = with_columns(customers, f"id: long, {third}: string", {third: "Email"})
    rest = plan(customers, rename, half)
    assert rest.ready
    assert rest.after.schema == judged.after.schema
    undeclared = plan(
        customers,
        """
        drop_columns: [Email]
        columns: [{name: email, type: string}]
        """,
    )
    assert undeclared.needed == {"destructive"}


def test_b05_an_odd_partition_name_is_quoted_and_warned_of() -> None:
    notes = table("id: long, `😎 mood`: string")
    judged = plan(notes, 'partition_by: ["`😎 mood`"]')
    assert judged.ready
    assert warnings(judged) == {"partition-name-not-portable"}
    (step,) = judged.table.steps
    (statement,) = step.statements
    assert isinstance(statement, SqlStatement)
    assert statement.text == "ALTER TABLE lake.db.t ADD PARTITION FIELD `😎 mood` AS `😎 mood`"
    assert warnings(plan(notes, 'partition_by: ["`😎 mood` as mood"]')) == set()


def test_b07_the_source_of_an_earlier_spec_goes_with_consent_and_a_warning() -> None:
    trips = table("id: long, trip_no: int, km: int", partition="bucket[8](trip_no)")
    made = state(trips)
    replaced = plan_text(entry('partition_by: ["bucket(4, km)"]'), made, {NAME: trips})
    now = replaced.after
    assert trips.spec in now.older_specs
    judged = plan(now, "drop_columns: [trip_no]")
    assert judged.needed == {"destructive"}
    assert warnings(judged) == {"earlier-partition-source-missing"}
    assert plan(now, "drop_columns: [trip_no]", allow="destructive").ready


def test_b09_a_column_of_the_sort_order_goes_after_the_order_or_not_at_all() -> None:
    events = table("k: required string, at: timestamp", sort="at")
    assert plan(events, "drop_columns: [at]").rules == {"sort-source-missing"}
    judged = plan(
        events,
        """
        drop_columns: [at]
        sort_by: []
        """,
    )
    assert judged.needed == {"destructive"}
    assert changes(judged) == ["~ stop sorting", "- at timestamp"]


def test_b11_another_type_is_refused_and_making_anew_says_what_is_lost() -> None:
    bills = table("id: long, amount: int, memo: string")
    assert plan(bills, "columns: [{name: amount, type: string}]").rules == {"no-promotion"}
    judged = plan(
        bills,
        """
        drop_columns: [amount]
        columns: [{name: amount, type: string, after: id}]
        """,
    )
    assert changes(judged) == ["- amount int", "+ amount string, after id"]
    assert judged.plan is not None
    (hazard,) = judged.plan.unconsented
    assert hazard.reason == "the values of `amount` can no longer be read"
    assert [(f.name, f.id) for f in judged.after.schema.fields] == [("id", 1), ("amount", 4), ("memo", 3)]


def test_b13_arguments_of_types_count() -> None:
    narrow, wide = (table(f"price: decimal({p},2), f: fixed[8]") for p in (10, 12))
    wider = plan(narrow, "columns: [{name: price, type: 'decimal(12,2)'}]")
    assert (wider.ready, changes(wider)) == (True, ["~ price decimal(10,2) → decimal(12,2)"])
    assert plan(wide, "columns: [{name: price, type: 'decimal(10,2)'}]").rules == {"no-promotion"}
    assert plan(narrow, "columns: [{name: f, type: 'fixed(16)'}]").rules == {"no-promotion"}
    same = plan(wide, "columns: [{name: price, type: 'decimal(12, 2)'}]")
    assert (same.ready, changes(same)) == (True, [])


def test_b15_a_rename_is_declared_and_one_that_has_happened_is_no_change() -> None:
    staff = table("id: long, fname: string, dept: string")
    undeclared = plan(
        staff,
        """
        drop_columns: [fname]
        columns: [{name: first_name, type: string}]
        """,
    )
    assert undeclared.needed == {"destructive"}
    rename = "renames: {fname: first_name}"
    assert changes(plan(staff, rename)) == ["→ fname → first_name"]
    there = with_columns(staff, "id: long, first_name: string, dept: string", {"first_name": "fname"})
    again = plan(staff, rename, there)
    assert (again.ready, changes(again)) == (True, [])
    assert again.table.notes == ("done already: db.t:columns.first_name.name",)


def test_b17_what_a_table_is_comes_from_its_metadata_alone() -> None:
    """What a Glue-style catalog lists beside them is no side of a plan: there is no way in for it."""
    declared = table("id: long")
    judged = plan(declared, "columns: [{name: id}]")
    assert (judged.ready, changes(judged)) == (True, [])


KILLED = """
    columns: [{name: a, type: int}]
    renames: {b: c}
    drop_columns: [d]
"""


@pytest.mark.parametrize("done", range(4))
def test_b19_a_run_that_was_killed_is_finished_by_the_next_one(done: int) -> None:
    before = table("id: long, b: int, d: int")
    whole = plan(before, KILLED, allow="destructive")
    steps = list(whole.table.changes())
    assert len(steps) == 3
    half = reduce(lambda t, c: c.change.apply(t), steps[:done], before)
    rest = plan(before, KILLED, half, allow="destructive")
    assert rest.ready
    assert [c.text for c in rest.table.changes()] == [c.text for c in steps[done:]]
    assert rest.after.schema == whole.after.schema
    assert field_at(rest.after.schema, "c").id == 2
    assert field_at(rest.after.schema, "a").id == 4


def test_b21_properties_go_with_their_columns() -> None:
    t = table("id: long, a: int")
    new = plan(t, f"columns: [{{name: p, type: string}}]\nproperties: {{{METRICS}p: full}}")
    assert changes(new) == ["+ p string", f"~ set {METRICS}p (unset → full)"]
    named = replace(t, properties={METRICS + "a": "full"})
    moved = plan(named, f"renames: {{a: b}}\nproperties: {{{METRICS}b: full}}")
    assert changes(moved) == ["→ a → b"]
    assert moved.after.properties == {METRICS + "b": "full"}
    assert plan(t, f"properties: {{{METRICS}nosuch: full}}").rules == {"property-without-column"}


LF = "description: one\ntables:\n  - name: db.t\n    columns:\n      - {name: n, type: int}\n"
SAME: Mapping[str, str] = {
    "crlf": LF.replace("\n", "\r\n"),
    "bom": "\ufeff" + LF,
    "order": "tables:\n  - columns:\n      - {type: int, name: n}\n    name: db.t\ndescription: one\n",
    "comments": "# why\n" + LF.replace("int}", "int}  # how many"),
}


def saved(text: str, before: Table) -> Plan:
    done: PlannedMigrations = plan_migrations([pending("0002", text)], state(before), {NAME: before}, AROUND)
    migrations: tuple[MigrationPlan, ...] = done.migrations
    return Plan("cases", "local", "sqlite", "lake", migrations, based_on={NAME: before}, base=state(before))


@pytest.mark.parametrize("other", SAME)
def test_b23_a_saved_plan_does_not_care_how_its_file_is_written(other: str) -> None:
    before = table("id: long")
    kept = parse_plan_file(plan_file_text(saved(LF, before)), "plan.json")
    require_not_stale(kept, saved(SAME[other], before))
    with pytest.raises(StalePlan):
        require_not_stale(kept, saved(SAME[other].replace("int", "long"), before))


def test_b23_the_checksum_is_over_what_is_said() -> None:
    def checksum(text: str) -> str:
        done = read_migration(SourceText("0002.yaml", text), Version.parse("0002"), "m").migration
        assert done is not None
        return done.checksum

    assert {checksum(text) for text in SAME.values()} == {checksum(LF)}


def test_b25_who_reads_a_branch_sees_the_change_and_who_reads_a_tag_does_not() -> None:
    before = table("a: int, b: int")
    refs = {"main": Ref("branch", 7), "b1": Ref("branch", 7), "t1": Ref("tag", 7)}
    written = replace(before, snapshot=Snapshot(7, 0, 3), refs=refs)
    change = """
        renames: {a: aa}
        columns: [{name: c, type: int}]
    """
    judged = plan(before, change, written)
    assert judged.ready
    assert judged.plan is not None
    (told,) = judged.plan.warnings
    assert told.rule == "branch-follows-schema"
    assert "readers of branch `b1` see the changed columns at once" in told.message
    assert "tag `t1` keeps the schema of its snapshot" in told.message
    assert warnings(plan(before, "properties: {k: v}", written)) == set()
    alone = replace(written, refs={name: ref for name, ref in refs.items() if name != "b1"})
    assert warnings(plan(before, change, alone)) == set()
