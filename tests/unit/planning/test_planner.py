"""Every way in which a migration can meet a table: new, known, renamed, gone, somebody else's, half done."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pytest

from icemigrate.changes.change import Change, HazardKind, MetadataCommit, Reversibility
from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, TRASH_NAMESPACE, Table
from icemigrate.planning.merge import with_catalog_ids
from icemigrate.planning.plan import MigrationPlan, PlannedMigrations, TablePlan
from icemigrate.planning.planner import plan_migrations
from icemigrate.planning.planning_context import PlanningContext
from tests.support.planned_migrations import pending
from tests.support.small_tables import NAME, field_at, ids, spec_of, table, with_columns

U = TableName.parse("db.u")
OTHER = "00000000-0000-4000-8000-00000000000f"
AROUND = PlanningContext(
    "market",
    "lake",
    namespaces=frozenset({("db",)}),
    default_locations={NAME: f"s3://lake/{NAME}", U: f"s3://lake/{U}"},
)
CREATE = "tables: [{name: db.t, columns: [{name: id, type: long}, {name: v, type: int}]}]"
TABLE = table("id: long, v: int")
ADD = "tables: [{name: db.t, columns: [{name: note, type: string}]}]"
BEGUN = replace(AROUND, begun=frozenset({"0007"}))
"""The history knows a run of the migration that has no outcome."""


def known(*tables: Table, former: frozenset[TableName] = frozenset()) -> DeclaredState:
    return DeclaredState({t.name: t for t in tables}, frozenset({("db",)}), former)


def plans(
    files: Mapping[str, str],
    base: DeclaredState = EMPTY_STATE,
    actual: Mapping[TableName, Table | None] | None = None,
    around: PlanningContext = AROUND,
) -> PlannedMigrations:
    return plan_migrations([pending(v, t) for v, t in files.items()], base, actual or {}, around)


def plan(
    text: str,
    base: DeclaredState = EMPTY_STATE,
    actual: Mapping[TableName, Table | None] | None = None,
    around: PlanningContext = AROUND,
) -> MigrationPlan:
    (one,) = plans({"0007": text}, base, actual, around).migrations
    return one


def only(migration: MigrationPlan) -> TablePlan:
    (one,) = migration.tables
    return one


def changes(found: TablePlan) -> list[Change]:
    return [c.change for c in found.changes()]


def kinds(found: TablePlan) -> list[str]:
    return [c.kind for c in changes(found)]


def made(migration: MigrationPlan) -> Table:
    (change,) = changes(only(migration))
    assert isinstance(change, CreateTable)
    return change.made


def run(found: TablePlan, before: Table | None = None) -> Table:
    return reduce(lambda t, c: c.apply(t), changes(found), before or Table(found.name, Schema()))


# First mention


def test_a_table_that_is_not_there_is_created_and_marked_as_ours() -> None:
    migration = plan(CREATE)
    assert migration.ready
    assert kinds(only(migration)) == ["create_table"]
    assert made(migration).properties == {CREATED_BY_PROPERTY: "market/0007"}
    assert made(migration).location is None
    assert only(migration).formerly is None


def test_one_under_a_name_that_was_used_before_gets_a_location_of_its_own() -> None:
    migration = plan(CREATE, known(former=frozenset({NAME})))
    assert made(migration).location == "s3://lake/db.t__0007"


def test_a_declared_location_stays_and_one_that_nobody_knows_is_left_to_the_catalog() -> None:
    former = known(former=frozenset({NAME}))
    said = CREATE.replace("name: db.t", "name: db.t, location: 's3://mine/t'")
    assert made(plan(said, former)).location == "s3://mine/t"
    assert made(plan(CREATE, former, around=PlanningContext("market", "lake"))).location is None


def test_a_new_table_is_held_against_the_rules() -> None:
    migration = plan(CREATE.replace("type: int", "type: timestamp_ns"))
    assert [p.rule for p in migration.problems] == ["type-needs-newer-format"]


def test_a_table_that_is_there_and_not_adopted_is_refused() -> None:
    migration = plan(CREATE, actual={NAME: TABLE})
    (problem,) = migration.problems
    assert (problem.rule, problem.table, problem.subject) == ("table-exists", NAME, ("name",))
    assert problem.hint is not None
    assert "adopt: true" in problem.hint
    assert kinds(only(migration)) == []


def test_one_that_another_version_made_is_no_rest_of_ours() -> None:
    there = replace(TABLE, properties={CREATED_BY_PROPERTY: "another/0007"})
    assert [p.rule for p in plan(CREATE, actual={NAME: there}, around=BEGUN).problems] == ["table-owned"]


@pytest.mark.parametrize("version", ["0006", "0007"])
def test_a_table_of_ours_that_the_history_knows_nothing_of_tells_that_the_history_is_lost(
    version: str,
) -> None:
    there = replace(TABLE, properties={CREATED_BY_PROPERTY: f"market/{version}"})
    migration = plan(CREATE, actual={NAME: there})
    (problem,) = migration.problems
    assert (problem.rule, problem.subject) == ("history-lost", ("name",))
    assert f"`market/{version}`" in problem.message
    assert kinds(only(migration)) == []


# A creation that was cut short

FULL = """
    tables:
      - name: db.t
        description: All of it
        columns: [{name: id, type: long, required: true}, {name: at, type: timestamp}]
        identifier: [id]
        partition_by: [day(at) as on_day]
        sort_by: [at]
