"""Files and history over time: ``squash``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from icemigrate.commands.check import check
from icemigrate.commands.plan import plan
from icemigrate.commands.project_files import load_valid_files
from icemigrate.commands.rebase import rebase
from icemigrate.commands.repair import repair
from icemigrate.commands.rollback import plan_rollback
from icemigrate.commands.show import show
from icemigrate.commands.squash import squash
from icemigrate.commands.status import history, status
from icemigrate.errors import HistoryError, Mistakes, UsageError
from icemigrate.files.parse.json_schemas import schema_text
from icemigrate.files.read.squashed_files import checksums_digest
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Snapshot
from icemigrate.iceberg.undo_record import LastCopy, with_last_copies
from icemigrate.planning.plan import SquashedVersions
from icemigrate.planning.plan_file import parse_plan_file, plan_file_text
from icemigrate.project import open_project
from icemigrate.render.formats import render
from tests.support.embedded_project import HISTORY, Embedded

FILES = {
    "0001_trades.yaml": """\
namespaces: [empty]
tables:
  - name: db.trades
    adopt: true
    columns: [{name: id, type: long}, {name: price, type: "decimal(9,2)"}, {name: old, type: int}]
    partition_by: ["bucket(4, id)"]
""",
    "0002_venue.yaml": """\
allow: [destructive]
tables:
  - name: db.deals
    renamed_from: db.trades
    columns: [{name: venue, type: string, after: id, description: "Where: the place"}]
    drop_columns: [old]
    properties: {team: us}
  - {name: db.gone, columns: [{name: a, type: int}]}
