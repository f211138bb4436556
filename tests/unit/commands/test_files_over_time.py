"""Files and history over time: edited, missing and late files, ``repair`` and ``rebase``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icemigrate.commands.plan import plan
from icemigrate.commands.project_files import load_valid_files
from icemigrate.commands.rebase import rebase
from icemigrate.commands.repair import record_repairs, repair
from icemigrate.commands.status import history, status
from icemigrate.errors import IcemigrateError, Mistakes, UsageError
from icemigrate.execution.environment_session import open_environment
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import Journal
from icemigrate.iceberg.names import TableName
from icemigrate.project import open_project
from icemigrate.render.status_text import status_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from icemigrate.results.command_results import PlanResult, RepairedMigration
from tests.support.embedded_project import HISTORY, Embedded

TRADES = (
    "tables: [{name: db.trades, columns: [{name: id, type: long}, {name: price, type: 'decimal(9,2)'}]}]\n"
)
VENUE = "tables: [{name: db.trades, columns: [{name: venue, type: string}]}]\n"
QUOTES = "tables: [{name: db.quotes, columns: [{name: id, type: long}]}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    """Two migrations that are applied: a table, and a column of it."""
    shop = Embedded(tmp_path)
    shop.write("0001_trades.yaml", TRADES)
    shop.write("0003_venue.yaml", VENUE)
    shop.apply()
    return shop


def planned(shop: Embedded) -> PlanResult:
    return plan(open_project(shop.folder))


def refused(shop: Embedded) -> list[str]:
    """What ``plan`` says against the files."""
    with pytest.raises(Mistakes) as mistakes:
        planned(shop)
    return [f"{d.code}: {d.message}" for d in mistakes.value.diagnostics]


def versions(result: PlanResult) -> list[str]:
    return [m.version for m in result.plan.migrations]


def states(shop: Embedded) -> dict[str, str]:
    return {m.version: m.state for m in status(open_project(shop.folder)).migrations}


def repaired(shop: Embedded) -> tuple[RepairedMigration, ...]:
    """``repair``, its rows written by the engine in memory."""
    project = open_project(shop.folder)
    with open_environment(project, None) as world:
        journal = Journal(HistoryWriter(shop.engine, HISTORY, project.name), timeout_s=0)
        done = record_repairs(world, load_valid_files(project), journal)
    shop.save()
    return done


def not_repaired(shop: Embedded) -> list[str]:
    """What ``repair`` says against the files, before it starts anything."""
    with pytest.raises(Mistakes) as mistakes:
        repair(open_project(shop.folder), on_start=lambda: pytest.fail("Spark must not start"))
    return [d.message.partition(": ")[2] for d in mistakes.value.diagnostics]


def checksums(shop: Embedded) -> dict[str, str]:
    return {e.version: e.checksum for e in history(open_project(shop.folder)).entries}


# edited files


def test_an_edited_file_is_refused_with_what_differs(shop: Embedded) -> None:
    shop.write("0001_trades.yaml", TRADES.replace("long", "int"))
    assert refused(shop) == [
        "edited-file: 0001 changed after it was applied: "
        "db.trades: columns.id.type: applied was long, the file says int"
    ]
    with pytest.raises(Mistakes) as mistakes:
        planned(shop)
    (hint,) = [d.hint for d in mistakes.value.diagnostics]
    assert hint == "restore the file, and put the change into a new migration"
    assert states(shop) == {"0001": "edited", "0003": "applied"}


def test_comments_layout_description_and_because_are_no_edit(shop: Embedded) -> None:
    text = """\
# Written anew
because: it reads better
description: The trades
tables:
  - columns:
      - {type: long, name: "id"}
      - name: price
        type: decimal(9,2)
    name: db.trades
