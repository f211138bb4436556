"""``keep_view`` in commands: what planning refuses, and what retention, status and other commands report."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jsonschema
import pytest

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX
from icemigrate.catalog.sqlite_reader import SqliteCatalog
from icemigrate.changes.keep_view import CHANGED_VIEW
from icemigrate.cli import main
from icemigrate.commands.maintain import still_due
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.errors import ExitCode
from icemigrate.evidence.environment_undo import failed_run_undo_planner
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.failures import Interrupted, Undone
from icemigrate.execution.run import run_plan
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.kept_views import kept_views
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.iceberg.views import View, ViewQuery
from icemigrate.maintenance.context import ActionOrSkipped, MaintenanceAction, MaintenanceContext
from icemigrate.maintenance.expired_views import find_expired_views
from icemigrate.planning.plan import MigrationPlan
from icemigrate.project import open_project
from icemigrate.results.maintain_results import SkippedTable
from icemigrate.spark.view_statements import drop_kept_view
from tests.support.embedded_project import HISTORY, Embedded

if TYPE_CHECKING:
    from icemigrate.spark.spark_engine import SparkEngine

CREATE = "tables: [{name: db.t, columns: [{name: id, type: long}, {name: qty, type: int}]}]\n"
RENAME = "tables:\n  - name: db.t\n    renames: {qty: quantity}\n    keep_view: 30d\n"
RENAME_AGAIN = "tables: [{name: db.t, renames: {quantity: amount}}]\n"
KEEP_NO_VIEW = "tables: [{name: db.t, keep_view: null}]\n"
DROP_TABLE = "allow: [destructive]\ntables: [{name: db.t, drop: true}]\n"
TABLE = TableName(("db",), "t")
VIEW = TableName(("db",), "t__before_0002")
THEIRS = View(VIEW, (ViewQuery("spark", "SELECT 1 AS qty"),), created_ms=0)
CREATED = datetime(1970, 1, 1, tzinfo=timezone.utc)
SCHEMAS = Path(__file__).parents[3] / "schemas"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    """A project with a table, and a pending file that keeps a view."""
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    shop = Embedded(tmp_path)
    shop.write("0001_create.yaml", CREATE)
    shop.apply()
    shop.write("0002_rename.yaml", RENAME)
    return shop


def refusals(shop: Embedded) -> list[tuple[str, str, str]]:
    """Position, code and message of what forbids the plan."""
    found = plan(open_project(shop.folder)).diagnostics
    return [(re.sub(r".*/", "", str(d.place)), d.code, d.message) for d in found]


def json_of(capsys: pytest.CaptureFixture[str], shop: Embedded, *arguments: str) -> dict[str, Any]:
    """What a command prints as JSON, which matches its schema."""
    capsys.readouterr()
    main(["--project", str(shop.folder), *arguments, "--format", "json"])
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    schema = json.loads((SCHEMAS / f"{arguments[0]}.schema.json").read_text("utf-8"))
    jsonschema.validate(printed, schema, format_checker=jsonschema.FormatChecker())
    return printed


def found_by_maintain(shop: Embedded, at: datetime) -> list[ActionOrSkipped]:
    """What ``maintain --views`` finds at a time."""
    with open_environment(open_project(shop.folder), None) as session:
        look = MaintenanceContext(session, session.history(), at, lambda: None)  # type: ignore[arg-type, return-value]
        return list(find_expired_views(look))


def with_view(shop: Embedded, view: View) -> None:
    """What another client creates."""
    shop.engine.views[view.name] = view
    shop.save()


def test_a_plan_shows_the_view(shop: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusals(shop) == []
    assert main(["--project", str(shop.folder), "plan"]) == 0
    assert "+ view t__before_0002 with quantity as qty, for 30d" in capsys.readouterr().out
    assert main(["--project", str(shop.folder), "plan", "--format", "markdown"]) == 0
    assert "quantity as qty, for 30d" in capsys.readouterr().out
    (migration,) = json_of(capsys, shop, "plan")["migrations"]
    kinds = [c["change"]["kind"] for step in migration["tables"][0]["steps"] for c in step["changes"]]
    assert kinds == ["rename_column", "keep_view"]


def test_a_catalog_without_views_is_refused_and_check_accepts(
    shop: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteCatalog, "capabilities", replace(CAPABILITY_MATRIX["sqlite"], views=False))
    message = "catalog `local` (sqlite) has no views, so `db.t__before_0002` cannot be created"
    assert refusals(shop) == [("0002_rename.yaml:4:16", "no-views", message)]
    assert main(["--project", str(shop.folder), "plan"]) == ExitCode.FINDINGS
    assert main(["--project", str(shop.folder), "check", "--fix"]) == ExitCode.OK


def test_the_name_of_a_view_is_refused(shop: Embedded) -> None:
    with_view(shop, THEIRS)
    message = "view `db.t__before_0002` cannot be created: the catalog has another view of this name"
    assert refusals(shop) == [("0002_rename.yaml:4:16", "view-name-taken", message)]


def test_the_name_of_a_table_is_refused(shop: Embedded) -> None:
    shop.engine.tables[VIEW] = replace(shop.engine.tables[TABLE], name=VIEW, uuid=None)
    shop.save()
    message = "view `db.t__before_0002` cannot be created: the catalog has a table of this name"
    assert refusals(shop) == [("0002_rename.yaml:4:16", "view-name-taken", message)]


def test_the_view_of_an_interrupted_run_is_its_own(shop: Embedded) -> None:
    shop.engine.fails.add("commit db.t")
    with pytest.raises(Interrupted):
        shop.apply()
    shop.save()
    assert VIEW in shop.engine.views
    shop.engine.fails.clear()
    assert [code for _, code, _ in refusals(shop)] == ["interrupted"]
    shop.apply()
    assert "icemigrate.view.t__before_0002" in shop.engine.tables[TABLE].properties


def test_a_later_rename_breaks_other_views_and_replaces_its_own(shop: Embedded) -> None:
    shop.apply()
    query = ViewQuery("spark", "SELECT quantity FROM db.t")
    by_hand = View(TableName(("db",), "daily"), (query,), created_ms=0)
    with_view(shop, by_hand)
    shop.write("0003_rename.yaml", RENAME_AGAIN)
    breaks = "renaming `quantity` of `db.t` to `amount` breaks view `db.daily`"
    assert [message for _, _, message in refusals(shop)] == [breaks]
    with_view(shop, replace(shop.engine.views[VIEW], queries=THEIRS.queries))
    taken = "view `db.t__before_0002` cannot be replaced: the catalog has another view of this name"
    assert taken in [message for _, _, message in refusals(shop)]


def test_a_rollback_shows_which_view_stays(shop: Embedded) -> None:
    shop.apply()
    shown = plan_rollback(open_project(shop.folder)).plan.migrations[0].tables[0]
    assert [c.change.kind for c in shown.changes()] == ["drop_kept_view", "rename_column"]
    assert shown.notes == ()
    with_view(shop, replace(shop.engine.views[VIEW], queries=THEIRS.queries))
    shown = plan_rollback(open_project(shop.folder)).plan.migrations[0].tables[0]
    assert shown.notes == (f"view {VIEW} stays: another client created or changed it",)


def test_maintain_drops_a_view_when_its_time_is_over(shop: Embedded) -> None:
    shop.apply()
    (kept,) = found_by_maintain(shop, CREATED + timedelta(days=30) - timedelta(seconds=1))
    reason = "view t__before_0002 is kept until 1970-01-31 00:00:00 UTC"
    assert kept == SkippedTable("views", "db.t", reason)
    (action,) = found_by_maintain(shop, CREATED + timedelta(days=30))
    assert isinstance(action, MaintenanceAction)
    assert action.shown.text == "drop view t__before_0002"
    assert action.run(cast("SparkEngine", shop.engine)) == f"dropped view {VIEW}"
    assert shop.engine.views == {}
    assert shop.engine.log[-1] == "commit db.t"
    assert not any(kept_views(shop.engine.tables[TABLE].properties))


def test_maintain_drops_no_view_that_was_not_shown(shop: Embedded) -> None:
    shop.apply()
    shop.write("0003_rename.yaml", "tables: [{name: db.t, renames: {id: key}, keep_view: 40d}]\n")
    shop.apply()
    first, later = (
        [act for act in found_by_maintain(shop, at) if isinstance(act, MaintenanceAction)]
        for at in (CREATED + timedelta(days=35), CREATED + timedelta(days=45))
    )
    assert still_due(first, first) == (tuple(first), ())
    assert still_due(first, later) == ((), ("db.t: more views would now be dropped than were shown",))


def test_maintain_leaves_a_view_that_another_client_changed(shop: Embedded) -> None:
    shop.apply()
    with_view(shop, replace(shop.engine.views[VIEW], queries=THEIRS.queries))
    (kept,) = found_by_maintain(shop, CREATED + timedelta(days=31))
    assert isinstance(kept, SkippedTable)
    assert kept.is_refused
    (view,) = kept_views(shop.engine.tables[TABLE].properties)
    assert drop_kept_view(shop.engine, TABLE, view) == f"view {VIEW} stays: {CHANGED_VIEW}"
    assert VIEW in shop.engine.views


def test_maintain_forgets_a_view_that_is_gone(shop: Embedded) -> None:
    shop.apply()
    shop.engine.views.clear()
    shop.save()
    (action,) = found_by_maintain(shop, CREATED)
    assert isinstance(action, MaintenanceAction)
    assert action.shown.text == "remove the record of dropped view t__before_0002"
    assert "DROP VIEW" not in (action.shown.statement or "")
    assert action.run(cast("SparkEngine", shop.engine)) == f"view {VIEW} was already dropped"


@pytest.mark.parametrize("created_ms", [-(10**15), 10**15, 10**400], ids=["early", "late", "no date"])
def test_a_view_with_an_impossible_time_stays(
    shop: Embedded, capsys: pytest.CaptureFixture[str], created_ms: int
) -> None:
    shop.apply()
    with_view(shop, replace(shop.engine.views[VIEW], created_ms=created_ms))
    (kept,) = found_by_maintain(shop, CREATED + timedelta(days=31))
    assert isinstance(kept, SkippedTable)
    assert kept.reason == "the time at which view t__before_0002 was created is unknown"
    (table,) = json_of(capsys, shop, "status")["tables"]
    assert table["views"][0]["until"] is None


def test_maintain_leaves_the_view_of_another_project(shop: Embedded) -> None:
    shop.apply()
    shop.edit("db.t", {"icemigrate.owner": "other", "icemigrate.created-by": "other/0001"})
    (kept,) = found_by_maintain(shop, CREATED + timedelta(days=31))
    assert kept == SkippedTable("views", "db.t", "it belongs to project `other`", is_refused=True)


def test_status_shows_until_when_a_view_is_kept(shop: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    shop.apply()
    (table,) = json_of(capsys, shop, "status")["tables"]
    until = {"name": str(VIEW), "version": "0002", "exists": True, "until": "1970-01-31T00:00:00.000Z"}
    assert table["views"] == [until]
    assert not table["differs"]
    main(["--project", str(shop.folder), "status"])
    line = f"db.t: view {VIEW} has the column names from before 0002 until 1970-01-31 00:00:00 UTC."
    assert line in capsys.readouterr().out
    shop.engine.views.clear()
    shop.save()
    main(["--project", str(shop.folder), "status"])
    assert f"db.t: view {VIEW} of 0002 is missing." in capsys.readouterr().out


def test_a_view_is_no_drift(shop: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    shop.apply()
    assert main(["--project", str(shop.folder), "drift"]) == ExitCode.OK
    without = shop.engine.tables[TABLE]
    shop.engine.tables[without.name] = replace(without, properties={})
    shop.save()
    assert main(["--project", str(shop.folder), "drift"]) == ExitCode.OK
    assert "No drift" in capsys.readouterr().out


def test_other_commands_leave_the_view_out(shop: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    shop.apply()
    assert main(["--project", str(shop.folder), "show"]) == ExitCode.OK
    assert "icemigrate.view" not in capsys.readouterr().out
    other = shop.folder / "other"
    other.mkdir()
    catalog = "{type: sqlite, name: local, uri: ../.icemigrate/catalog.db, warehouse: wh}"
    text = f"project: market2\nenvironments: {{local: {{catalog: {catalog}}}}}\ndefault_environment: local\n"
    (other / "icemigrate.yaml").write_text(text, encoding="utf-8")
    main(["--project", str(other), "import", "db.t", "--output", "-"])
    assert "icemigrate.view" not in capsys.readouterr().out
    assert main(["--project", str(shop.folder), "revert", "0002"]) == ExitCode.OK
    (reverted,) = (shop.folder / "migrations").glob("0003*")
    assert "keep_view: null" in reverted.read_text("utf-8")
    reverted.unlink()
    assert main(["--project", str(shop.folder), "squash", "--through", "0002"]) == ExitCode.OK
    (squashed,) = (shop.folder / "migrations").glob("*.yaml")
    assert "view" not in squashed.read_text("utf-8")
    assert refusals(shop) == []


def test_revert_drops_no_view_of_another_migration(
    shop: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.apply()
    shop.write("0003_rename.yaml", "tables: [{name: db.t, renames: {id: key}, keep_view: 1d}]\n")
    shop.apply()
    capsys.readouterr()
    assert main(["--project", str(shop.folder), "revert", "0003"]) == ExitCode.OK
    assert "view t__before_0003 of db.t stays" in "".join(capsys.readouterr())
    (reverted,) = (shop.folder / "migrations").glob("0004*")
    assert "keep_view" not in reverted.read_text("utf-8")
    assert refusals(shop) == []


def test_a_rollback_names_a_way_without_a_file(shop: Embedded) -> None:
    shop.apply()
    shop.write("0003_end.yaml", KEEP_NO_VIEW)
    shop.apply()
    with_view(shop, THEIRS)
    found = plan_rollback(open_project(shop.folder)).diagnostics
    hint = "`icemigrate revert 0003` writes a migration that undoes it without the view"
    assert [(d.code, d.hint) for d in found] == [("view-name-taken", hint)]


@pytest.mark.parametrize("stopped_at", ["CREATE OR REPLACE VIEW", "commit db.t"])
def test_a_rollback_of_an_interrupted_run_drops_its_view(shop: Embedded, stopped_at: str) -> None:
    shop.engine.fails.add(stopped_at)
    with pytest.raises(Interrupted):
        shop.apply()
    shop.save()
    shop.engine.fails.clear()
    todo = plan_rollback(open_project(shop.folder)).plan
    kinds = [c.change.kind for c in todo.migrations[0].changes()]
    dropped = ["drop_kept_view"] if stopped_at == "commit db.t" else []
    assert kinds == [*dropped, "rename_column"]
    shop.engine.expect(todo)
    run_plan(todo, shop.engine, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    assert shop.engine.views == {}


def test_a_rollback_of_an_interrupted_replacement_replaces_the_view_again(shop: Embedded) -> None:
    shop.apply()
    shop.write("0003_rename.yaml", RENAME_AGAIN)
    shop.engine.fails.add("commit db.t")
    with pytest.raises(Interrupted):
        shop.apply()
    shop.save()
    shop.engine.fails.clear()
    (migration,) = plan_rollback(open_project(shop.folder)).plan.migrations
    assert [c.change.kind for c in migration.changes()] == ["rename_column", "replace_kept_view"]
    shop.engine.views.clear()
    shop.save()
    (migration,) = plan_rollback(open_project(shop.folder)).plan.migrations
    assert [c.change.kind for c in migration.changes()] == ["rename_column", "keep_view"]


def apply_and_undo(shop: Embedded) -> None:
    """Apply what is pending; a failure is undone as ``apply`` does it."""
    project = open_project(shop.folder)
    todo = plan(project).plan
    shop.engine.expect(todo)
    with open_environment(project, None) as session:

        def undo_plan(record: UndoRecord) -> MigrationPlan:
            shop.engine.fails.clear()
            shop.save()
            engine = cast("SparkEngine", shop.engine)
            planned = failed_run_undo_planner(session, engine, lambda: session.history().state)(record)
            shop.engine.expect(replace(todo, migrations=(planned,)))
            return planned

        journal = Journal(HistoryWriter(shop.engine, HISTORY, "market"))
        try:
            run_plan(todo, shop.engine, journal, inverse=undo_plan)
        finally:
            shop.save()


@pytest.mark.parametrize("stopped_at", ["CREATE OR REPLACE VIEW", "commit db.t"])
def test_a_failure_after_the_view_is_created_drops_the_view(shop: Embedded, stopped_at: str) -> None:
    shop.engine.fails.add(stopped_at)
    with pytest.raises(Undone):
        apply_and_undo(shop)
    assert shop.engine.views == {}
    assert [f.name for f in shop.engine.tables[TABLE].schema.fields] == ["id", "qty"]


@pytest.mark.parametrize(
    ("text", "stopped_at"),
    [
        (KEEP_NO_VIEW, "commit db.t"),
        (DROP_TABLE, "commit db.t"),
        (DROP_TABLE, "RENAME TO"),
    ],
    ids=["the view", "the table: property", "the table: rename"],
)
def test_a_failure_after_the_view_is_dropped_creates_it_again(
    shop: Embedded, text: str, stopped_at: str
) -> None:
    shop.apply()
    view = shop.engine.views[VIEW]
    shop.write("0003_end.yaml", text)
    shop.engine.fails.add(stopped_at)
    with pytest.raises(Undone) as failed:
        apply_and_undo(shop)
    assert failed.value.undo_statements[0].startswith("CREATE OR REPLACE VIEW")
    assert shop.engine.views == {VIEW: view}
    assert [v.name for v in kept_views(shop.engine.tables[TABLE].properties)] == [VIEW.name]


def test_a_rollback_that_fails_after_its_view_is_dropped_is_interrupted(shop: Embedded) -> None:
    shop.apply()
    todo = plan_rollback(open_project(shop.folder)).plan
    shop.engine.expect(todo)
    shop.engine.fails.add("commit db.t")
    with pytest.raises(Interrupted):
        run_plan(todo, shop.engine, Journal(HistoryWriter(shop.engine, HISTORY, "market")))
    assert shop.engine.views == {}


def make_unreadable(shop: Embedded) -> None:
    """Add a column that Spark cannot load, as another client does it."""
    table = shop.engine.tables[TABLE]
    schema = replace(table.schema, fields=(*table.schema.fields, Field(3, "at", Primitive("timestamp_ns"))))
    shop.engine.tables[TABLE] = replace(table, schema=schema, format_version=3, last_column_id=3)
    shop.save()


@pytest.mark.parametrize("text", [KEEP_NO_VIEW, DROP_TABLE], ids=["view", "table"])
def test_the_view_of_a_table_that_spark_cannot_load_is_dropped(shop: Embedded, text: str) -> None:
    shop.apply()
    make_unreadable(shop)
    shop.write("0003_end.yaml", text)
    assert refusals(shop) == []
    start = len(shop.engine.log)
    shop.apply()
    assert shop.engine.views == {}
    statements = [s for s in shop.engine.log[start:] if "local.db.t" in s]
    assert statements == [f"DROP VIEW IF EXISTS local.{VIEW}"]


def test_a_view_of_a_table_that_spark_cannot_load_is_not_replaced(shop: Embedded) -> None:
    shop.apply()
    make_unreadable(shop)
    shop.write("0003_rename.yaml", RENAME_AGAIN)
    assert [(code, text) for _, code, text in refusals(shop)] == [
        ("keep-view-unreadable", "Spark cannot read `db.t`, so it cannot create view `t__before_0002`")
    ]


def test_maintain_drops_the_view_of_a_table_that_spark_cannot_load(shop: Embedded) -> None:
    shop.apply()
    make_unreadable(shop)
    start = len(shop.engine.log)
    (action,) = found_by_maintain(shop, CREATED + timedelta(days=31))
    assert isinstance(action, MaintenanceAction)
    assert action.run(cast("SparkEngine", shop.engine)) == f"dropped view {VIEW}"
    assert shop.engine.log[start:] == [f"DROP VIEW IF EXISTS local.{VIEW}", "commit db.t"]
