"""What counts for a checksum, and what does not."""

from __future__ import annotations

import json

import pytest
import yaml

from icemigrate.files.checksum import checksum, short_checksum
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from tests.unit.files.examples import EVERYTHING, LISTS, migration, source

TABLE = "tables: [{name: m.t, "


def sum_of(text: str) -> str:
    return migration(text).checksum


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (EVERYTHING, "# a comment\n" + EVERYTHING.replace("because: to see it all at once\n", "\n\n")),
        (EVERYTHING, EVERYTHING.replace("Everything that can be said", "Nothing")),
        (EVERYTHING, json.dumps(yaml.safe_load(EVERYTHING))),
        (EVERYTHING, yaml.safe_dump(yaml.safe_load(EVERYTHING), sort_keys=True)),
        (TABLE + "properties: {a: 1, b: 2}}]", TABLE + "properties: {b: '2', a: \"1\"}}]"),
        (TABLE + "properties: {a: True}}]", TABLE + "properties: {a: 'true'}}]"),
        (TABLE + "renames: {a: b, c: d}}]", TABLE + "renames: {c: d, a: b}}]"),
        (TABLE + "drop_columns: [a]}]", TABLE + "drop_columns: [{name: a, purge: false}]}]"),
        (TABLE + "adopt: false}]", TABLE + "columns: []}]"),
        (
            TABLE + "columns: [{name: a, element: int}]}]",
            TABLE + "columns: [{name: a, element: {type: int}}]}]",
        ),
        (
            TABLE + "retention: {snapshots: {max_age: 24h}}}]",
            TABLE + "retention: {snapshots: {max_age: 1d}}}]",
        ),
        ("namespaces: [a, b]", "namespaces: [b, a]"),
        ("tables: [{name: m.a}, {match: m.*}]", "tables: [{match: m.*}, {name: m.a}]"),
        ("allow: destructive\ntables: []", "allow: [destructive]\ntables: []"),
        (
            "tables: [{name: m.a, identifier: &i [x]}, {name: m.b, identifier: *i}]",
            "tables: [{name: m.a, identifier: [x]}, {name: m.b, identifier: [x]}]",
        ),
        (
            "tables: [{name: '${t}.e', for_each: {t: tenants}}]",
            "tables: [{name: acme.e}, {name: globex.e}]",
        ),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert sum_of(one) == sum_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TABLE + "properties: {a: 1}}]", TABLE + "properties: {a: 2}}]"),
        (TABLE + "properties: {a: null}}]", TABLE + "properties: {a: 'null'}}]"),
        (TABLE + "properties: {a: 1.0}}]", TABLE + "properties: {a: 1}}]"),
        (TABLE + "description: null}]", TABLE + "adopt: false}]"),
        (TABLE + "description: a}]", TABLE + "description: b}]"),
        (TABLE + "identifier: []}]", TABLE + "adopt: false}]"),
        (TABLE + "identifier: [a, b]}]", TABLE + "identifier: [b, a]}]"),
        (TABLE + "columns: [{name: a}, {name: b}]}]", TABLE + "columns: [{name: b}, {name: a}]}]"),
        (TABLE + "columns: [{name: a, required: false}]}]", TABLE + "columns: [{name: a}]}]"),
        (TABLE + "columns: [{name: a, default: 1.10}]}]", TABLE + "columns: [{name: a, default: 1.1}]}]"),
        (TABLE + "columns: [{name: a, default: [1]}]}]", TABLE + "columns: [{name: a, default: [2]}]}]"),
        (TABLE + "columns: [{name: a, default: null}]}]", TABLE + "columns: [{name: a, default: 'null'}]}]"),
        (TABLE + "columns: [{name: a, key: int}]}]", TABLE + "columns: [{name: a, value: int}]}]"),
        (TABLE + "renames: {a: b}}]", TABLE + "renames: {b: a}}]"),
        (TABLE + "tags: {a: null}}]", TABLE + "tags: {a: {}}}]"),
        (TABLE + "retention: {rows: null}}]", TABLE + "retention: {snapshots: null}}]"),
        ("allow: destructive\ntables: []", "allow: destructive m.t\ntables: []"),
        ("tables: [{name: m.t}]", "tables: [{match: m.t}]"),
        ("namespaces: [a]", "namespaces: [a, b]"),
        ('replaces: {from: "1", to: "2", digest: a}', 'replaces: {from: "1", to: "3", digest: a}'),
    ],
)
def test_not_the_same(one: str, other: str) -> None:
    assert sum_of(one) != sum_of(other)


def test_a_file_that_is_renumbered_or_moved_is_the_same() -> None:
    moved = read_migration(source(EVERYTHING, "elsewhere/8_x.yaml"), Version.parse("8"), "x", LISTS).migration
    assert moved is not None
    assert moved.checksum == sum_of(EVERYTHING)


def test_checksums_are_promises() -> None:
    """Recorded in histories: a change of this number is a break for everyone."""
    assert sum_of("namespaces: [demo]\ntables: [{name: demo.t, columns: [{name: a, type: long}]}]") == (
        "c91b6e0e149cc20ea259afa5ee3c3f2698e2dc4c833306c726c6e54982bf40d3"
    )
    assert short_checksum(sum_of(EVERYTHING)) == checksum(migration(EVERYTHING))[:12]
