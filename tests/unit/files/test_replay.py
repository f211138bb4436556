"""Which tables a migration is about: first mentions, renames, drops, patterns, and what breaks."""

from __future__ import annotations

import pytest

from icemigrate.diagnostics import Severity
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE, TableTarget
from icemigrate.iceberg.names import TableName
from tests.support.replayed_migrations import (
    after,
    entry,
    migration,
    mistake,
    names,
    replay_text,
    state,
    table,
    wanted,
)

A, B, C = (TableName(("db",), name) for name in "abc")
CREATE = """
tables:
  - {name: db.a, columns: [{name: x, type: int}]}
  - {name: db.b, columns: [{name: x, type: int}]}
  - {name: other.b, columns: [{name: x, type: int}]}
"""
BEFORE = state(CREATE)


def test_the_first_mention_creates() -> None:
    found = wanted(
        entry("columns: [{name: x, type: int}]\nadopt: true\nlocation: s3://l/t\nformat_version: 3")
    )
    assert (found.formerly, found.adopt) == (None, True)
    assert found.table is not None
    assert (found.table.location, found.table.format_version) == ("s3://l/t", 3)


def test_a_later_mention_changes() -> None:
    found = wanted(entry("format_version: 3", "db.a"), BEFORE)
    assert (found.name, found.formerly, found.adopt) == (A, A, False)
    assert found.table is not None
    assert found.table.format_version == 3
    assert found.table.schema == BEFORE.tables[A].schema


def test_a_drop_stands_alone() -> None:
    assert wanted(entry("drop: true", "db.a"), BEFORE) == TableTarget(A, None, A)


def test_a_later_mention_of_a_dropped_table_is_a_new_one() -> None:
    before = after(BEFORE, replay_text(entry("drop: true", "db.a"), BEFORE))
    assert wanted(entry("columns: [{name: y, type: int}]", "db.a"), before).formerly is None


def test_a_rename() -> None:
    found = wanted(entry("renamed_from: db.a\nrenames: {x: y}", "db.c"), BEFORE)
    assert (found.name, found.formerly) == (C, A)
    assert found.table is not None
    assert found.table.name == C
    assert names(found.table) == ["y"]


def test_of_two_tables_that_exchange_names_one_waits() -> None:
    text = "tables: [{name: db.a, renamed_from: db.b}, {name: db.b, renamed_from: db.a}]"
    folded = replay_text(text, BEFORE)
    assert not folded.diagnostics
    assert [(w.name, w.formerly, w.waits) for w in folded.wanted] == [(B, A, False), (A, B, True)]


def test_a_table_gives_its_name_up_before_another_takes_it() -> None:
    """In whatever order the file names them: the plan follows this order."""
    text = "tables: [{name: db.b, renamed_from: db.a}, {name: db.c, renamed_from: db.b}]"
    assert [w.name for w in replay_text(text, BEFORE).wanted] == [C, B]


def test_a_new_table_takes_the_name_of_one_that_is_renamed_away() -> None:
    text = """
    tables:
      - {name: db.a, columns: [{name: z, type: int}]}
      - {name: db.c, renamed_from: db.a}
    """
    folded = replay_text(text, BEFORE)
    assert not folded.diagnostics
    assert [(w.name, w.formerly) for w in folded.wanted] == [(C, A), (A, None)]


def test_a_pattern_is_about_every_declared_table_that_fits() -> None:
    folded = replay_text("tables: [{match: 'db.*', properties: {k: v}}]", BEFORE)
    assert [w.name for w in folded.wanted] == [A, B]
    folded = replay_text("tables: [{match: '*.b', drop: true}]", BEFORE)
    assert [str(w.name) for w in folded.wanted] == ["db.b", "other.b"]


def test_a_pattern_does_not_reach_tables_of_its_own_file() -> None:
    text = """
    tables:
      - {match: "db.*", properties: {k: v}}
      - {name: db.cc, columns: [{name: z, type: int}]}
    """
    folded = replay_text(text, BEFORE)
    assert [str(w.name) for w in folded.wanted] == ["db.a", "db.b", "db.cc"]


