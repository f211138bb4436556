"""Migrations written by us, as a person reads them; that the fold reads them back is a property test."""

from __future__ import annotations

from textwrap import dedent

import pytest

from icemigrate.files.write import yaml_text
from icemigrate.files.write.migration_entries import creation_entry, entry_between, format_migration_file
from icemigrate.files.write.yaml_text import to_yaml
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Ref, Table
from tests.support.replayed_migrations import T, column, entry, migration, names, state, table

CREATE = """
description: "One row per trade: as reported"
columns:
  - {name: symbol, type: string, required: true, description: "Ticker, as written"}
  - {name: price, type: "decimal(18,6)", required: true}
  - {name: ts, type: timestamp}
  - {name: "`odd name`", type: "list<required struct<a: int, b: required string>>"}
  - name: address
    fields:
      - {name: zip, type: string, description: Postal code}
      - name: tags
        key: string
        value: {required: true, element: {fields: [{name: x, type: int, description: d}]}}
identifier: [symbol]
partition_by: [day(ts) as exchange_date, "bucket(16, symbol)"]
sort_by: [ts, symbol desc nulls first]
write_distribution: hash
properties: {write.format.default: parquet, history.expire.max-ref-age-ms: 5}
retention: {snapshots: {max_age: 30d, keep_at_least: 10}, rows: {column: ts, max_age: 7d}}
branches: {audit: {retention: {max_age: 1d, snapshots: {keep_at_least: 3}}}}
tags: {eoy: {}}
format_version: 3
location: s3://lake/trades
"""


def test_a_document_says_all_and_no_more() -> None:
    assert format_migration_file(
        [creation_entry(table(entry(CREATE)))], description="All of it", namespaces=["db"], header="made"
    ) == dedent(
        """\
        # made
        description: All of it
        namespaces: [db]
        tables:
          - name: db.t
            description: "One row per trade: as reported"
            format_version: 3
            location: s3://lake/trades
            columns:
              - {name: symbol, type: string, required: true, description: "Ticker, as written"}
              - {name: price, type: "decimal(18,6)", required: true}
              - {name: ts, type: timestamp}
              - {name: "`odd name`", type: "list<required struct<a: int, b: required string>>"}
              - name: address
                fields:
                  - {name: zip, type: string, description: Postal code}
                  - name: tags
                    key: string
                    value:
                      element:
                        fields:
                          - {name: x, type: int, description: d}
                      required: true
            identifier: [symbol]
            partition_by: [day(ts) as exchange_date, "bucket(16, symbol)"]
            sort_by: [ts, symbol desc nulls first]
            write_distribution: hash
            properties:
              write.format.default: parquet
              history.expire.max-ref-age-ms: "5"
            retention: {snapshots: {max_age: 30d, keep_at_least: 10}, rows: {column: ts, max_age: 7d}}
            branches: {audit: {retention: {max_age: 1d, snapshots: {keep_at_least: 3}}}}
            tags: {eoy: {}}
        """
    )


BEFORE = state(entry(CREATE))


def between(text: str, before: DeclaredState = BEFORE) -> dict[str, object]:
    return entry_between(before.tables[T], table(entry(text), before))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (
            "renames: {price: amount, address.zip: code}",
            {"renames": {"price": "amount", "address.zip": "code"}},
        ),
        ("renames: {price: ts, ts: price}", {"renames": {"price": "ts", "ts": "price"}}),
        ("drop_columns: [address.zip, price]", {"drop_columns": ["price", "address.zip"]}),
        (
            "drop_columns: [price]\ncolumns: [{name: price, type: double, required: true}]",
            {
                "drop_columns": ["price"],
                "columns": [{"name": "price", "type": "double", "required": True}],
            },
        ),
        (
            "columns: [{name: n, type: int, default: 7, after: ts}]",
            {"columns": [{"name": "n", "type": "int", "default": 7, "after": "ts"}]},
        ),
        (
            "columns: [{name: address.zip, required: true, description: null, first: true}]",
            {"columns": [{"name": "address.zip", "required": True, "description": None}]},
        ),
        (
            "columns: [{name: address, type: 'struct<n: int>'}, {name: ts, first: true}]",
            {"columns": [{"name": "address.n", "type": "int"}, {"name": "ts", "first": True}]},
        ),
        (
            "columns: [{name: '`odd name`.element', required: false}]",
            {"columns": [{"name": "`odd name`.element", "required": False}]},
        ),
        (
            "partition_by: [day(ts)]\nsort_by: []\nidentifier: []",
            {"identifier": [], "partition_by": ["day(ts) as exchange_date"], "sort_by": []},
        ),
        ("partition_by: [day(ts) as ts_day]", {"partition_by": ["day(ts) as ts_day"]}),
        ("partition_by: [symbol]", {"partition_by": ["symbol"]}),
        ("description: null", {"description": None}),
        (
            "properties: {write.format.default: null, k: v}\nwrite_distribution: none",
            {"write_distribution": "none", "properties": {"write.format.default": None, "k": "v"}},
        ),
        ("properties: {write.distribution-mode: null}", {"properties": {"write.distribution-mode": None}}),
        ("retention: {snapshots: {max_age: 2w}}", {"retention": {"snapshots": {"max_age": "14d"}}}),
        (
            "retention: {snapshots: null, rows: null}",
            {"retention": {"snapshots": {"max_age": None, "keep_at_least": None}, "rows": None}},
        ),
        (
            "retention: {rows: {column: ts, max_age: 8d}}",
            {"retention": {"rows": {"column": "ts", "max_age": "8d"}}},
        ),
        (
            "properties: {icemigrate.retention.rows.max-age-ms: 5}",
            {"properties": {"icemigrate.retention.rows.max-age-ms": "5"}},
        ),
        (
            "tags: {eoy: null}\nbranches: {eoy: {}, audit: {retention: {max_age: 1d}}}",
            {"branches": {"eoy": {}, "audit": {"retention": {"max_age": "1d"}}}, "tags": {"eoy": None}},
        ),
        ("", {}),
    ],
)
def test_only_what_differs_is_written(text: str, written: dict[str, object]) -> None:
    assert between(text) == {"name": "db.t", **written}


