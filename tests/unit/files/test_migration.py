"""What a file says, as typed values with places."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from icemigrate.diagnostics import FilePosition
from icemigrate.files.read.migration_file import (
    UNSET,
    AllowEntry,
    ColumnEntry,
    DefaultEntry,
    DropColumnEntry,
    MigrationFile,
    NamespaceEntry,
    Reference,
    ReplacesEntry,
    Retention,
    RowRetention,
    SnapshotRetention,
    TableEntry,
)
from icemigrate.files.version_number import Version
from tests.unit.files.examples import EVERYTHING, migration, read

NOWHERE = FilePosition("")


@pytest.fixture(scope="module")
def everything() -> MigrationFile:
    return migration(EVERYTHING)


@pytest.fixture(scope="module")
def trades(everything: MigrationFile) -> TableEntry:
    return everything.tables[0]


def at(text: str, nth: int = 0) -> FilePosition:
    """Where a text stands in the example."""
    start = [found.start() for found in re.finditer(re.escape(text), EVERYTHING)][nth]
    before = EVERYTHING[:start].split("\n")
    return FilePosition("0007_all.yaml", len(before), len(before[-1]) + 1)


def test_the_file_itself(everything: MigrationFile) -> None:
    assert everything.version == Version(7, "0007")
    assert (everything.path, everything.name) == ("0007_all.yaml", "all")
    assert everything.description == "Everything that can be said"
    assert everything.because == "to see it all at once"
    assert everything.allow == (
        AllowEntry("destructive", None, NOWHERE),
        AllowEntry("incompatible", "market_data.trades", NOWHERE),
        AllowEntry("irreversible", None, NOWHERE),
    )
    assert everything.allow[1].place == at("incompatible")
    assert everything.allow_place == at("allow:")
    assert everything.namespaces == (
        NamespaceEntry("market_data", NOWHERE),
        NamespaceEntry("raw", NOWHERE),
    )
    assert everything.replaces == ReplacesEntry(Version(1, ""), Version(4, ""), "abc", NOWHERE)


def test_a_table(trades: TableEntry) -> None:
    zipped = ColumnEntry("number", "address.phones.element.number", NOWHERE, type="string")
    phone = ColumnEntry("element", "address.phones.element", NOWHERE, required=True, fields=(zipped,))
    phones = ColumnEntry("phones", "address.phones", NOWHERE, element=phone)
    city = ColumnEntry("city", "address.city", NOWHERE, type="string", description=None)
    assert trades == TableEntry(
        "market_data.trades",
        None,
        NOWHERE,
        description="Trades",
        renamed_from="market_data.ticks",
        renames=(("volume", "quantity"), ("address.zip", "postcode")),
        columns=(
            ColumnEntry(
                "company_id",
                "company_id",
                NOWHERE,
                type="long",
                required=True,
                default=DefaultEntry(7, "7", False, NOWHERE),
                description="Who",
                after="symbol",
            ),
            ColumnEntry("address", "address", NOWHERE, first=True, fields=(city, phones)),
            ColumnEntry(
                "tags",
                "tags",
                NOWHERE,
                key=ColumnEntry("key", "tags.key", NOWHERE, type="string"),
                value=ColumnEntry("value", "tags.value", NOWHERE, type="decimal(18, 6)", required=False),
            ),
        ),
        drop_columns=(DropColumnEntry("qualifiers", False, NOWHERE), DropColumnEntry("ssn", True, NOWHERE)),
        restore_columns=("venue",),
        identifier=("company_id",),
        partition_by=("day(exchange_timestamp) as exchange_date", "bucket(16, symbol) as symbol_bucket"),
        sort_by=("exchange_timestamp", "sequence_number desc nulls last"),
        write_distribution="hash",
        properties={"a.text": "zstd", "a.number": "7", "a.flag": "true", "a.quoted": "7", "a.gone": None},
        retention=Retention(
            SnapshotRetention(timedelta(days=30), 10),
            RowRetention("exchange_timestamp", timedelta(days=2555)),
        ),
        branches={"audit": Reference(timedelta(weeks=1), SnapshotRetention(None, 3)), "old": None},
        tags={"eod": Reference(timedelta(hours=12)), "forever": Reference(), "gone": None},
        format_version=2,
        location="s3://lake/trades",
        adopt=True,
    )
    assert [column.is_nested for column in trades.columns] == [False, True, True]


def test_the_other_tables(everything: MigrationFile) -> None:
    assert everything.tables[1] == TableEntry(
        None,
        "bronze.*",
        NOWHERE,
        properties={"write.target-file-size-bytes": "134217728"},
        retention=Retention(snapshots=None),
    )
    assert [(one.name, one.description, one.variables) for one in everything.tables[2:6]] == [
        ("acme.events_in", "Of acme", {"tenant": "acme", "kind": "in"}),
        ("acme.events_out", "Of acme", {"tenant": "acme", "kind": "out"}),
        ("globex.events_in", "Of globex", {"tenant": "globex", "kind": "in"}),
        ("globex.events_out", "Of globex", {"tenant": "globex", "kind": "out"}),
    ]
    assert everything.tables[6] == TableEntry("market_data.legacy", None, NOWHERE, drop=True)


@pytest.mark.parametrize(
    ("subject", "text", "nth"),
    [
        (("columns", "company_id"), "company_id", 0),
        (("columns", "company_id", "type"), "long", 0),
        (("columns", "company_id", "default"), "7, description", 0),
        (("columns", "company_id", "after"), "symbol}", 0),
        (("columns", "address", "fields"), "fields:", 0),
        (("columns", "address.city", "type"), "string, description", 0),
        (("columns", "address.phones.element"), "element:", 0),
        (("columns", "address.phones.element.number"), "number,", 0),
        (("columns", "tags.key"), "string, value", 0),
        (("columns", "tags.key", "type"), "string, value", 0),
        (("columns", "tags.value", "type"), '"decimal', 0),
        (("columns", "unknown"), "columns:", 0),
        (("renames", "volume"), "volume", 0),
        (("renames", "volume", "to"), "quantity", 0),
        (("drop_columns", "qualifiers"), "qualifiers", 0),
        (("drop_columns", "ssn", "purge"), "ssn", 0),
        (("restore_columns", "venue"), "venue", 0),
        (("identifier", "company_id"), "company_id]", 0),
        (("partition_by", "1"), '"bucket', 0),
        (("sort_by", "1"), "sequence_number", 0),
        (("properties", "a.number"), "a.number", 0),
        (("retention",), "retention:", 0),
        (("retention", "rows", "column"), "exchange_timestamp, max_age", 0),
        (("retention", "snapshots", "keep_at_least"), "10}", 0),
        (("branches", "audit"), "audit", 0),
        (("branches", "audit", "retention", "max_age"), "1w", 0),
        (("tags", "gone"), "gone: null}", 1),
        (("format_version",), "2\n    location", 0),
        (("location",), "s3://lake/trades", 0),
        (("write_distribution",), "hash", 0),
        (("renamed_from",), "market_data.ticks", 0),
        (("nothing", "of", "this"), "market_data.trades\n", 0),
        ((), "market_data.trades\n", 0),
    ],
)
def test_places(trades: TableEntry, subject: tuple[str, ...], text: str, nth: int) -> None:
    assert trades.place_of(subject) == at(text, nth)


def test_absent_is_not_null() -> None:
    text = "tables: [{name: m.t, columns: [{name: a}, {name: b, default: null, description: null}]}]"
    first, second = migration(text).tables[0].columns
    assert (first.default, first.description) == (UNSET, UNSET)
    assert second.description is None
    assert isinstance(second.default, DefaultEntry)
    assert second.default.is_null
    table = migration("tables: [{name: m.t, description: null, identifier: [], sort_by: []}]").tables[0]
    assert (table.description, table.identifier, table.sort_by, table.partition_by) == (None, (), (), UNSET)
    assert not UNSET
    assert repr(UNSET) == "UNSET"


def test_names_that_yaml_1_1_takes_for_something_else() -> None:
    text = "tables: [{name: m.t, columns: [{name: no}, {name: on}, {name: y}, {name: 2026-01-01}]}]"
    assert [column.name for column in migration(text).tables[0].columns] == ["no", "on", "y", "2026-01-01"]


@pytest.mark.parametrize(
    ("written", "text", "value"),
    [
        ("1.10", "1.10", 1.1),
        ("2026-01-01", "2026-01-01", "2026-01-01"),
        ("010", "010", "010"),
        ("'x'", "x", "x"),
        ("[1, 2]", "[1, 2]", [1, 2]),
        ("{b: 1, a: ü}", '{"a": "ü", "b": 1}', {"a": "ü", "b": 1}),
    ],
)
def test_defaults_keep_what_was_written(written: str, text: str, value: object) -> None:
    default = (
        migration(f"tables: [{{name: m.t, columns: [{{name: a, default: {written}}}]}}]")
        .tables[0]
        .columns[0]
        .default
    )
    assert isinstance(default, DefaultEntry)
    assert (default.text, default.value, default.is_null) == (text, value, False)


def test_one_consent_needs_no_list() -> None:
    allow = migration("allow: destructive  m.t.c\ntables: []").allow
    assert [(one.kind, one.scope) for one in allow] == [("destructive", "m.t.c")]


def test_where_consents_are_missing_the_file_begins() -> None:
    assert migration("# note\ntables: []").allow_place == FilePosition("0007_all.yaml", 2, 1)


def test_a_dollar_can_be_meant() -> None:
    text = (
        "tables: [{name: '${t}.e', for_each: {t: [a, 2]}, "
        "properties: {'${t}': '$${t} ${t}', n: 3}, sort_by: ['${t}']}]"
    )
    assert [(one.name, one.properties, one.sort_by) for one in migration(text).tables] == [
        ("a.e", {"a": "${t} a", "n": "3"}, ("a",)),
        ("2.e", {"2": "${t} 2", "n": "3"}, ("2",)),
    ]


def test_outside_of_for_each_a_dollar_is_a_dollar() -> None:
    assert migration("tables: [{name: m.t, description: '${x}'}]").tables[0].description == "${x}"


def test_anchored_lists_are_checked_like_written_ones() -> None:
    found = read("tables: [{name: m.t, drop_columns: [&a x, *a]}]")
    assert [one.code for one in found.diagnostics] == ["listed-twice"]
    assert found.migration is None


def test_versions() -> None:
    assert Version.parse("0003") == Version.parse("3")
    assert sorted([Version.parse("20261127203700"), Version.parse("10"), Version.parse("9")]) == [
        Version(9, ""),
        Version(10, ""),
        Version(20261127203700, ""),
    ]
    assert str(Version.parse("0003")) == "0003"
    for text in ("", "-1", "1.2", "²", "1" * 19, " 1", "1\n"):
        with pytest.raises(ValueError, match="digits"):
            Version.parse(text)


@pytest.mark.parametrize(
    ("properties", "value"),
    [
        ('{a: "(", k: ""}', ""),
        ('{a: "(", k: null}', None),
        ('\n      a: "("\n      k: ""', ""),
        ('\n      a: "("\n      k:', None),
    ],
)
def test_a_key_behind_an_open_bracket_is_a_key(properties: str, value: str | None) -> None:
    found = migration(f"tables:\n  - name: db.t\n    properties: {properties}\n")
    assert found.tables[0].properties == {"a": "(", "k": value}