def test_a_mistake_in_a_pattern_names_the_table() -> None:
    before = after(BEFORE, replay_text(entry("columns: [{name: y, type: int}]", "db.a"), BEFORE))
    folded = replay_text("tables: [{match: 'db.*', drop_columns: [y]}]", before)
    (found,) = folded.diagnostics
    assert found.message == "db.b: there is no column `y` to drop"
    assert [w.name for w in folded.wanted] == [A]


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        (
            entry("renames: {x: y}", "db.aa"),
            "unknown-table",
            "no declared table `db.aa`",
            "did you mean `db.a`?",
        ),
        (entry("drop: true", "db.q"), "unknown-table", "no declared table `db.q` to drop", None),
        (
            entry("columns: [{name: x, type: int}]\nrenames: {x: y}", "xx.t"),
            "first-mention",
            "`renames`",
            "new table",
        ),
        (
            entry("columns: [{name: x, type: int}]\ndrop_columns: [x]", "xx.t"),
            "first-mention",
            "`drop_columns`",
            "new table",
        ),
        (
            entry("columns: [{name: x, type: int}]\nrestore_columns: [y]", "xx.t"),
            "first-mention",
            "`restore_columns`",
            "new table",
        ),
        (entry("renamed_from: db.aa", "db.c"), "unknown-table", "`db.aa` to rename", "did you mean `db.a`?"),
        (entry("renamed_from: db.q", "db.b"), "unknown-table", "`db.q` to rename", "was it renamed before?"),
        (
            entry("renamed_from: db.a", "db.b"),
            "name-in-use",
            "that table already exists",
            "rename that table too",
        ),
        (entry("renamed_from: db.a", "db.a"), "rename-to-itself", "its own name", None),
        (
            entry("location: s3://x", "db.a"),
            "location-fixed",
            "location cannot be changed",
            "remove `location`",
        ),
        (entry("renamed_from: db.`a", "db.c"), "bad-name", "unclosed backtick", None),
        ("allow: ['destructive `']\ntables: []", "bad-name", '`allow`: unclosed backtick in "`"', None),
        ("allow: irreversible db..a\ntables: []", "bad-name", "`allow`: empty name in `db..a`", None),
        ("tables: [{match: 'dv.*', properties: {k: v}}]", "no-match", "matches `dv.*`", None),
    ],
)
def test_mistakes(text: str, code: str, message: str, hint: str | None) -> None:
    folded = replay_text(text, BEFORE)
    found = folded.diagnostics[0]
    assert found.code == code, found
    assert message in found.message
    assert hint is None or hint in (found.hint or "")
    assert folded.wanted == ()


def test_tables_of_one_file_do_not_overlap() -> None:
    text = """\
tables:
  - {match: "db.*", properties: {k: v}}
  - {name: db.a, properties: {k: w}}
"""
    folded = replay_text(text, BEFORE)
    (found,) = folded.diagnostics
    assert found.code == "duplicate-table"
    assert found.message == "`db.a` occurs twice in this file: here and at m.yaml:2:13"
    assert str(found.place) == "m.yaml:3:12"


def test_a_reader_that_lets_more_than_a_drop_through_is_not_trusted() -> None:
    read = migration(entry("drop: true", "db.a"))
    more = replace(read, tables=(replace(read.tables[0], adopt=True),))
    assert [d.code for d in replay_migration(BEFORE, more).diagnostics] == ["conflicting-keys"]


@pytest.mark.parametrize(
    "text",
    [
        "tables: [{name: db.c, renamed_from: db.a}, {match: 'db.a', drop: true}]",
        "tables: [{name: db.c, renamed_from: db.a}, {name: db.d, renamed_from: db.a}]",
        "tables: [{name: db.a, properties: {k: v}}, {name: db.`a`, properties: {k: v}}]",
    ],
)
def test_other_ways_to_be_in_a_file_twice(text: str) -> None:
    folded = replay_text(text, BEFORE)
    assert [d.code for d in folded.diagnostics] == ["duplicate-table"]