def test_properties_that_follow_their_column_are_not_written() -> None:
    assert between("renames: {ts: at}") == {"name": "db.t", "renames": {"ts": "at"}}


def test_another_name_of_the_table() -> None:
    t = BEFORE.tables[T]
    other = TableName(("db",), "u")
    assert entry_between(t, replace(t, name=other)) == {"name": "db.u", "renamed_from": "db.t"}


def test_a_format_version() -> None:
    before = state(entry("columns: [{name: a, type: int}]"))
    assert between("format_version: 3", before) == {"name": "db.t", "format_version": 3}


def test_no_table_before_or_after() -> None:
    t = BEFORE.tables[T]
    assert entry_between(None, t) == creation_entry(t)
    assert entry_between(t, None) == {"name": "db.t", "drop": True}


def test_what_an_earlier_migration_dropped_is_restored() -> None:
    before = state(entry(CREATE), entry("drop_columns: [price, address.zip]"))
    assert entry_between(before.tables[T], BEFORE.tables[T]) == {
        "name": "db.t",
        "restore_columns": ["price", "address.zip"],
    }


def test_a_restored_column_is_moved_and_altered_where_that_is_wanted() -> None:
    before = state(entry(CREATE), entry("drop_columns: [price]"))
    wanted = table(
        entry("restore_columns: [price]\ncolumns: [{name: price, required: false, after: address}]"), before
    )
    written = entry_between(before.tables[T], wanted)
    assert written["restore_columns"] == ["price"]
    assert written["columns"] == [{"name": "price", "required": False, "after": "address"}]
    assert table(format_migration_file([written]), before) == wanted


def test_an_older_drop_of_the_same_name_cannot_be_restored_and_is_made_anew() -> None:
    again = entry("columns: [{name: price, type: double}]")
    drop = entry("drop_columns: [price]")
    before = state(entry(CREATE), drop, again, drop)
    written = entry_between(before.tables[T], BEFORE.tables[T])
    assert "restore_columns" not in written
    assert column(table(format_migration_file([written]), before), "price").id < 0


def test_few_columns_move() -> None:
    before = state(entry("columns: [" + ", ".join(f"{{name: c{i}, type: int}}" for i in range(6)) + "]"))
    wanted = table(entry("columns: [{name: c0, after: c4}]"), before)
    assert names(wanted) == ["c1", "c2", "c3", "c4", "c0", "c5"]
    assert entry_between(before.tables[T], wanted)["columns"] == [{"name": "c0", "after": "c4"}]


def test_terms_whose_column_is_gone_are_left_out() -> None:
    t = table(entry("drop_columns: [ts]"), BEFORE)
    written = creation_entry(t)
    assert written["partition_by"] == ["bucket(16, symbol)"]
    assert written["sort_by"] == ["symbol desc nulls first"]


def test_ages_that_no_duration_can_say_are_left_out() -> None:
    t = replace(BEFORE.tables[T], refs={"r": Ref("tag", 7, 1500)})
    assert creation_entry(t)["tags"] == {"r": {}}


def test_a_file_with_a_consent() -> None:
    text = format_migration_file(
        [{"name": "db.t", "drop": True}], "Drop it: now", ["destructive db.t"], "it is #1 of many"
    )
    assert text == dedent(
        """\
        description: "Drop it: now"
        allow: [destructive db.t]
        because: "it is #1 of many"
        tables:
          - name: db.t
            drop: true
        """
    )
    assert migration(text).because == "it is #1 of many"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain text (here)", "plain text (here)"),
        ("a:b", "a:b"),
        ("a: b", '"a: b"'),
        ("yes", '"yes"'),
        ("Null", '"Null"'),
        ("", '""'),
        ("7", '"7"'),
        ("30d", "30d"),
        ("1e5", '"1e5"'),
        ("2026-01-01", '"2026-01-01"'),
        (" a", '" a"'),
        ("a ", '"a "'),
        ("- a", '"- a"'),
        ("a\n", '"a\\n"'),
        ("\x85\ufeff", '"\\u0085\\ufeff"'),
        (True, "true"),
        (None, "null"),
        (7, "7"),
        (0.5, "0.5"),
        (1e300, "1.0e+300"),
        (1.5e-9, "1.5e-09"),
    ],
)
def test_scalars(value: object, written: str) -> None:
    assert to_yaml({"k": value}) == f"k: {written}\n"


def test_texts_inside_brackets_need_more_quotes() -> None:
    assert to_yaml({"sort_by": ["a, b", "c[0]", "d"]}) == 'sort_by: ["a, b", "c[0]", d]\n'


def test_a_value_is_written_once_and_not_again_with_each_value_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = list[object]()
    original = yaml_text.to_flow_yaml

    def noted(value: object) -> str:
        written.append(value)
        return original(value)

    monkeypatch.setattr(yaml_text, "to_flow_yaml", noted)
    columns = [{"name": f"c{n}", "type": "long"} for n in range(20)]
    to_yaml({"tables": [{"name": "db.t", "columns": columns}]})
    assert len(written) == 3 * len(columns)


def test_a_table_is_not_changed_by_being_written() -> None:
    t: Table = BEFORE.tables[T]
    creation_entry(t)
    assert t == state(entry(CREATE)).tables[T]