"""


def _whole() -> Table:
    return run(only(plan(FULL)))


@pytest.mark.parametrize(
    ("undone", "left"),
    [
        ({}, []),
        ({"sort_order": replace(TABLE.sort_order, fields=())}, ["set_sort_order"]),
        ({"spec": spec_of(TABLE.schema, "")}, ["add_partition_field"]),
        ({"schema": replace(_whole().schema, identifier_ids=frozenset())}, ["set_identifier"]),
        (
            {
                "spec": spec_of(TABLE.schema, ""),
                "sort_order": replace(TABLE.sort_order, fields=()),
                "schema": replace(_whole().schema, identifier_ids=frozenset()),
            },
            ["add_partition_field", "set_sort_order", "set_identifier"],
        ),
    ],
    ids=["done", "no order", "no partitions", "no identifier", "only made"],
)
def test_a_creation_that_was_cut_short_is_finished(undone: dict[str, object], left: list[str]) -> None:
    whole = _whole()
    half = replace(whole, **undone)  # type: ignore[arg-type]
    migration = plan(FULL, actual={NAME: half}, around=BEGUN)
    assert migration.ready
    assert kinds(only(migration)) == left
    assert only(migration).notes[0] == "created by an interrupted run"
    assert run(only(migration), half).schema == whole.schema
    assert run(only(migration), half).sort_order.fields == whole.sort_order.fields


# Adoption

ADOPT = CREATE.replace("name: db.t", "name: db.t, adopt: true")


def test_an_equal_table_is_adopted_without_a_statement() -> None:
    theirs = replace(TABLE, properties={"theirs": "1"})
    planned = plans({"0007": ADOPT}, actual={NAME: theirs})
    (migration,) = planned.migrations
    assert migration.ready
    assert kinds(only(migration)) == ["adopt_table"]
    assert [s.statements for s in only(migration).steps] == [()]
    recorded = planned.state.tables[NAME]
    assert recorded.uuid == TABLE.uuid
    assert recorded.schema.fields == TABLE.schema.fields
    assert recorded.properties == {}, "what nobody declared is not ours"


def test_a_different_table_is_not_adopted_and_every_difference_is_shown() -> None:
    theirs = table("id: long, v: string")
    more = ADOPT.replace("{name: v, type: int}", "{name: v, type: int}, {name: w, type: int}")
    migration = plan(more, actual={NAME: theirs})
    assert {c.fact: (c.wanted, c.actual) for c in migration.conflicts} == {
        "db.t:columns.v.type": ("int", "string"),
        "db.t:columns.w": ("int", "(absent)"),
    }
    assert kinds(only(migration)) == []


def test_a_table_to_adopt_that_is_not_there_is_created() -> None:
    assert kinds(only(plan(ADOPT))) == ["create_table"]


# Renames

RENAME = "tables: [{name: db.u, renamed_from: db.t}]"


def test_a_table_is_renamed_and_then_altered_under_its_new_name() -> None:
    text = "tables: [{name: db.u, renamed_from: db.t, columns: [{name: note, type: string}]}]"
    planned = plans({"0007": text}, known(TABLE), {NAME: TABLE})
    (migration,) = planned.migrations
    found = only(migration)
    assert (found.name, found.declared, found.formerly) == (NAME, U, NAME)
    assert kinds(found) == ["rename_table", "add_column"]
    assert [c.table for c in changes(found)] == [NAME, U]
    assert planned.state.tables.keys() == {U}
    assert planned.state.former == {NAME}


def test_a_rename_that_was_done_by_hand_is_found_done() -> None:
    there = replace(TABLE, name=U)
    found = only(plan(RENAME, known(TABLE), {U: there}))
    assert kinds(found) == []
    assert found.notes == ("already renamed: db.t → db.u",)


def test_a_rename_onto_a_table_that_is_there_is_refused() -> None:
    migration = plan(RENAME, known(TABLE), {NAME: TABLE, U: replace(TABLE, name=U, uuid=OTHER)})
    (problem,) = migration.problems
    assert (problem.rule, problem.subject) == ("table-exists", ("renamed_from",))


def test_a_rename_of_a_table_that_is_nowhere_is_a_conflict() -> None:
    for actual in ({}, {U: replace(TABLE, name=U, uuid=OTHER)}):
        (conflict,) = plan(RENAME, known(TABLE), actual).conflicts
        assert (conflict.fact, conflict.wanted) == ("db.t:name", "table db.u")
        assert conflict.actual == "no such table in the catalog"


# Drops

DROP = "allow: [destructive]\ntables: [{name: db.t, drop: true}]"


def test_a_dropped_table_goes_into_the_trash() -> None:
    planned = plans({"0007": DROP}, known(TABLE), {NAME: TABLE})
    (migration,) = planned.migrations
    (change,) = changes(only(migration))
    assert isinstance(change, DropTable)
    assert change.trash == TableName((TRASH_NAMESPACE,), "db__t__market__0007")
    assert only(migration).wanted is None
    assert migration.ready
    assert planned.state.tables == {}
    assert planned.state.former == {NAME}


def test_a_drop_needs_consent() -> None:
    migration = plan("tables: [{name: db.t, drop: true}]", known(TABLE), {NAME: TABLE})
    assert [(h.kind, h.scope) for h in migration.unconsented] == [(HazardKind.DESTRUCTIVE, "db.t")]
    assert not migration.ready


def test_a_table_that_is_gone_already_needs_no_drop() -> None:
    found = only(plan(DROP, known(TABLE)))
    assert (kinds(found), found.notes) == ([], ("already dropped",))


@pytest.mark.parametrize("text", [DROP, ADD])
def test_a_stranger_under_the_name_is_left_alone(text: str) -> None:
    stranger = replace(TABLE, uuid=OTHER)
    migration = plan(text, known(TABLE), {NAME: stranger})
    (conflict,) = migration.conflicts
    assert (conflict.fact, conflict.base) == ("db.t:name", f"table {TABLE.uuid}")
    assert conflict.actual == f"another table, {OTHER}"
    assert kinds(only(migration)) == []


def test_without_an_identity_on_one_side_the_name_tells() -> None:
    assert kinds(only(plan(ADD, known(replace(TABLE, uuid=None)), {NAME: TABLE}))) == ["add_column"]
    assert kinds(only(plan(ADD, known(TABLE), {NAME: replace(TABLE, uuid=None)}))) == ["add_column"]


def test_a_table_that_vanished_is_a_conflict() -> None:
    (conflict,) = plan(ADD, known(TABLE), {NAME: None}).conflicts
    assert conflict.actual == "no such table in the catalog"


def test_made_again_after_a_drop_in_one_deployment() -> None:
    planned = plans({"0001": CREATE, "0002": DROP, "0003": CREATE})
    assert [kinds(only(m)) for m in planned.migrations] == [
        ["create_table"],
        ["drop_table"],
        ["create_table"],
    ]
    assert made(planned.migrations[2]).location == "s3://lake/db.t__0003"


# One migration after the other


def test_each_migration_is_planned_on_what_the_one_before_it_leaves() -> None:
    rename = "tables: [{name: db.t, renames: {note: remark}}]"
    planned = plans({"0001": CREATE, "0002": ADD, "0003": rename})
    assert [kinds(only(m)) for m in planned.migrations] == [
        ["create_table"],
        ["add_column"],
        ["rename_column"],
    ]
    assert [(f.id, f.name) for f in planned.state.tables[NAME].schema.fields] == [
        (1, "id"),
        (2, "v"),
        (3, "remark"),
    ]


WIDEN = "tables: [{name: db.t, columns: [{name: v, type: long}]}]"


def test_what_follows_a_conflict_is_not_planned_and_says_so() -> None:
    narrowed = table("id: long, v: string")
    moved = "tables: [{name: db.u, renamed_from: db.t}]"
    other = "tables: [{name: db.w, columns: [{name: id, type: long}]}]"
    planned = plans(
        {"0001": WIDEN, "0002": ADD, "0003": moved, "0004": other}, known(TABLE), {NAME: narrowed}
    )
    first, second, third, fourth = planned.migrations
    assert [c.fact for c in first.conflicts] == ["db.t:columns.v.type"]
    note = "not planned: an earlier migration of this table conflicts"
    for blocked in (second, third):
        assert (only(blocked).notes, only(blocked).steps, blocked.conflicts) == ((note,), (), ())
    assert fourth.ready
    assert kinds(only(fourth)) == ["create_table"]


def test_overwriting_a_fact_ends_its_conflict() -> None:
    there = replace(TABLE, properties={"k": "theirs"})
    text = "tables: [{name: db.t, properties: {k: ours}}]"
    (conflict,) = plan(text, known(TABLE), {NAME: there}).conflicts
    around = replace(AROUND, overwrite=frozenset({conflict.fact}))
    migration = plan(text, known(TABLE), {NAME: there}, around)
    assert migration.ready
    assert run(only(migration), there).properties == {"k": "ours"}


def test_a_fact_that_an_interrupted_run_was_to_overwrite_is_a_conflict_in_other_migrations() -> None:
    there, fact = replace(TABLE, properties={"k": "theirs"}), frozenset({"db.t:properties.k"})
    files = {"0001": ADD, "0002": "tables: [{name: db.t, properties: {k: ours}}]"}
    for version, conflicts in (("0001", ["db.t:properties.k"]), ("0002", [])):
        around = replace(AROUND, overwrite_of={version: fact})
        _, second = plans(files, known(TABLE), {NAME: there}, around).migrations
        assert [c.fact for c in second.conflicts] == conflicts


def test_a_name_that_somebody_else_gave_is_refused_before_anything_is_planned() -> None:
    there = with_columns(TABLE, "id: long, note: int", {"note": "v"})
    migration = plan(ADD, known(TABLE), {NAME: there})
    assert [p.rule for p in migration.problems] == ["duplicate-name"]
    assert kinds(only(migration)) == []


# What the environment makes of it

PROD = replace(
    AROUND,
    physical=lambda name: TableName((f"prod_{name.namespace[0]}",), name.name),
    physical_namespace=lambda namespace: (f"prod_{namespace[0]}", *namespace[1:]),
    adjust=lambda t: replace(t, properties={**t.properties, "env": "prod"}),
)
THERE = TableName.parse("prod_db.t")


def test_names_in_the_catalog_are_the_environments_and_in_the_history_the_declared_ones() -> None:
    planned = plans({"0001": CREATE, "0002": ADD}, around=PROD)
    first, second = planned.migrations
    assert first.create_namespaces == (("prod_db",),)
    assert second.create_namespaces == ()
    assert first.namespaces == {("db",)}
    assert (only(first).name, only(first).declared) == (THERE, NAME)
    assert made(first).properties["env"] == "prod"
    assert [c.table for c in changes(only(second))] == [THERE]
    assert planned.state.tables[NAME].name == NAME


def test_overrides_come_with_the_next_migration_of_a_table() -> None:
    there = replace(TABLE, name=THERE)
    found = only(plan(ADD, known(TABLE), {THERE: there}, PROD))
    assert kinds(found) == ["add_column", "set_property"]


def test_a_rename_between_mapped_names() -> None:
    there = replace(TABLE, name=THERE)
    found = only(plan(RENAME, known(TABLE), {THERE: there}, PROD))
    (change,) = changes(found)[:1]
    assert (change.table, found.wanted and found.wanted.name) == (THERE, U)


# Namespaces


def test_declared_namespaces_are_made_once() -> None:
    text = "namespaces: [raw, db]"
    planned = plans({"0001": text, "0002": text})
    assert [m.create_namespaces for m in planned.migrations] == [(("raw",),), ()]
    assert planned.state.namespaces == {("raw",), ("db",)}


def test_a_table_that_moves_brings_its_namespace() -> None:
    text = "tables: [{name: cold.t, renamed_from: db.t}]"
    assert plan(text, known(TABLE), {NAME: TABLE}).create_namespaces == (("cold",),)


# Consent


@pytest.mark.parametrize(
    ("scope", "missing"),
    [("", 0), (" db.t", 0), (" db.t.v", 0), (" db.t.vv", 1), (" db.tt", 1)],
)
def test_consent_may_be_given_for_a_part(scope: str, missing: int) -> None:
    text = f"allow: ['destructive{scope}']\ntables: [{{name: db.t, drop_columns: [v]}}]"
    migration = plan(text, known(TABLE), {NAME: TABLE})
    assert len(migration.unconsented) == missing


def test_consent_to_one_kind_is_none_to_another() -> None:
    text = "allow: [incompatible]\ntables: [{name: db.t, drop_columns: [v]}]"
    assert [h.kind for h in plan(text, known(TABLE), {NAME: TABLE}).unconsented] == [HazardKind.DESTRUCTIVE]


# What is recorded


def test_a_settled_table_has_the_ids_that_came_out() -> None:
    wanted = with_columns(TABLE, "id: long, v: int, s: struct<a: int>")
    wanted = replace(wanted, spec=spec_of(wanted.schema, "v", -1))
    after = with_columns(TABLE, "id: long, v: int, theirs: int, s: struct<a: int>", by_hand=True)
    after = replace(after, spec=spec_of(after.schema, "v", 1007), last_column_id=6, last_partition_id=1007)
    settled = with_catalog_ids(wanted, after)
    assert ids(settled.schema, "s, s.a") == ids(after.schema, "s, s.a")
    assert settled.schema.find(("theirs",)) is None
    assert [f.id for f in settled.spec.fields] == [1007]
    assert (settled.last_column_id, settled.last_partition_id, settled.uuid) == (6, 1007, TABLE.uuid)
    assert with_catalog_ids(wanted, None) == wanted


def test_a_settled_field_is_found_in_its_parent_whatever_that_is_called() -> None:
    base = table("s: struct<a: int>")
    wanted = with_columns(base, "s: struct<a: int, b: int>")
    after = with_columns(base, "theirs: struct<a: int, b: int>", {"theirs": "s"}, by_hand=True)
    assert field_at(with_catalog_ids(wanted, after).schema, "s.b").id == 3


def test_a_plan_that_does_not_lead_there_is_never_shown_as_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof is made with the kinds that there are: without the one that is needed there is none."""
    from icemigrate.changes import CHANGE_KINDS
    from icemigrate.planning import expand_contract

    monkeypatch.setattr(
        expand_contract, "CHANGE_KINDS", tuple(k for k in CHANGE_KINDS if k.kind != "add_column")
    )
    migration = plan(ADD, known(TABLE), {NAME: TABLE})
    (problem,) = migration.problems
    assert problem.rule == "unproved"
    assert "schema" in problem.message
    assert not migration.ready