""",
    "0004_gone.yaml": "allow: [destructive]\ntables: [{name: db.gone, drop: true}]\n",
}
LATER = "tables: [{name: db.deals, columns: [{name: size, type: int}]}]\n"
NAME = "0004_squash_0001_to_0004.yaml"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    """Four files: three that will be squashed, and a later one."""
    shop = Embedded(tmp_path / "shop")
    for name, text in FILES.items():
        shop.write(name, text)
    shop.write("0005_size.yaml", LATER)
    return shop


def squashed(shop: Embedded, through: str = "4") -> None:
    squash(open_project(shop.folder), through)


def names(shop: Embedded) -> list[str]:
    return sorted(path.name for path in (shop.folder / "migrations").iterdir())


def rewrite(shop: Embedded, old: str, new: str, name: str = NAME) -> None:
    path = shop.folder / "migrations" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def found(shop: Embedded) -> list[str]:
    """What ``check`` says."""
    return [f"{d.code}: {d.message}" for d in check(open_project(shop.folder)).diagnostics]


def refused(shop: Embedded) -> list[str]:
    """What ``plan`` says against the files."""
    with pytest.raises(Mistakes) as mistakes:
        plan(open_project(shop.folder))
    return [f"{d.code}: {d.message}" for d in mistakes.value.diagnostics]


def valid(result: object, name: str) -> Any:
    """The result as JSON, which fits its schema."""
    document = json.loads(render(result, "json"))
    jsonschema.validate(document, json.loads(schema_text(name)))
    return document


def states(shop: Embedded) -> dict[str, str]:
    found = valid(status(open_project(shop.folder)), "status")["migrations"]
    return {m["version"]: m["state"] for m in found}


def applied(shop: Embedded) -> list[str]:
    return [f"{e.version} {e.standing}" for e in history(open_project(shop.folder)).entries]


def some_applied(shop: Embedded, *files: str) -> None:
    """Apply some of the files, and have all of them in the folder afterwards."""
    folder = shop.folder / "migrations"
    aside = shop.folder / "aside"
    shutil.copytree(folder, aside)
    for name in names(shop):
        if name not in files:
            (folder / name).unlink()
    shop.apply()
    shutil.rmtree(folder)
    aside.rename(folder)


# the file


def test_squash_writes_one_file_that_replaces_the_old_ones(shop: Embedded) -> None:
    project = open_project(shop.folder)
    before, at_four = show(project), show(project, at="0004")
    checksums = [f.checksum for f in load_valid_files(project)][:3]
    result = squash(project, "0004")
    assert [Path(p).name for p in (result.path, *result.removed)] == [NAME, *FILES]
    assert names(shop) == [NAME, "0005_size.yaml"]
    assert (show(project), show(project, at="0004")) == (before, at_four)
    (file, _) = load_valid_files(project)
    assert file.replaces is not None
    assert (file.replaces.first.text, file.replaces.last.text) == ("0001", "0004")
    assert file.replaces.digest == checksums_digest(checksums)
    assert [(v.text, c) for v, c in file.replaces.versions] == list(
        zip(("0001", "0002", "0004"), checksums, strict=True)
    )
    assert [(e.name, e.adopt) for e in file.tables] == [("db.deals", True)]
    assert [n.name for n in file.namespaces] == ["empty"]
    assert found(shop) == []


def test_squash_needs_something_to_squash(shop: Embedded) -> None:
    for through, told in (("0001", "nothing to squash"), ("0003", "no migration"), ("x", "--through x")):
        with pytest.raises(UsageError, match=told):
            squashed(shop, through)
    assert len(names(shop)) == 4


def test_squash_refuses_mistakes_and_writes_nothing(shop: Embedded) -> None:
    shop.write("0005_size.yaml", LATER.replace("int", "nonsense"))
    with pytest.raises(Mistakes):
        squashed(shop)
    assert len(names(shop)) == 4


def test_squash_refuses_what_a_later_file_still_needs(shop: Embedded) -> None:
    shop.write("0006_back.yaml", "tables: [{name: db.deals, restore_columns: [old]}]\n")
    with pytest.raises(Mistakes) as mistakes:
        squashed(shop)
    (told,) = mistakes.value.diagnostics
    assert told.message.startswith("after the squash, this would not fit")
    assert told.place is not None
    assert told.place.file.endswith("0006_back.yaml")
    assert len(names(shop)) == 5
    squashed(shop, "6")
    assert names(shop) == ["0006_squash_0001_to_0006.yaml"]


def test_a_squash_can_be_squashed(shop: Embedded) -> None:
    before = show(open_project(shop.folder))
    squashed(shop)
    squashed(shop, "5")
    assert names(shop) == ["0005_squash_0001_to_0005.yaml"]
    assert show(open_project(shop.folder)) == before
    assert found(shop) == []


# where none, all or some were applied


def test_where_none_was_applied_a_squash_runs(shop: Embedded) -> None:
    squashed(shop)
    todo = plan(open_project(shop.folder)).plan
    assert [(m.version, m.squash) for m in todo.migrations] == [
        ("0004", SquashedVersions("0001")),
        ("0005", None),
    ]
    assert parse_plan_file(plan_file_text(todo), "a file") == todo
    shop.apply()
    assert applied(shop) == ["0004 applied", "0005 applied"]
    assert {str(n) for n in shop.engine.tables} == {str(HISTORY), "db.deals"}
    assert plan(open_project(shop.folder)).is_empty
    assert states(shop) == {"0004": "applied", "0005": "applied"}


def test_where_all_were_applied_a_squash_is_only_recorded(shop: Embedded) -> None:
    shop.apply()
    tables = {n: t for n, t in shop.engine.tables.items() if n != HISTORY}
    statements, rows = list(shop.engine.log), len(shop.engine.rows[HISTORY])
    squashed(shop)
    assert states(shop) == {"0004": "unrecorded", "0005": "applied"}
    assert status(open_project(shop.folder)).version == "0005"
    result = plan(open_project(shop.folder))
    (migration,) = result.plan.migrations
    assert migration.squash == SquashedVersions("0001", ("0001", "0002", "0004"))
    assert migration.tables == ()
    assert parse_plan_file(plan_file_text(result.plan), "a file") == result.plan
    for name in ("text", "markdown"):
        assert "only recorded: it replaces 0001, 0002 and 0004, which are applied" in render(result, name)
    assert valid(result, "plan")["migrations"][0]["squash"]["first"] == "0001"
    assert "1 squash to record" in render(status(open_project(shop.folder)))
    shop.apply()
    assert {n: t for n, t in shop.engine.tables.items() if n != HISTORY} == tables
    assert {*shop.engine.log[len(statements) :]} == {"append icemigrate.history"}
    (row,) = shop.engine.rows[HISTORY][rows:]
    assert (row["version"], row["action"], row["outcome"]) == (4, "squash", "squashed")
    assert row["message"] == "for 0001, 0002, 0004"
    assert applied(shop) == ["0004 applied", "0005 applied"]
    told = valid(history(open_project(shop.folder)), "history")["events"]
    assert [f"{e['event']} {e['version']}" for e in told] == [
        "applied 0001",
        "applied 0002",
        "applied 0004",
        "applied 0005",
        "squashed 0004",
    ]
    assert states(shop) == {"0004": "applied", "0005": "applied"}
    assert plan(open_project(shop.folder)).is_empty


def test_a_squash_covers_versions_whose_files_are_missing(shop: Embedded) -> None:
    shop.apply()
    squashed(shop)
    shop.apply()
    shop.write("0006_more.yaml", LATER.replace("size", "more"))
    shop.apply()
    assert applied(shop) == ["0004 applied", "0005 applied", "0006 applied"]
    # Without the squash they are missed.
    (shop.folder / "migrations" / NAME).unlink()
    assert [text.partition(" (")[0] for text in refused(shop)] == ["missing-file: 0004"]


def test_recorded_and_run_squashes_are_followed_by_the_same(shop: Embedded) -> None:
    shop.apply()
    squashed(shop)
    shop.write("0006_more.yaml", LATER.replace("size", "more"))
    todo = plan(open_project(shop.folder)).plan
    assert [(m.version, m.squash is not None) for m in todo.migrations] == [("0004", True), ("0006", False)]
    assert [m.version for m in plan(open_project(shop.folder), to="4").plan.migrations] == ["0004"]
    shop.apply()
    other = Embedded(shop.folder.parent / "other")
    shutil.copytree(shop.folder / "migrations", other.folder / "migrations")
    other.apply()

    def shape(of: Embedded) -> list[str]:
        return [f"{f.name} {f.type}" for f in of.engine.tables[TableName.parse("db.deals")].schema.fields]

    assert shape(shop) == shape(other)
    assert applied(shop) == applied(other) == ["0004 applied", "0005 applied", "0006 applied"]


def test_where_some_were_applied_a_squash_is_refused_with_the_missing_ones(shop: Embedded) -> None:
    some_applied(shop, "0001_trades.yaml")
    squashed(shop)
    message = "squash-partial: 0004 replaces 0001 to 0004, of which these are not applied here: 0002, 0004"
    assert refused(shop) == [message]
    assert states(shop) == {"0004": "partial", "0005": "pending"}


def test_a_squash_without_a_list_of_versions_is_known_by_its_digest(shop: Embedded) -> None:
    shop.apply()
    squashed(shop)
    path = shop.folder / "migrations" / NAME
    head, _, rest = path.read_text(encoding="utf-8").partition("  versions:")
    path.write_text(head + "tables:" + rest.partition("tables:")[2], encoding="utf-8")
    assert len(plan(open_project(shop.folder)).plan.migrations) == 1
    rewrite(shop, 'to: "0004"\n  digest: ', 'to: "0004"\n  digest: 0')
    (told,) = refused(shop)
    assert "what is applied here (0001, 0002, 0004) is incomplete or differs" in told


def test_a_squash_of_files_that_were_applied_otherwise_is_refused(shop: Embedded) -> None:
    shop.apply()
    # Squashed where one of them had been edited.
    shop.write("0001_trades.yaml", FILES["0001_trades.yaml"].replace("(9,2)", "(11,2)"))
    squashed(shop)
    (told,) = refused(shop)
    assert told.startswith("squash-digest: 0001 was applied with checksum")


def test_a_squash_that_was_edited_is_refused_before_it_is_recorded(shop: Embedded) -> None:
    shop.apply()
    squashed(shop)
    rewrite(shop, "decimal(9,2)", "decimal(11,2)")
    told = refused(shop)
    assert told == [
        "squash-differs: db.deals: columns.price.type: the replaced files say decimal(9,2), "
        "the squash says decimal(11,2)"
    ]


def test_a_recorded_squash_that_is_edited_can_be_repaired_or_not(shop: Embedded) -> None:
    shop.apply()
    squashed(shop)
    shop.apply()
    rewrite(shop, "decimal(9,2)", "decimal(11,2)")
    assert [text.partition(":")[0] for text in refused(shop)] == ["edited-file"]
    with pytest.raises(Mistakes) as mistakes:
        repair(open_project(shop.folder))
    assert ["decimal(11,2)" in d.message for d in mistakes.value.diagnostics] == [True]


def test_what_a_recorded_squash_stands_for_cannot_be_taken_back(shop: Embedded) -> None:
    shop.apply()
    squashed(shop)
    shop.apply()
    with pytest.raises(HistoryError, match="0004 is a squash of 0001 to 0004"):
        plan_rollback(open_project(shop.folder), to="0")
    assert [m.version for m in plan_rollback(open_project(shop.folder)).plan.migrations] == ["0005"]


def keep_values(shop: Embedded, version: str, *copies: LastCopy) -> None:
    """Record that values of a version depend on snapshots, as its rollback does."""
    journal = Journal(HistoryWriter(shop.engine, HISTORY, open_project(shop.folder).name))
    with journal.hold_lock("apply", "you", "here") as held:
        record = held.history().undo_record(Version.parse(version))
        assert record is not None
        held.correct_undo_record(Version.parse(version), with_last_copies(record, copies))
    shop.save()


def test_a_squash_that_would_forget_where_a_rollback_left_values_is_refused(shop: Embedded) -> None:
    shop.apply()
    tag = "icemigrate-shop-0002-before"
    keep_values(shop, "0002", LastCopy(TableName(("db",), "deals"), tag, 7, (3,)))
    squashed(shop)
    assert refused(shop) == [
        f"squash-values: a rollback of 0002 left values in {tag} of `db.deals`, "
        "and only the record of 0002 names them"
    ]
    keep_values(shop, "0002")
    shop.apply()
    assert applied(shop) == ["0004 applied", "0005 applied"]


# what check sees


def test_check_knows_files_that_a_squash_stands_for_and_that_are_still_there(shop: Embedded) -> None:
    squashed(shop)
    shop.write("0002_venue.yaml", FILES["0002_venue.yaml"])
    (told,) = found(shop)
    assert told.startswith("replaced-file: `")
    assert told in refused(shop)


def test_check_knows_a_digest_that_does_not_match_a_file_that_is_still_there(shop: Embedded) -> None:
    squashed(shop)
    shop.write("0002_venue.yaml", FILES["0002_venue.yaml"].replace("team: us", "team: them"))
    (told,) = found(shop)
    assert told.startswith("squash-digest: 0002 differs from the file that")


def test_check_knows_a_late_file_in_the_range_of_a_squash(shop: Embedded) -> None:
    shop.apply()
    squashed(shop)
    text = "tables: [{name: db.late, columns: [{name: id, type: int}]}]\n"
    shop.write("0003_late.yaml", text)
    (told,) = found(shop)
    assert told.startswith("replaced-file: 0003 is not one of the files that")
    # And so does a plan, when the squash is recorded and need not be read any more.
    (shop.folder / "migrations" / "0003_late.yaml").unlink()
    shop.apply()
    shop.write("0003_late.yaml", text)
    (told,) = refused(shop)
    assert told.startswith("replaced-file: 0003 is in the range of a squash that is recorded here")
    renamed = rebase(open_project(shop.folder)).renamed
    assert [Path(r.new).name for r in renamed] == ["0006_late.yaml"]
    assert [m.version for m in plan(open_project(shop.folder)).plan.migrations] == ["0006"]


def test_rebase_leaves_a_squash(shop: Embedded) -> None:
    squashed(shop)
    with pytest.raises(UsageError, match="0004 is a squash"):
        rebase(open_project(shop.folder), ["4"])


def test_check_knows_a_digest_that_is_not_the_one_of_the_list(shop: Embedded) -> None:
    squashed(shop)
    rewrite(shop, "  digest: ", "  digest: 0")
    assert found(shop) == ["squash-digest: the digest does not match the listed files"]


def test_check_knows_a_range_that_does_not_end_at_the_file(shop: Embedded) -> None:
    squashed(shop)
    folder = shop.folder / "migrations"
    (folder / "0005_size.yaml").unlink()
    (folder / NAME).rename(folder / "0005_squash.yaml")
    told = "squash-range: the squash replaces versions up to 0004, but its own version is 0005"
    assert found(shop) == [told]


def test_check_knows_ranges_that_overlap(shop: Embedded) -> None:
    squashed(shop)
    shop.write("0009_more.yaml", LATER.replace("size", "more"))
    shop.write(
        "0008_squash.yaml",
        f'replaces: {{from: "0002", to: "0008", digest: {"0" * 64}}}\n{LATER.replace("size", "other")}',
    )
    told = found(shop)
    assert any(t.startswith("squash-range: ") and "no version may be in two" in t for t in told)


TAGGED = {
    "0001_make.yaml": "tables: [{name: db.t, columns: [{name: a, type: int}]}]\n",
    "0002_more.yaml": "tables: [{name: db.t, columns: [{name: b, type: int}]}]\n",
    "0003_tag.yaml": "tables: [{name: db.t, tags: {t1: {}}}]\n",
    "0004_more.yaml": "tables: [{name: db.t, columns: [{name: c, type: int}]}]\n",
}


def test_a_squash_carries_tags_over(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    project = Embedded(tmp_path)
    for name in ("0001_make.yaml", "0002_more.yaml"):
        project.write(name, TAGGED[name])
    project.apply()
    table = TableName.parse("db.t")
    project.engine.tables[table] = replace(project.engine.tables[table], snapshot=Snapshot(7, 7, 3))
    for name in ("0003_tag.yaml", "0004_more.yaml"):
        project.write(name, TAGGED[name])
    squash(open_project(tmp_path), "4")
    name = "0004_squash_0001_to_0004.yaml"
    assert "t1: {}" in (tmp_path / "migrations" / name).read_text(encoding="utf-8")
    assert check(open_project(tmp_path)).ok
    # A new environment runs the squash, and a later file changes or drops the tag there too.
    shutil.rmtree(tmp_path / ".icemigrate")
    for later in ("{t1: {retention: {max_age: 30d}}}", "{t1: null}"):
        text = f"allow: [destructive]\nbecause: squashed\ntables: [{{name: db.t, tags: {later}}}]\n"
        project.write("0005_later.yaml", text)
        assert check(open_project(tmp_path)).ok
        planned = plan(open_project(tmp_path))
        assert planned.ready, render(planned)
        assert "create tag t1 (a table without a snapshot gets an empty one)" in render(planned)


def test_a_refused_squash_suggests_one_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    project = Embedded(tmp_path)
    for name, text in TAGGED.items():
        project.write(name, text)
    project.write(
        "0005_drop.yaml", "allow: [destructive]\nbecause: x\ntables: [{name: db.t, drop_columns: [b]}]\n"
    )
    project.write("0006_restore.yaml", "tables: [{name: db.t, restore_columns: [b]}]\n")
    with pytest.raises(Mistakes) as error:
        squash(open_project(tmp_path), "5")
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.hint == "nothing was written; `icemigrate squash --through 0004` can be written"
    squash(open_project(tmp_path), "4")
    assert check(open_project(tmp_path)).ok


def test_a_squash_that_nothing_helps_suggests_nothing(tmp_path: Path) -> None:
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    project = Embedded(tmp_path)
    project.write("0001_make.yaml", "tables: [{name: db.t, adopt: true, columns: [{name: a, type: int}]}]\n")
    project.write(
        "0002_fill.yaml", "allow: [destructive]\ntables: [{name: db.t, backfill: [{set: {a: '1'}}]}]\n"
    )
    with pytest.raises(Mistakes) as error:
        squash(open_project(tmp_path), "2")
    assert error.value.diagnostics[0].hint == "nothing was written; keep these files"


@pytest.mark.parametrize(
    ("keys", "pin"),
    [
        ("tags: {golden: {snapshot: 7}}", "snapshot: 7"),
        ("tags: {golden: {as_of: 2026-01-31T00:00:00Z}}", "as_of: 2026-01-31T00:00:00+00:00"),
        ("branches: {audit: {}}, tags: {golden: {branch: audit}}", "branch: audit"),
    ],
)
def test_a_squash_declares_the_snapshots_of_branches_and_tags(shop: Embedded, keys: str, pin: str) -> None:
    shop.write("0003_pin.yaml", f"tables: [{{name: db.deals, {keys}}}]\n")
    result = squash(open_project(shop.folder), "4")
    assert pin in (shop.folder / result.path).read_text(encoding="utf-8").replace('"', "").replace("'", "")


def test_a_squash_that_creates_the_table_of_a_moved_tag_is_refused(shop: Embedded) -> None:
    shop.write("0001_trades.yaml", FILES["0001_trades.yaml"].replace("    adopt: true\n", ""))
    shop.write("0003_pin.yaml", "tables: [{name: db.deals, tags: {golden: {snapshot: 7}}}]\n")
    with pytest.raises(Mistakes) as mistakes:
        squash(open_project(shop.folder), "4")
    assert [d.message.partition(": ")[2] for d in mistakes.value.diagnostics][:1] == [
        "db.deals: tags.golden.snapshot: files 7, squash (absent)"
    ]