@pytest.mark.parametrize("name", ["db.trade", "db.tardes", "db.Trades", "db.tra_des", "db.traces"])
def test_a_new_table_with_a_name_very_near_to_another_is_a_warning(name: str) -> None:
    before = state(entry("columns: [{name: x, type: int}]", "db.trades"))
    folded = replay_text(entry("columns: [{name: x, type: int}]", name), before)
    (found,) = folded.diagnostics
    assert (found.code, found.severity) == ("near-name", Severity.WARNING)
    assert found.hint == "write `db.trades` if you mean that table"
    assert len(folded.wanted) == 1


@pytest.mark.parametrize("name", ["db.quotes", "db.trades_2", "db.trades_by_day", "eu.trades", "db.trades2"])
def test_a_new_table_with_a_name_of_its_own_is_none(name: str) -> None:
    before = state(entry("columns: [{name: x, type: int}]", "db.trades"))
    assert not replay_text(entry("columns: [{name: x, type: int}]", name), before).diagnostics


def test_adopting_a_declared_table_is_a_warning() -> None:
    folded = replay_text(entry("adopt: true", "db.a"), BEFORE)
    assert [(d.code, d.severity) for d in folded.diagnostics] == [("adopt-known", Severity.WARNING)]
    assert not folded.wanted[0].adopt


def test_nothing_more_is_said_of_a_table_that_an_earlier_file_got_wrong() -> None:
    first = replay_migration(EMPTY_STATE, migration(entry("columns: [{name: x, type: itn}]")))
    assert [d.code for d in first.diagnostics] == ["bad-type"]
    second = replay_migration(after(EMPTY_STATE, first), migration(entry("renames: {x: y}")), first.broken)
    third = replay_migration(
        after(EMPTY_STATE, second), migration(entry("renamed_from: db.t", "db.u")), second.broken
    )
    last = replay_migration(
        after(EMPTY_STATE, third), migration("tables: [{match: 'db.u', drop: true}]"), third.broken
    )
    for folded in (second, third, last):
        assert (folded.diagnostics, folded.wanted) == ((), ())


def test_one_broken_table_leaves_the_others_whole() -> None:
    folded = replay_text(
        "tables: [{name: db.a, drop_columns: [y]}, {name: db.b, properties: {k: v}}]", BEFORE
    )
    assert [w.name for w in folded.wanted] == [B]
    assert folded.broken == {A}


def test_where_a_wanted_table_comes_from_is_told() -> None:
    folded = replay_text("tables: [{match: '*.b', properties: {k: v}}]", BEFORE)
    assert {str(name): e.match for name, e in folded.entries.items()} == {"db.b": "*.b", "other.b": "*.b"}


def test_namespaces_are_those_declared_and_those_that_tables_stand_in() -> None:
    text = "namespaces: [n.m, p]\n" + entry("columns: [{name: x, type: int}]", "q.r.t")
    folded = replay_text(text, BEFORE)
    assert folded.namespaces == {("db",), ("other",), ("n", "m"), ("p",), ("q", "r")}


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("namespaces: [a..b]", "bad-name", None),
    ],
)
def test_mistakes_about_namespaces(text: str, code: str, hint: str | None) -> None:
    (found,) = replay_text(text, BEFORE).diagnostics
    assert (found.code, found.hint) == (code, hint)


def test_what_is_not_named_is_not_touched() -> None:
    assert replay_text("namespaces: [db]", BEFORE).wanted == ()
    assert table(entry("properties: {k: v}", "db.a"), BEFORE).schema is BEFORE.tables[A].schema


def test_a_broken_file_says_where() -> None:
    found = mistake(entry("drop_columns: [y]", "db.a"), BEFORE)
    assert str(found.place) == "m.yaml:3:20"
