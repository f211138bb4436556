"""Views with old column names, applied and rolled back in memory; their plans are in ``tests/cases/``."""

from __future__ import annotations

import pytest

from icemigrate.changes.keep_view import is_kept_view
from icemigrate.execution.failures import Interrupted
from icemigrate.frozen import replace
from icemigrate.iceberg.kept_views import (
    KEPT_VIEW_PREFIX,
    KeptView,
    default_view_name,
    is_kept_view_key,
    kept_view,
    kept_views,
)
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.views import View, ViewQuery
from icemigrate.planning.stages import ChangeTable, PublishTable, migration_stages
from tests.support.memory_lake import Lake, problems
from tests.support.planned_migrations import make_plan

CREATE = "tables: [{name: db.t, columns: [{name: id, type: long}, {name: qty, type: int}]}]"
RENAME = "tables: [{name: db.t, renames: {qty: quantity}, keep_view: 30d}]"
VIEW = TableName(("db",), "t__before_0002")
QUERY = "SELECT id, quantity AS qty FROM local.db.t"
CREATED = {"icemigrate.created-by": "market/0002"}
KEY = "icemigrate.view.t__before_0002"


@pytest.fixture
def lake() -> Lake:
    lake = Lake()
    lake.apply("0001", CREATE)
    return lake


def query(lake: Lake) -> str | None:
    """The query of the view that the tests keep."""
    found = lake.engine.views.get(VIEW)
    return None if found is None else found.queries[0].sql


def view_keys(lake: Lake) -> list[str]:
    return [key for key in lake.table().properties if is_kept_view_key(key)]


def dropped_by_maintenance(lake: Lake) -> None:
    """What ``maintain`` does when the time of the view is over."""
    del lake.engine.views[VIEW]
    lake.by_hand(
        lambda t: replace(t, properties={k: v for k, v in t.properties.items() if not is_kept_view_key(k)})
    )


def test_the_view_is_created_after_the_table_changes_and_its_property_is_set_last(lake: Lake) -> None:
    start = len(lake.engine.log)
    lake.apply("0002", RENAME)
    shown = (text for text in lake.engine.log[start:] if " local.db.t" in text or text == "commit db.t")
    renamed, created, named = shown
    assert renamed == "ALTER TABLE local.db.t RENAME COLUMN qty TO quantity"
    assert created.startswith("CREATE OR REPLACE VIEW local.db.t__before_0002 ")
    assert named == "commit db.t"
    assert query(lake) == QUERY


@pytest.mark.parametrize("stopped_at", ["CREATE OR REPLACE VIEW", "commit db.t"], ids=["view", "property"])
def test_an_interrupted_run_is_continued(lake: Lake, stopped_at: str) -> None:
    lake.engine.fails.add(stopped_at)
    with pytest.raises(Interrupted):
        lake.apply("0002", RENAME)
    assert view_keys(lake) == []
    lake.engine.fails.clear()
    lake.apply("0002", RENAME)
    assert query(lake) == QUERY
    assert view_keys(lake) == [KEY]


