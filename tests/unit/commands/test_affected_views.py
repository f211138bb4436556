"""Views of the catalog in plans: which of them a change breaks, and whose names they take."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from icemigrate.catalog.capabilities import CAPABILITY_MATRIX
from icemigrate.catalog.sqlite_reader import SqliteCatalog
from icemigrate.cli import main
from icemigrate.commands import affected_views
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback
from icemigrate.diagnostics import Severity
from icemigrate.errors import CatalogError
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.project import open_project
from icemigrate.results.command_results import PlanResult
from icemigrate.sql_impact import view_uses
from tests.support.embedded_project import Embedded

CREATE = """
tables:
  - name: sales.orders
    columns:
      - {name: id, type: int}
      - {name: volume, type: int}
      - {name: note, type: string}
"""
RENAME = "tables: [{name: sales.orders, renames: {volume: quantity}}]\n"
DROP = "allow: [destructive]\ntables:\n  - name: sales.orders\n    drop_columns: [note]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    """A project with a table."""
    shop = Embedded(tmp_path)
    shop.write("0001_create.yaml", CREATE)
    shop.apply()
    return shop


def add_view(
    shop: Embedded, name: str, *queries: tuple[str, str], namespace: str = "sales", **version: Any
) -> Path:
    """What an engine does for ``CREATE VIEW``.

    :param queries: each a dialect and its SQL.
    """
    representations = [{"type": "sql", "dialect": dialect, "sql": sql} for dialect, sql in queries]
    stored = {
        "version-id": 1,
        "default-namespace": [namespace],
        "representations": representations,
        **version,
    }
    file = shop.database.parent / f"view{abs(hash((namespace, name)))}.metadata.json"
    file.write_text(json.dumps({"current-version-id": 1, "versions": [stored]}), encoding="utf-8")
    with closing(sqlite3.connect(shop.database)) as connection, connection:
        row = ("local", namespace, name, str(file), None, "VIEW")
        connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)
    return file


def planned(shop: Embedded) -> PlanResult:
    return plan(open_project(shop.folder))


def findings(result: PlanResult) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in result.diagnostics]


def test_a_plan_names_the_views_that_a_rename_breaks(shop: Embedded) -> None:
    add_view(shop, "daily", ("spark", "SELECT id, volume FROM sales.orders"))
    add_view(shop, "weekly", ("trino", 'SELECT "volume" FROM orders'))
    add_view(shop, "on_view", ("spark", "SELECT volume FROM sales.daily"))
    add_view(shop, "other", ("spark", "SELECT id FROM sales.orders"))
    add_view(shop, "elsewhere", ("spark", "SELECT volume FROM shop.orders"))
    file = shop.write("0002_rename.yaml", RENAME)
    result = planned(shop)
    breaks, may_break = result.diagnostics
    assert (breaks.code, breaks.message) == (
        "view-breaks",
        "renaming `volume` of `sales.orders` to `quantity` breaks views `sales.daily` and `sales.weekly`",
    )
    assert (may_break.code, may_break.message) == (
        "view-may-break",
        "renaming `volume` of `sales.orders` to `quantity` may break view `sales.on_view`",
    )
    assert {d.severity for d in result.diagnostics} == {Severity.WARNING}
    assert breaks.place is not None
    assert (Path(breaks.place.file).name, breaks.place.line) == (file.name, 1)
    assert result.plan.ready


def test_views_on_views_are_named_however_deep_and_also_in_a_circle(shop: Embedded) -> None:
    add_view(shop, "v1", ("spark", "SELECT id, upper(note) AS i FROM sales.orders"))
    add_view(shop, "v2", ("spark", "SELECT i FROM v1"))
    add_view(shop, "v3", ("trino", "WITH v9 AS (SELECT 1 AS i) SELECT v2.i FROM v9 JOIN sales.v2 ON true"))
    add_view(shop, "v4", ("spark", "SELECT i FROM local.sales.V3 UNION ALL SELECT i FROM v5"))
    add_view(shop, "v5", ("spark", "SELECT i FROM v4"))
    add_view(shop, "v9", ("spark", "SELECT 'v1' AS v1"))
    deeper = "breaks view `sales.v1`", "may break views `sales.v2`, `sales.v3`, `sales.v4` and `sales.v5`"
    shop.write("0002_drop.yaml", DROP)
    what = "dropping `note` of `sales.orders`"
    assert findings(planned(shop)) == [
        ("view-breaks", f"{what} {deeper[0]}"),
        ("view-may-break", f"{what} {deeper[1]}"),
    ]
    shop.write("0002_drop.yaml", "allow: [destructive]\ntables: [{name: sales.orders, drop: true}]\n")
    assert findings(planned(shop)) == [
        ("view-breaks", f"dropping table `sales.orders` {deeper[0]}"),
        ("view-may-break", f"dropping table `sales.orders` {deeper[1]}"),
    ]


def test_a_star_may_break(shop: Embedded) -> None:
    add_view(shop, "everything", ("spark", "SELECT * FROM sales.orders"))
    add_view(shop, "counted", ("spark", "SELECT count(*) FROM sales.orders"))
    shop.write("0002_drop.yaml", DROP)
    assert findings(planned(shop)) == [
        ("view-may-break", "dropping `note` of `sales.orders` may break view `sales.everything`")
    ]


def test_each_change_belongs_to_its_migration(shop: Embedded) -> None:
    add_view(shop, "daily", ("spark", "SELECT volume, note FROM sales.orders"))
    shop.write("0002_rename.yaml", RENAME)
    shop.write("0003_drop.yaml", DROP)
    shop.write("0004_drop_table.yaml", "allow: [destructive]\ntables: [{name: sales.orders, drop: true}]\n")
    result = planned(shop)
    assert findings(result) == [("view-breaks", "dropping table `sales.orders` breaks view `sales.daily`")]
    assert [len(m.warnings) for m in result.plan.migrations] == [0, 0, 1]


def test_a_renamed_table_is_found_under_its_old_name(shop: Embedded) -> None:
    add_view(shop, "daily", ("spark", "SELECT volume FROM sales.orders"))
    shop.write("0002_rename.yaml", "tables: [{name: sales.sold, renamed_from: sales.orders}]\n")
    assert findings(planned(shop)) == [
        ("view-breaks", "renaming table `sales.orders` to `sales.sold` breaks view `sales.daily`")
    ]


def test_a_type_that_changes_may_break_a_view(shop: Embedded) -> None:
    add_view(shop, "daily", ("spark", "SELECT volume FROM sales.orders"))
    shop.write(
        "0002_widen.yaml", "tables:\n  - {name: sales.orders, columns: [{name: volume, type: long}]}\n"
    )
    assert findings(planned(shop)) == [
        (
            "view-may-break",
            "changing the type of `volume` of `sales.orders` to `long` may break view `sales.daily`",
        )
    ]


@pytest.mark.parametrize(
    ("column", "warned"),
    [
        ("{name: x, type: int, first: true}", "x"),
        ("{name: volume, after: note}", "volume"),
        ("{name: x, type: int}", None),
        ("{name: x, type: int, after: note}", None),
    ],
)
def test_a_star_is_by_position(shop: Embedded, column: str, warned: str | None) -> None:
    add_view(shop, "everything", ("spark", "SELECT * FROM sales.orders"))
    add_view(shop, "named", ("spark", "SELECT note, volume, x FROM sales.orders"))
    shop.write("0002_move.yaml", f"tables:\n  - {{name: sales.orders, columns: [{column}]}}\n")
    message = f"changing the order of columns around `{warned}` of `sales.orders` may break view"
    expected = [("view-may-break", f"{message} `sales.everything`")] if warned else []
    assert findings(planned(shop)) == expected


def test_what_cannot_be_read_is_named(shop: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    add_view(shop, "broken", ("spark", "SELECT volume FROM (orders"))
    add_view(shop, "unrelated", ("spark", "SELECT ((("))
    add_view(shop, "exotic", ("esql", "FROM orders | KEEP volume"))
    add_view(shop, "both", ("esql", "FROM orders | KEEP volume"), ("spark", "SELECT volume FROM orders"))
    add_view(shop, "lost", ("spark", "SELECT 1")).unlink()
    add_view(shop, "damaged", ("spark", "SELECT 1")).write_text("[]", encoding="utf-8")
    shop.write("0002_rename.yaml", RENAME)
    found = findings(planned(shop))
    why = {code: [m for c, m in found if c == code] for code, _ in found}
    assert why["view-breaks"] == [
        "renaming `volume` of `sales.orders` to `quantity` breaks view `sales.both`"
    ]
    unread = why["view-not-read"]
    assert [m.partition("`")[2].partition("`")[0] for m in unread] == [
        "sales.broken",
        "sales.damaged",
        "sales.exotic",
        "sales.lost",
    ]
    assert "SQLGlot has no dialect `esql`" in unread[2]
    assert "No such file" in unread[3]
    monkeypatch.setattr(view_uses, "is_sqlglot_installed", lambda: False)
    found = findings(planned(shop))
    assert {code for code, _ in found} == {"view-not-read"}
    assert any("`sales.both`" in m and "SQLGlot is not installed" in m for _, m in found)


def test_the_environment_s_names_are_searched(shop: Embedded) -> None:
    (shop.folder / "icemigrate.yaml").write_text(
        "environments:\n  local:\n    namespaces: {sales: dev_sales}\n"
        "    catalog: {name: local, type: sqlite, uri: .icemigrate/catalog.db, warehouse: wh}\n",
        encoding="utf-8",
    )
    for name in list(shop.engine.tables):
        if name.namespace == ("sales",):
            moved = TableName(("dev_sales",), name.name)
            shop.engine.tables[moved] = shop.engine.tables[name]
    shop.save()
    add_view(shop, "daily", ("spark", "SELECT volume FROM orders"), namespace="dev_sales")
    add_view(shop, "prod", ("spark", "SELECT volume FROM sales.orders"), namespace="dev_sales")
    shop.write("0002_rename.yaml", RENAME)
    assert findings(planned(shop)) == [
        (
            "view-breaks",
            "renaming `volume` of `dev_sales.orders` to `quantity` breaks view `dev_sales.daily`",
        )
    ]


def test_nothing_is_asked_where_nothing_is_dropped_or_renamed(
    shop: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    add_view(shop, "daily", ("spark", "SELECT volume FROM sales.orders"))
    real = SqliteCatalog.views
    monkeypatch.setattr(SqliteCatalog, "views", lambda self, one: asked.append(one) or real(self, one))
    shop.write("0002_add.yaml", "tables: [{name: sales.orders, columns: [{name: x, type: int}]}]\n")
    planned(shop)
    assert asked == []
    shop.write("0003_rename.yaml", RENAME)
    shop.write("0004_drop.yaml", DROP)
    planned(shop)
    assert asked == [("sales",)]


def test_a_plan_needs_no_right_to_read_views(shop: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(catalog: SqliteCatalog, namespace: tuple[str, ...]) -> tuple[TableName, ...]:
        raise CatalogError("forbidden")

    monkeypatch.setattr(SqliteCatalog, "views", refuse)
    shop.write("0002_rename.yaml", RENAME)
    shop.write("0003_new.yaml", "tables: [{name: sales.new, columns: [{name: id, type: int}]}]\n")
    result = planned(shop)
    assert findings(result) == [("view-not-read", "the views of `sales` cannot be read: forbidden")]
    assert result.plan.ready


def test_a_catalog_that_lists_no_views_is_not_asked(shop: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(SqliteCatalog, "views", lambda self, one: asked.append(one) or ())
    without = replace(CAPABILITY_MATRIX["sqlite"], views=False)
    monkeypatch.setattr(SqliteCatalog, "capabilities", property(lambda self: without))
    shop.write("0002_new.yaml", "tables: [{name: sales.new, columns: [{name: id, type: int}]}]\n")
    assert planned(shop).plan.ready
    assert asked == []


def test_views_beyond_a_limit_are_counted(shop: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affected_views, "MOST_VIEWS", 12)
    for number in range(14):
        add_view(shop, f"v{number:02}", ("spark", "SELECT volume FROM sales.orders"))
    shop.write("0002_rename.yaml", RENAME)
    unread, breaks = findings(planned(shop))
    assert breaks[1].endswith("`sales.v09` and 2 more")
    assert unread == (
        "view-not-read",
        "view `sales.v12` may use what changes, and was not searched: `sales` has more than 12 views",
    )


@pytest.mark.parametrize(
    "entry",
    [
        "{name: sales.daily, columns: [{name: id, type: int}]}",
        "{name: sales.daily, adopt: true, columns: [{name: id, type: int}]}",
        "{name: sales.daily, renamed_from: sales.orders}",
    ],
)
def test_a_table_cannot_have_the_name_of_a_view(shop: Embedded, entry: str) -> None:
    add_view(shop, "daily", ("spark", "SELECT 1"))
    shop.write("0002_take.yaml", f"tables:\n  - {entry}\n")
    result = planned(shop)
    (problem,) = [d for d in result.diagnostics if d.severity is Severity.ERROR]
    assert problem.code == "view-exists"
    assert problem.message == "table `sales.daily` cannot get this name: the catalog has a view of this name"
    assert problem.place is not None
    assert problem.place.line == 2
    assert not result.plan.ready


def test_a_rollback_names_views_and_refuses_their_names(shop: Embedded) -> None:
    shop.write("0002_rename.yaml", RENAME)
    shop.apply()
    add_view(shop, "daily", ("spark", "SELECT quantity FROM sales.orders"))
    assert findings(plan_rollback(open_project(shop.folder))) == [
        (
            "view-breaks",
            "0002: renaming `quantity` of `sales.orders` to `volume` breaks view `sales.daily`",
        )
    ]
    shop.write("0003_move.yaml", "tables: [{name: sales.sold, renamed_from: sales.orders}]\n")
    shop.apply()
    add_view(shop, "orders", ("spark", "SELECT quantity FROM sales.sold"))
    found = findings(plan_rollback(open_project(shop.folder)))
    assert (
        "view-exists",
        "0003: `sales.orders` cannot be renamed back: `sales.orders` is now a view",
    ) in found


def test_hostile_views_are_shown_in_one_line(shop: Embedded, capsys: pytest.CaptureFixture[str]) -> None:
    add_view(shop, "evil\x1b[2J\nerror: pwned", ("spark", "SELECT volume FROM orders; DROP TABLE orders"))
    add_view(shop, "jinja", ("spark", "SELECT volume, '{{ 1 / 0 }}' FROM orders"))
    add_view(shop, "unclosed\x1b[2J", ("spark\x1b[2J", "orders \x1b]0;title\x07"))
    shop.write("0002_rename.yaml", RENAME)
    assert main(["--project", str(shop.folder), "plan"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert "\x07" not in out
    assert "\nerror: pwned" not in out
    assert "evil" in out
    assert "`sales.jinja`" in out
