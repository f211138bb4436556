"""Properties, description, distribution, retention and references: merged by key."""

from __future__ import annotations

import pytest

from icemigrate.diagnostics import Severity
from icemigrate.iceberg.table import Ref
from tests.support.replayed_migrations import T, entry, mistake, replay_text, state, table

CREATE = """
columns: [{name: a, type: int}, {name: ts, type: timestamp}, {name: s, type: "struct<x: timestamp>"}]
description: Ticks
properties: {k: v, write.metadata.metrics.column.a: full, write.metadata.metrics.column.ts: none}
retention: {snapshots: {max_age: 30d, keep_at_least: 10}, rows: {column: ts, max_age: 7d}}
branches: {audit: {retention: {max_age: 1d, snapshots: {max_age: 2d, keep_at_least: 3}}}}
tags: {eoy: {}}
"""
BEFORE = state(entry(CREATE))
TABLE = BEFORE.tables[T]
ROWS = "icemigrate.retention.rows.column"


def test_what_is_said_by_a_key_of_its_own_is_a_property() -> None:
    assert TABLE.properties == {
        "comment": "Ticks",
        "k": "v",
        "write.metadata.metrics.column.a": "full",
        "write.metadata.metrics.column.ts": "none",
        "history.expire.max-snapshot-age-ms": "2592000000",
        "history.expire.min-snapshots-to-keep": "10",
        ROWS: "ts",
        "icemigrate.retention.rows.max-age-ms": "604800000",
    }


def test_properties_merge_and_null_removes() -> None:
    t = table(entry("properties: {k: null, n: 1}\ndescription: null\nwrite_distribution: hash"), BEFORE)
    assert {k: t.properties.get(k) for k in ("k", "n", "comment", "write.distribution-mode")} == {
        "k": None,
        "n": "1",
        "comment": None,
        "write.distribution-mode": "hash",
    }
    assert t.properties[ROWS] == "ts"


def test_retention_merges_and_null_removes() -> None:
    t = table(entry("retention: {snapshots: {keep_at_least: null}, rows: null}"), BEFORE)
    assert "history.expire.max-snapshot-age-ms" in t.properties
    assert "history.expire.min-snapshots-to-keep" not in t.properties
    assert ROWS not in t.properties
    t = table(entry("retention: {snapshots: null}"), BEFORE)
    assert "history.expire.max-snapshot-age-ms" not in t.properties
    assert t.properties[ROWS] == "ts"


def test_properties_of_a_column_follow_its_rename_and_go_with_it() -> None:
    t = table(entry("renames: {a: b}\ndrop_columns: [ts]\nretention: {rows: null}"), BEFORE)
    assert t.properties["write.metadata.metrics.column.b"] == "full"
    assert not any(k.endswith((".a", ".ts")) for k in t.properties)


def test_when_a_column_takes_the_name_of_a_dropped_one_its_properties_come_along() -> None:
    t = table(entry("renames: {a: ts}\ndrop_columns: [ts]\nretention: {rows: null}"), BEFORE)
    assert t.properties["write.metadata.metrics.column.ts"] == "full"
    assert "write.metadata.metrics.column.a" not in t.properties


def test_properties_and_retention_survive_a_swap() -> None:
    t = table(entry("renames: {a: ts, ts: a}"), BEFORE)
    assert t.properties["write.metadata.metrics.column.ts"] == "full"
    assert t.properties["write.metadata.metrics.column.a"] == "none"
    assert t.properties[ROWS] == "a"


def test_retention_follows_a_rename_above_its_column() -> None:
    before = state(entry(CREATE.replace("column: ts,", "column: s.x,")))
    assert table(entry("renames: {s: r}"), before).properties[ROWS] == "r.x"
    assert table(entry("renames: {s: r, s.x: y}"), before).properties[ROWS] == "r.y"


def test_references_merge_and_null_removes() -> None:
    assert TABLE.refs == {
        "audit": Ref("branch", -1, 86_400_000, 172_800_000, 3),
        "eoy": Ref("tag", -1),
    }
    t = table(entry("branches: {audit: null}\ntags: {q1: {retention: {max_age: 90d}}}"), BEFORE)
    assert t.refs == {"eoy": Ref("tag", -1), "q1": Ref("tag", -1, 7_776_000_000)}


def test_a_branch_takes_the_name_of_a_tag_that_goes() -> None:
    t = table(entry("tags: {eoy: null}\nbranches: {new: {}}"), BEFORE)
    assert t.refs["new"] == Ref("branch", -1)
    assert "eoy" not in t.refs


def test_a_property_that_nobody_declared_cannot_be_removed_but_that_is_no_error() -> None:
    folded = replay_text(entry("properties: {zebra: null}"), BEFORE)
    (warning,) = folded.diagnostics
    assert (warning.code, warning.severity) == ("unknown-property", Severity.WARNING)
    assert warning.hint == "properties that were set by hand are not changed"
    assert len(folded.wanted) == 1


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("properties: {comment: x}\ndescription: y", "said-twice", "`description`"),
        (
            "properties: {write.distribution-mode: none}\nwrite_distribution: hash",
            "said-twice",
            "`write_distribution`",
        ),
        (
            "properties: {history.expire.min-snapshots-to-keep: 3}\nretention: {snapshots: {keep_at_least: 4}}",  # noqa: E501
            "said-twice",
            "`retention`",
        ),
        ("tags: {main: {}}", "name-in-use", "every table's branch"),
        ("branches: {main: null}", "name-in-use", "every table's branch"),
        ("tags: {eoyy: null}", "unknown-reference", "no migration declared a tag `eoyy`"),
        ("branches: {eoy: null}", "unknown-reference", "no migration declared a branch `eoy`"),
        ("branches: {x: {}}\ntags: {x: {}}", "name-in-use", "both a branch and a tag"),
    ],
)
def test_mistakes(text: str, code: str, message: str) -> None:
    found = mistake(entry(text), BEFORE)
    assert found.code == code, found
    assert message in found.message
