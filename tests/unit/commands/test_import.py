"""``import`` on real metadata files of Spark and PyIceberg: what is written, left out, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icemigrate.changes.adopt_table import AdoptTable
from icemigrate.commands.check import check
from icemigrate.commands.import_tables import import_tables
from icemigrate.commands.plan import plan
from icemigrate.diagnostics import Severity
from icemigrate.errors import ExitCode, Mistakes, UsageError
from icemigrate.iceberg.names import TableName
from icemigrate.project import Project, open_project
from icemigrate.results.command_results import ImportResult
from tests.support.embedded_project import Embedded, applied
from tests.support.metadata_samples import sample
from tests.support.sqlite_lakes import CATALOG, Lake, make

TRADES = TableName(("db",), "trades")
ALL = ["db.events", "db.`odd name`", "db.quotes", "db.trades", "db.deep.flexible", "other.trades"]


def project(lake: Lake, *more: str) -> Project:
    folder = lake.database.parent
    lines = [
        "project: market",
        "environments:",
        f"  prod: {{catalog: {{name: {CATALOG}, type: sqlite, uri: {lake.database}}}{''.join(more)}}}",
    ]
    (folder / "icemigrate.yaml").write_text("\n".join(lines), encoding="utf-8")
    return open_project(folder)


@pytest.fixture
def market(tmp_path: Path) -> Project:
    return project(make(tmp_path))


def adopts_only(market: Project) -> None:
    (migration,) = plan(market).plan.migrations
    assert migration.ready
    assert not migration.create_namespaces
    for table in migration.tables:
        assert [type(c.change) for c in table.changes()] == [AdoptTable]
        assert not any(step.statements for step in table.steps)


def written(market: Project, result: ImportResult) -> str:
    assert result.path is not None
    return (market.root / "migrations" / Path(result.path).name).read_text(encoding="utf-8")


def test_all_tables_are_imported_and_planned_to_nothing(market: Project) -> None:
    result = import_tables(market)
    assert list(result.tables) == ALL
    assert written(market, result) == result.content
    assert Path(result.path or "").name == "0001_import_6_tables.yaml"
    # A tag of PyIceberg's with a limit of one millisecond.
    assert result.notes == ("db.`odd name`: a file cannot declare its tags.x, which stays unchanged",)
    adopts_only(market)
    checked = check(market)
    assert checked.tables == 6
    assert not checked.diagnostics
    assert (market.migrations_dir / "icemigrate.lock").exists()


def test_a_table_with_thousands_of_properties_and_tags_is_imported(tmp_path: Path) -> None:
    lake = make(tmp_path, {TRADES: "spark-v2"})
    metadata = sample("spark-v2")
    metadata["properties"] |= {f"team.{n}": "x" for n in range(3_000)}
    tag = {"snapshot-id": metadata["current-snapshot-id"], "type": "tag"}
    metadata["refs"] |= {f"release-{n}": tag for n in range(1_500)}
    lake.files[TRADES].write_text(json.dumps(metadata), encoding="utf-8")
    market = project(lake)
    content = import_tables(market, names=[str(TRADES)]).content
    assert (content.count("team."), content.count("release-")) == (3_000, 1_500)
    adopts_only(market)
    for number in range(2, 52):
        later = market.migrations_dir / f"{number:04d}_later.yaml"
        later.write_text(
            f"tables: [{{name: db.trades, properties: {{team.{number}: y, new.{number}: z}}}}]\n"
        )
    assert not [d for d in check(market, fix=True).diagnostics if d.severity is Severity.ERROR]
    assert all(migration.ready for migration in plan(market).plan.migrations)


def test_what_machines_set_is_no_part_of_the_file(market: Project) -> None:
    content = import_tables(market, dry_run=True).content
    for word in ("owner", "zstd", "schema.name-mapping", "location", "icemigrate.created-by", "main"):
        assert word not in content
    assert "team: café" in content
    assert not market.migrations_dir.exists()


def test_what_is_imported_is_imported_once(market: Project) -> None:
    first = import_tables(market, names=["db.deep"])
    assert first.tables == ("db.deep.flexible",)
    second = import_tables(market, description="The rest")
    assert list(second.tables) == [name for name in ALL if name != "db.deep.flexible"]
    assert Path(second.path or "").name == "0002_the_rest.yaml"
    assert "db.deep.flexible is skipped: 0001 already declares it" in second.notes
    # The version that made a table is told, and not one that spoke of it later.
    later = market.migrations_dir / "0003_later.yaml"
    later.write_text("tables: [{name: db.deep.flexible, description: Later}]\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no table to import in this catalog") as nothing:
        import_tables(market)
    assert "and 3 more" in (nothing.value.hint or "")
    assert "0003" not in (nothing.value.hint or "")
    with pytest.raises(Mistakes) as named:
        import_tables(market, names=["db.deep.flexible"])
    assert "0001 already declares it" in named.value.diagnostics[0].message


def test_names_are_the_catalogs_or_the_files(tmp_path: Path) -> None:
    market = project(make(tmp_path), ", namespaces: {shop: db}")
    content = import_tables(market, names=["shop.trades"], dry_run=True).content
    assert import_tables(market, names=["db.trades"], dry_run=True).content == content
    assert "name: shop.trades" in content
    import_tables(market, names=["shop"], exclude=["shop.deep", "db.`odd name`"])
    adopts_only(market)
    assert len(plan(market).plan.migrations[0].tables) == 3


def test_a_table_that_no_declared_name_leads_to(tmp_path: Path) -> None:
    market = project(make(tmp_path), ", namespaces: {db: elsewhere}")
    result = import_tables(market)
    assert list(result.tables) == ["other.trades"]
    assert any(
        note == "db.trades is skipped: no declared name maps to it: `namespaces:` of environment `prod` "
        "maps its name to `elsewhere.trades`"
        for note in result.notes
    )


def test_overrides_that_explain_a_value_are_subtracted(tmp_path: Path) -> None:
    market = project(make(tmp_path), ', overrides: [{tables: "db.trades", properties: {team: café}}]')
    result = import_tables(market, names=["db.trades", "db.events"])
    assert result.content.count("team: café") == 1
    adopts_only(market)


def test_an_override_that_the_catalog_knows_nothing_of_is_told(tmp_path: Path) -> None:
    market = project(make(tmp_path), ', overrides: [{tables: "db.*", properties: {team: b}}]')
    with pytest.raises(Mistakes) as refused:
        import_tables(market, names=["db.trades", "db.quotes"])
    assert [(d.code, d.message) for d in refused.value.diagnostics] == [
        (
            "override-differs",
            f"`db.{name}`: `overrides:` of environment `prod` set `team` to `b`, but the table has `café`",
        )
        for name in ("quotes", "trades")
    ]


def test_everything_in_the_way_is_told_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    lake = make(tmp_path)
    market = project(lake)
    import_tables(market, names=["db.events"])
    lake.files[TRADES].unlink()
    with pytest.raises(Mistakes, match="nothing was imported") as refused:
        import_tables(market, names=["db.events", "db.trades", "db.qoutes", "db.quotes"])
    assert refused.value.exit_code is ExitCode.FINDINGS
    found = {d.code: d for d in refused.value.diagnostics}
    assert found["cannot-import"].message == "cannot import `db.events`: 0001 already declares it"
    assert found["unknown-table"].hint == "did you mean `db.quotes`?"
    assert "is missing" in found["unreadable-metadata"].message
    assert "--exclude db.trades" in (found["unreadable-metadata"].hint or "")
    assert len(list(market.migrations_dir.glob("*.yaml"))) == 1
    assert import_tables(market, exclude=["db.trades"]).path is not None


def test_what_is_icemigrates_own_is_not_imported(tmp_path: Path) -> None:
    lake = Embedded(tmp_path)
    lake.write("0001_a.yaml", "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n")
    lake.apply()
    lake.engine.tables[TableName(("icemigrate_trash",), "db__u__1")] = lake.engine.tables[
        TableName(("db",), "t")
    ]
    lake.save()
    (tmp_path / "migrations" / "0001_a.yaml").unlink()
    mine = open_project(tmp_path)
    with pytest.raises(UsageError, match="no table to import in icemigrate_trash"):
        import_tables(mine, names=["icemigrate_trash"])
    with pytest.raises(Mistakes) as refused:
        import_tables(mine, names=["icemigrate.history", "icemigrate_trash.db__u__1"])
    assert [d.message.partition(": ")[2] for d in refused.value.diagnostics] == [
        "it is this project's history",
        "it is in the trash: `icemigrate rollback` restores it",
    ]
    # A table that this project made, and whose history and file are lost, may be taken in as it is.
    assert import_tables(mine, dry_run=True).tables == ("db.t",)
    (tmp_path / "icemigrate.yaml").write_text(
        "project: another\nhistory: another.history\n", encoding="utf-8"
    )
    with pytest.raises(UsageError) as nothing:
        import_tables(open_project(tmp_path))
    assert nothing.value.hint is not None
    assert nothing.value.hint.startswith("db.t is skipped: it belongs to project `")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{name: db.good, renamed_from: db.t}", "0002 renames it to `db.good`"),
        ("{name: db.t, drop: true}", "0002 drops it"),
    ],
)
def test_a_table_that_a_pending_file_renames_or_drops_is_not_imported(
    tmp_path: Path, text: str, why: str
) -> None:
    shop = applied(tmp_path, "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n")
    shop.write("0002_later.yaml", f"allow: [destructive, incompatible]\ntables: [{text}]\n")
    with pytest.raises(UsageError) as nothing:
        import_tables(open_project(tmp_path))
    assert nothing.value.hint == f"db.t is skipped: {why}, and is not applied yet"