# The plan as a whole


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (ADD, Reversibility.YES),
        (WIDEN, Reversibility.WHILE),
        ("tables: [{name: db.t, format_version: 3, columns: [{name: v, type: long}]}]", Reversibility.NO),
    ],
)
def test_a_migration_is_as_reversible_as_its_least_reversible_change(
    text: str, answer: Reversibility
) -> None:
    assert plan(text, known(TABLE), {NAME: TABLE}).reversal is answer


def test_a_table_that_spark_cannot_load_is_changed_by_commits_alone() -> None:
    there = table("id: long, v: int, at: timestamp_ns", format_version=3)
    found = only(
        plan(ADD.replace("type: string", "type: string, description: Why"), known(there), {NAME: there})
    )
    (statement,) = found.steps[0].statements
    assert isinstance(statement, MetadataCommit)
    assert statement.summary == "note string (Spark cannot load this table)"


def test_positions_are_of_fields_and_not_of_names() -> None:
    swap = "tables: [{name: db.t, renames: {id: v, v: id}, columns: [{name: v, after: id}]}]"
    found = only(plan(swap, known(TABLE), {NAME: TABLE}))
    assert [(f.id, f.name) for f in run(found, TABLE).schema.fields] == [(2, "id"), (1, "v")]


def test_a_field_that_belongs_to_one_that_somebody_dropped_is_a_conflict() -> None:
    base = table("id: long, s: struct<a: int>")
    there = with_columns(base, "id: long")
    text = "tables: [{name: db.t, columns: [{name: s.b, type: int}], partition_by: [s.a]}]"
    facts = {c.fact: c.actual for c in plan(text, known(base), {NAME: there}).conflicts}
    assert facts == {
        "db.t:columns.s.b": "(absent, with the field that it belongs to)",
        "db.t:partition_by": "unpartitioned, and there is no s.a",
    }


def test_an_identifier_that_a_dead_run_took_off_is_put_on_again() -> None:
    base = table("s: required struct<a: required int>", identifier="s.a")
    text = "tables: [{name: db.t, renames: {s.a: b}}]"
    whole = only(plan(text, known(base), {NAME: base}))
    assert kinds(whole) == ["free_identifier", "rename_column", "set_identifier"]
    for done in range(3):
        half = reduce(lambda t, c: c.apply(t), changes(whole)[:done], base)
        rest = only(plan(text, known(base), {NAME: half}))
        assert kinds(rest) == kinds(whole)[done:]


def test_half_a_spec_is_gone_on_with_and_another_one_is_a_conflict() -> None:
    base = replace(TABLE, spec=spec_of(TABLE.schema, "id, v"))
    text = "tables: [{name: db.t, partition_by: [v, 'bucket(4, id) as b']}]"
    half = replace(base, spec=spec_of(base.schema, "v", 1001))
    assert kinds(only(plan(text, known(base), {NAME: half}))) == ["add_partition_field"]
    other = replace(base, spec=spec_of(base.schema, "bucket[8](id), v"))
    assert [c.fact for c in plan(text, known(base), {NAME: other}).conflicts] == ["db.t:partition_by"]