def test_a_rollback_drops_the_view_before_the_columns_and_a_redo_creates_it_again(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    start = len(lake.engine.log)
    lake.rollback("0002")
    done = [text for text in lake.engine.log[start:] if "db.t" in text]
    assert [text.split(" local")[0] for text in done] == ["DROP VIEW IF EXISTS", "commit db.t", "commit db.t"]
    assert lake.engine.views == {}
    assert view_keys(lake) == []
    lake.apply("0002", RENAME)
    assert query(lake) == QUERY


def test_a_rollback_leaves_a_view_that_another_client_changed(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    theirs = replace(lake.engine.views[VIEW], queries=(ViewQuery("spark", "SELECT 1 AS qty"),))
    lake.engine.views[VIEW] = theirs
    lake.rollback("0002")
    assert lake.engine.views == {VIEW: theirs}
    assert view_keys(lake) == []
    said = [getattr(event, "text", "") for event in lake.events]
    assert f"view {VIEW} stays: another client created or changed it" in said


def test_a_rollback_of_a_view_that_is_gone_already(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    del lake.engine.views[VIEW]
    lake.rollback("0002")
    assert view_keys(lake) == []
    assert f"view {VIEW} is already dropped" in [getattr(event, "text", "") for event in lake.events]


@pytest.mark.parametrize("creator", ["market/0009", ""])
def test_another_view_of_the_name_is_never_replaced(lake: Lake, creator: str) -> None:
    theirs = View(VIEW, (ViewQuery("spark", QUERY),), properties={"icemigrate.created-by": creator})
    lake.engine.views[VIEW] = theirs
    with pytest.raises(Exception, match="the catalog has another view `db"):
        lake.apply("0002", RENAME)
    assert lake.engine.views == {VIEW: theirs}


def test_a_view_whose_time_is_over_does_not_come_back(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    dropped_by_maintenance(lake)
    lake.apply("0003", "tables: [{name: db.t, renames: {quantity: amount}}]")
    assert lake.engine.views == {}
    for version in ("0003", "0002"):
        planned = lake.rollback(version)
        assert problems(planned) == []
    assert lake.engine.views == {}
    assert [f.name for f in lake.table().schema.fields] == ["id", "qty"]


def test_a_rename_after_the_view_is_undone_with_its_replacement(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    lake.apply("0003", "tables: [{name: db.t, renames: {quantity: amount, id: key}}]")
    assert query(lake) == "SELECT key AS id, amount AS qty FROM local.db.t"
    lake.rollback("0003")
    assert query(lake) == QUERY


def test_a_rename_by_another_client_is_followed_when_it_is_declared(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    renamed = [
        replace(f, name="amount" if f.name == "quantity" else f.name) for f in lake.table().schema.fields
    ]
    lake.by_hand(lambda t: replace(t, schema=replace(t.schema, fields=tuple(renamed))))
    lake.apply("0003", "tables: [{name: db.t, renames: {quantity: amount}}]")
    assert query(lake) == "SELECT id, amount AS qty FROM local.db.t"


def test_a_conflict_about_a_column_of_the_view_is_reported_once(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    renamed = [replace(f, name="amt" if f.name == "quantity" else f.name) for f in lake.table().schema.fields]
    lake.by_hand(lambda t: replace(t, schema=replace(t.schema, fields=tuple(renamed))))
    text = "tables: [{name: db.t, renames: {quantity: gross}}]"
    no_problem_and_a_conflict = r"\[\(\(\), \(Conflict\(fact='db.t:columns.gross.name'"
    with pytest.raises(AssertionError, match=no_problem_and_a_conflict):
        make_plan({"0003": text}, lake.engine.tables, base=lake.state, namespaces=[("db",)])


def test_each_value_of_for_each_has_a_view_of_its_own(lake: Lake) -> None:
    lake.apply("0002", CREATE.replace("db.t", "db.u"))
    lake.apply(
        "0003",
        "tables: [{name: 'db.${x}', for_each: {x: [t, u]}, renames: {qty: quantity},"
        " keep_view: {name: 'old_${x}', max_age: 1d}}]",
    )
    assert sorted(str(name) for name in lake.engine.views) == ["db.old_t", "db.old_u"]


def test_a_rollback_of_an_earlier_rename_replaces_the_view_of_a_later_one(lake: Lake) -> None:
    lake.apply("0002", "tables: [{name: db.t, renames: {qty: quantity}}]")
    lake.apply("0003", "tables: [{name: db.t, renames: {id: key}, keep_view: {name: old, max_age: 30d}}]")
    lake.rollback("0002")
    (view,) = lake.engine.views.values()
    assert view.queries[0].sql == "SELECT key AS id, qty AS quantity FROM local.db.t"
    lake.rollback("0003")
    assert lake.engine.views == {}
    assert [f.name for f in lake.table().schema.fields] == ["id", "qty"]


def test_a_rollback_of_a_move_leaves_no_view_behind(lake: Lake) -> None:
    lake.apply("0002", "tables: [{name: other.t, renamed_from: db.t}]")
    lake.apply("0003", "tables: [{name: other.t, renames: {id: key}, keep_view: 30d}]")
    assert problems(lake.undo("0002")) == ["keep-view-namespace"]


def test_the_last_column_of_a_view_takes_the_view_along(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    lake.apply(
        "0003",
        "allow: [destructive]\n"
        "tables: [{name: db.t, columns: [{name: new, type: int}], drop_columns: [id, quantity]}]",
    )
    assert lake.engine.views == {}
    assert view_keys(lake) == []
    lake.rollback("0003")
    assert query(lake) == QUERY


def test_a_dropped_table_takes_its_views_along_and_returns_with_them(lake: Lake) -> None:
    lake.apply("0002", RENAME)
    lake.apply("0003", "allow: [destructive]\ntables: [{name: db.t, drop: true}]")
    assert lake.engine.views == {}
    lake.rollback("0003")
    assert query(lake) == QUERY
    assert view_keys(lake) == [KEY]


def test_a_view_is_created_when_the_rows_are_published() -> None:
    lake = Lake()
    lake.apply("0001", CREATE)
    lake.write(1)
    text = """
        allow: [destructive]
        tables:
          - name: db.t
            renames: {qty: quantity}
            keep_view: 30d
            backfill: [{set: {quantity: quantity + 1}}]
    """
    plan = make_plan({"0002": text}, lake.engine.tables, base=lake.state)
    stages = migration_stages(plan.migrations[0], "local", "market")
    kinds = {
        type(stage): [c.change.kind for step in stage.steps for c in step.changes]
        for stage in stages
        if isinstance(stage, (ChangeTable, PublishTable))
    }
    assert kinds == {ChangeTable: ["rename_column"], PublishTable: ["keep_view"]}


def test_a_note_names_the_columns_that_the_view_does_not_have(lake: Lake) -> None:
    lake.apply("0002", "allow: [destructive]\ntables: [{name: db.t, columns: [{name: kind, type: string}]}]")
    plan = make_plan(
        {
            "0003": "allow: [destructive]\n"
            "tables: [{name: db.t, renames: {qty: quantity}, drop_columns: [kind], keep_view: 1d}]"
        },
        lake.engine.tables,
        base=lake.state,
    )
    found = [note for m in plan.migrations for t in m.tables for note in t.notes]
    assert found == ["view t__before_0003 does not have kind, which the migration drops"]


def test_a_property_reads_back_and_other_text_is_no_view() -> None:
    view = KeptView("v", "0002", 1000, "t", (("a", "b"), ("c", "c")), "0123")
    assert kept_view(view.key, view.value) == view
    assert view.renamed == (("a", "b"),)
    others = {view.key: view.value, f"{KEPT_VIEW_PREFIX}w": "[]", f"{KEPT_VIEW_PREFIX}x": "{}", "y": ""}
    assert list(kept_views(others)) == [view]


VALUE = '{"version":"0002","max-age-ms":1000,"table":"t","columns":{"a":"b"},"types":"0123"}'


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ('"0002"', '"v2"'),
        ('"0002"', "2"),
        ("1000", "Infinity"),
        ("1000", "1e3"),
        ("1000", "true"),
        ("1000", "0"),
        ("1000", "9" * 30),
        ('"t"', '""'),
        ('{"a":"b"}', "{}"),
        ('{"a":"b"}', '{"a":1}'),
        ('{"a":"b"}', '{"a":""}'),
        ('{"a":"b"}', '{"":"b"}'),
        ('{"a":"b"}', "[]"),
        ('"0123"', "null"),
        (VALUE, "[" * 200_000),
        (VALUE, '"text"'),
    ],
)
def test_another_value_is_no_view(part: str, other: str) -> None:
    assert kept_view(f"{KEPT_VIEW_PREFIX}v", VALUE) is not None
    assert kept_view(f"{KEPT_VIEW_PREFIX}v", VALUE.replace(part, other)) is None


def test_the_default_name_is_short_enough() -> None:
    assert default_view_name(TableName(("db",), "orders"), "0004") == "orders__before_0004"
    long = default_view_name(TableName(("db",), "o" * 300), "0004")
    assert len(long) <= 255
    assert long.endswith("__before_0004")


@pytest.mark.parametrize(
    ("found", "is_own"),
    [
        (View(VIEW, (ViewQuery("spark", QUERY),), properties={"icemigrate.created-by": "market/0002"}), True),
        (
            View(VIEW, (ViewQuery("trino", QUERY),), properties={"icemigrate.created-by": "market/0002"}),
            False,
        ),
        (View(VIEW, (ViewQuery("spark", QUERY),)), False),
        (View(VIEW, problem="forbidden"), False),
    ],
    ids=["own", "another dialect", "without a creator", "not readable"],
)
def test_a_view_is_own_by_its_creator_and_its_query(found: View, is_own: bool) -> None:
    view = KeptView("t__before_0002", "0002", 1000, "t", (("id", "id"), ("qty", "quantity")))
    assert is_kept_view(found, TableName(("db",), "t"), view, "local") is is_own