"""
    shop.write("0001_trades.yaml", text)
    assert planned(shop).is_empty
    assert states(shop) == {"0001": "applied", "0003": "applied"}


def test_repair_accepts_what_declares_the_same(shop: Embedded) -> None:
    was, rows = checksums(shop), len(shop.engine.rows[HISTORY])
    before = history(open_project(shop.folder)).entries
    # An order that is there already, a type written otherwise, and a consent that nothing needs.
    same = TRADES.replace("{name: price,", "{name: price, after: id,").replace("(9,2)", "(9, 2)")
    shop.write("0001_trades.yaml", f"allow: [destructive]\n{same}")
    assert refused(shop) == ["edited-file: 0001 changed after it was applied, and still declares the same"]
    with pytest.raises(Mistakes) as mistakes:
        planned(shop)
    (hint,) = [d.hint for d in mistakes.value.diagnostics]
    assert hint == "restore the file, or accept the edit with `icemigrate repair`"
    (done,) = repaired(shop)
    assert (done.version, done.was, done.now) == ("0001", was["0001"], checksums(shop)["0001"])
    assert done.was != done.now
    assert planned(shop).is_empty
    # Superseded by a new row; when and by whom it was applied stays.
    (row,) = shop.engine.rows[HISTORY][rows:]
    assert (row["version"], row["action"], row["outcome"]) == (1, "repair", "repaired")
    assert (row["checksum"], was["0001"] in row["message"]) == (done.now, True)
    after = history(open_project(shop.folder)).entries
    assert [(e.version, e.at, e.by, e.standing) for e in after] == [
        (e.version, e.at, e.by, e.standing) for e in before
    ]
    assert [e.event for e in history(open_project(shop.folder)).events] == ["applied", "applied", "repaired"]
    assert repair(open_project(shop.folder)).repaired == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("long", "int", "columns.id.type: applied was long, the file says int"),
        ("(9,2)", "(11,2)", "columns.price.type: applied was decimal(9,2), the file says decimal(11,2)"),
        ("name: price", "name: cost", "columns.price: applied was type decimal(9,2), the file says (absent)"),
        ("trades,", "trades, properties: {a: b},", "properties: applied was (absent), the file says a b"),
        (
            "name: price,",
            "name: price, first: true,",
            "order of columns: applied was [id, price], the file says [price, id]",
        ),
        ("db.trades", "db.deals", "only the applied migration declares it"),
    ],
)
def test_repair_says_what_differs(shop: Embedded, old: str, new: str, told: str) -> None:
    assert old in TRADES
    shop.write("0001_trades.yaml", TRADES.replace(old, new))
    was = dict(shop.engine.tables)
    assert f"db.trades: {told}" in not_repaired(shop)
    assert dict(shop.engine.tables) == was


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("]\nnamespaces: [more]\n", "the namespace more is new"),
        (", {name: db.more, columns: [{name: a, type: int}]}]\n", "db.more: only the file declares it"),
    ],
)
def test_repair_says_what_is_new(shop: Embedded, more: str, told: str) -> None:
    shop.write("0001_trades.yaml", TRADES.removesuffix("]\n") + more)
    assert not_repaired(shop) == [told]


def test_repair_knows_a_rename_from_a_column_made_anew(shop: Embedded) -> None:
    shop.write("0004_cost.yaml", "tables: [{name: db.trades, renames: {price: cost}}]\n")
    shop.apply()
    anew = "drop_columns: [price], columns: [{name: cost, type: 'decimal(9,2)', after: id}]"
    shop.write("0004_cost.yaml", f"allow: [destructive]\ntables: [{{name: db.trades, {anew}}}]\n")
    assert not_repaired(shop) == ["db.trades: columns.cost is another field, with other values"]


def test_repair_holds_every_version_against_what_was_applied_then(shop: Embedded) -> None:
    # In the end the same would be declared, but not after the first version.
    shop.write("0001_trades.yaml", TRADES.replace("}]}]", "}, {name: venue, type: string}]}]"))
    told = not_repaired(shop)
    assert told == ["db.trades: columns.venue: applied was (absent), the file says type string"]


def test_all_or_nothing_is_repaired(shop: Embedded) -> None:
    was = checksums(shop)
    shop.write("0001_trades.yaml", f"allow: [destructive]\n{TRADES}")
    shop.write("0003_venue.yaml", VENUE.replace("string", "int"))
    not_repaired(shop)
    assert checksums(shop) == was


def test_base_comes_from_the_history_and_never_from_edited_files(shop: Embedded) -> None:
    recorded = {f.name: f.id for f in shop.engine.tables[TableName.parse("db.trades")].schema.fields}
    shop.write("0001_trades.yaml", f"allow: [destructive]\n{TRADES}")
    repaired(shop)
    shop.write("0004_more.yaml", "tables: [{name: db.trades, columns: [{name: more, type: int}]}]\n")
    base = planned(shop).plan.base.tables[TableName.parse("db.trades")]
    assert {f.name: f.id for f in base.schema.fields} == recorded
    # A file that declares something else is never folded: it is refused, whatever is pending.
    shop.write("0001_trades.yaml", TRADES.replace("long", "int"))
    assert [text.partition(":")[0] for text in refused(shop)] == ["edited-file"]


# files of another branch

CUSTOMERS = "description: Customers move\ntables: [{name: db.customers, columns: [{name: id, type: long}]}]\n"
ITEMS = "tables: [{name: db.items, columns: [{name: id, type: long}]}]\n"


@pytest.fixture
def collision(shop: Embedded) -> Embedded:
    """A file that was never applied, on a branch without the applied file of its version."""
    shop.write("0004_customers.yaml", CUSTOMERS)
    shop.apply()
    (shop.folder / "migrations" / "0004_customers.yaml").unlink()
    shop.write("0004_items.yaml", ITEMS)
    return shop


def test_a_version_that_is_applied_from_another_file_is_named_with_its_description(
    collision: Embedded,
) -> None:
    (record,) = [e for e in history(open_project(collision.folder)).entries if e.version == "0004"]
    with pytest.raises(Mistakes) as mistakes:
        planned(collision)
    (found,) = mistakes.value.diagnostics
    assert found.code == "version-applied"
    assert found.message.startswith(
        f'version 0004 is applied from another file: "Customers move", by {record.by} at '
    )
    assert found.message.endswith("; the content of `0004_items.yaml` was never applied")
    assert found.hint is not None
    assert "merge the branch that has the other file, then run `icemigrate rebase`" in found.hint
    with pytest.raises(Mistakes) as refusals:
        repair(open_project(collision.folder), on_start=lambda: pytest.fail("Spark must not start"))
    assert refusals.value.diagnostics == (found,)


def test_status_describes_the_applied_file_and_lists_no_table_of_the_other_one(collision: Embedded) -> None:
    found = status(open_project(collision.folder))
    (row,) = [m for m in found.migrations if m.version == "0004"]
    assert (row.state, row.description, row.is_other_file) == ("edited", "Customers move", True)
    assert {t.table: (t.version, t.exists, t.note) for t in found.tables} == {
        "db.customers": ("0004", True, None),
        "db.trades": ("0003", True, None),
    }
    text = status_text(found, PLAIN_STYLE)
    assert "0004     other file  " in text
    assert "0004 is applied from another file than the one here: merge the branch that has it" in text


@pytest.mark.parametrize("chosen", [[], ["0004_items.yaml"], ["4"]])
def test_rebase_names_the_other_file_until_its_branch_is_merged(
    collision: Embedded, chosen: list[str]
) -> None:
    project = open_project(collision.folder)
    with pytest.raises(UsageError, match='version 0004 is applied from another file: "Customers move"'):
        rebase(project, chosen)
    collision.write("0004_customers.yaml", CUSTOMERS)
    names = [Path(one.new).name for one in rebase(project, [c for c in chosen if c != "4"]).renamed]
    assert names == ["0005_items.yaml"]
    assert versions(planned(collision)) == ["0005"]


def test_an_edited_file_with_another_description_can_be_repaired(shop: Embedded) -> None:
    shop.write("0001_trades.yaml", f"description: The trades\nallow: [destructive]\n{TRADES}")
    assert refused(shop) == ["edited-file: 0001 changed after it was applied, and still declares the same"]
    (row,) = [m for m in status(open_project(shop.folder)).migrations if m.version == "0001"]
    assert (row.state, row.is_other_file) == ("edited", False)


# missing files


def test_a_missing_file_of_an_applied_version_is_an_error(shop: Embedded) -> None:
    (shop.folder / "migrations" / "0003_venue.yaml").unlink()
    assert refused(shop) == ["missing-file: 0003 (venue) is applied, but its file is missing"]
    assert states(shop) == {"0001": "applied", "0003": "missing"}
    (table,) = status(open_project(shop.folder)).tables
    assert (table.version, table.exists, table.note) == ("0003", True, None)
    with pytest.raises(Mistakes) as mistakes:
        planned(shop)
    (hint,) = [d.hint or "" for d in mistakes.value.diagnostics]
    (record,) = [e for e in history(open_project(shop.folder)).entries if e.version == "0003"]
    assert hint.startswith(f"pull the branch that has it (applied by {record.by} at ")
    assert hint.endswith("), or restore the file from version control")


# late files

TOUCHES = "a later migration changed the same facts:"


@pytest.mark.parametrize(
    "text",
    [
        QUOTES,
        "tables: [{name: db.trades, columns: [{name: size, type: long}]}]\n",
        "tables: [{name: db.trades, columns: [{name: price, description: In dollars}]}]\n",
        "tables: [{name: db.trades, properties: {a: b}}]\n",
    ],
)
def test_a_late_file_that_shares_no_fact_is_applied(shop: Embedded, text: str) -> None:
    shop.write("0002_late.yaml", text)
    assert states(shop) == {"0001": "applied", "0002": "pending", "0003": "applied"}
    assert versions(planned(shop)) == ["0002"]
    shop.apply()
    assert states(shop) == {"0001": "applied", "0002": "applied", "0003": "applied"}
    assert planned(shop).is_empty


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{name: db.trades, columns: [{name: venue, type: int}]}", f"{TOUCHES} 0003 (db.trades.venue.type)"),
        (
            "{name: db.trades, columns: [{name: venue, description: x}]}",
            f"{TOUCHES} 0003 (db.trades.venue.description)",
        ),
        ("{name: db.trades, renames: {price: venue}}", "it does not fit the applied migrations"),
        ("{name: db.deals, renamed_from: db.trades}", "the order matters: db.deals: columns.venue"),
        ("{name: db.trades, drop: true}", f"{TOUCHES} 0003"),
        ("{name: db.trades, drop_columns: [nothing]}", "it does not fit the applied migrations"),
    ],
)
def test_a_late_file_that_shares_a_fact_is_refused(shop: Embedded, text: str, told: str) -> None:
    shop.write("0002_late.yaml", f"allow: [destructive]\ntables: [{text}]\n")
    (found,) = refused(shop)
    assert found.startswith("late-file: 0002 is out of order: a later migration is applied")
    assert told in found
    assert states(shop)["0002"] == "late"


def test_a_late_file_waits_for_no_version_that_was_applied_before_it(shop: Embedded) -> None:
    # Of 0001 it shares the whole table; that one comes first in any case.
    shop.write(
        "0002_late.yaml", "tables: [{name: db.trades, columns: [{name: price, type: 'decimal(11,2)'}]}]\n"
    )
    assert versions(planned(shop)) == ["0002"]


def test_late_files_build_on_each_other(shop: Embedded) -> None:
    shop.write("0004_last.yaml", "tables: [{name: db.last, columns: [{name: id, type: long}]}]\n")
    shop.apply()
    shop.write("0000_quotes.yaml", QUOTES)
    shop.write("0002_more.yaml", "tables: [{name: db.quotes, columns: [{name: more, type: int}]}]\n")
    assert versions(planned(shop)) == ["0000", "0002"]
    shop.apply()
    assert planned(shop).is_empty


def test_a_late_file_whose_order_matters_is_refused(shop: Embedded) -> None:
    # A pattern that is applied already would have fitted the late table too, where files come in their order.
    shop.write("0005_all.yaml", 'tables: [{match: "db.*", properties: {team: us}}]\n')
    shop.apply()
    shop.write("0002_quotes.yaml", QUOTES)
    (told,) = refused(shop)
    assert "the order matters: db.quotes: properties: in this order (absent), elsewhere team us" in told


def test_a_late_file_among_pending_ones(shop: Embedded) -> None:
    shop.write("0002_quotes.yaml", QUOTES)
    shop.write("0004_more.yaml", "tables: [{name: db.quotes, columns: [{name: more, type: int}]}]\n")
    assert versions(planned(shop)) == ["0002", "0004"]
    shop.apply()
    assert planned(shop).is_empty


# rebase


LATE = "tables: [{name: db.trades, columns: [{name: venue, description: Where}]}]\n"
"""Speaks of a column that a later migration made."""


def rebased(shop: Embedded, *chosen: str) -> list[str]:
    """What was renamed, by names without folders."""
    done = rebase(open_project(shop.folder), chosen).renamed
    return [f"{Path(r.old).name} {Path(r.new).name}" for r in done]


def names(shop: Embedded) -> list[str]:
    return sorted(path.name for path in (shop.folder / "migrations").iterdir())


def test_rebase_renumbers_a_late_file(shop: Embedded) -> None:
    path = shop.write("0002_where.yaml", LATE.replace("name: venue,", "name: venue, type: string,"))
    content = path.read_bytes()
    refused(shop)
    assert rebased(shop) == ["0002_where.yaml 0004_where.yaml"]
    assert names(shop) == ["0001_trades.yaml", "0003_venue.yaml", "0004_where.yaml"]
    # Nothing of its content changes, so version control sees a rename.
    assert (shop.folder / "migrations" / "0004_where.yaml").read_bytes() == content
    assert versions(planned(shop)) == ["0004"]
    assert rebased(shop) == []


def test_rebase_leaves_late_files_that_can_be_applied(shop: Embedded) -> None:
    shop.write("0002_quotes.yaml", QUOTES)
    assert rebased(shop) == []
    assert rebased(shop, "2") == ["0002_quotes.yaml 0004_quotes.yaml"]


def test_rebase_keeps_the_order_of_several(shop: Embedded) -> None:
    shop.write("0004_last.yaml", "tables: [{name: db.last, columns: [{name: id, type: long}]}]\n")
    shop.apply()
    shop.write(
        "0000_a.yaml", "tables: [{name: db.last, properties: {a: b}, columns: [{name: id, type: long}]}]\n"
    )
    shop.write(
        "0002_b.yaml", "tables: [{name: db.last, properties: {a: c}, columns: [{name: id, type: long}]}]\n"
    )
    assert rebased(shop) == ["0000_a.yaml 0005_a.yaml", "0002_b.yaml 0006_b.yaml"]


def test_rebase_goes_on_with_times(shop: Embedded) -> None:
    shop.write("20200101000000_times.yaml", "tables: [{name: db.trades, properties: {a: b}}]\n")
    shop.apply()
    shop.write("0004_late.yaml", "tables: [{name: db.trades, properties: {a: c}}]\n")
    (moved,) = rebased(shop)
    old, new = moved.split()
    assert old == "0004_late.yaml"
    assert new.endswith("_late.yaml")
    assert len(new) == len("20200101000000_late.yaml")
    assert new > "20200101000000_late.yaml"


def test_rebase_gives_the_second_of_two_files_with_one_number_another(shop: Embedded) -> None:
    shop.write("0003_aaa.yaml", QUOTES)
    assert refused(shop) == ["duplicate-version: `0003_aaa.yaml` already has version 0003"]
    # Not the one that is applied, though it is the second by name.
    assert rebased(shop) == ["0003_aaa.yaml 0004_aaa.yaml"]
    assert versions(planned(shop)) == ["0004"]
    shop.write("0004_zzz.yaml", "tables: [{name: db.zzz, columns: [{name: id, type: long}]}]\n")
    assert rebased(shop) == ["0004_zzz.yaml 0005_zzz.yaml"]


def test_rebase_refuses_what_was_applied(shop: Embedded) -> None:
    for text in ("0003", "3", "0003_venue.yaml"):
        with pytest.raises(UsageError, match="0003 is applied, and the history refers to it by its version"):
            rebased(shop, text)
    with pytest.raises(UsageError, match="no migration has this version or file name"):
        rebased(shop, "0009")
    assert names(shop) == ["0001_trades.yaml", "0003_venue.yaml"]


def test_rebase_refuses_to_take_a_file_away_from_those_that_need_it(shop: Embedded) -> None:
    shop.write("0004_quotes.yaml", QUOTES)
    shop.write("0005_more.yaml", "tables: [{name: db.quotes, renames: {id: key}}]\n")
    with pytest.raises(Mistakes) as mistakes:
        rebased(shop, "0004")
    (told,) = mistakes.value.diagnostics
    assert told.message.startswith("the renumbered files would not fit together")
    assert names(shop)[-2:] == ["0004_quotes.yaml", "0005_more.yaml"]
    assert rebased(shop, "0004", "0005") == [
        "0004_quotes.yaml 0006_quotes.yaml",
        "0005_more.yaml 0007_more.yaml",
    ]


def test_rebase_never_replaces_a_file(shop: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.write("0002_quotes.yaml", QUOTES)

    def taken(*_: object, **__: object) -> None:
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(os, "link", taken)
    with pytest.raises(IcemigrateError, match=r"cannot be renamed to `0004_quotes\.yaml`: file exists"):
        rebased(shop, "2")
    assert "0002_quotes.yaml" in names(shop)
