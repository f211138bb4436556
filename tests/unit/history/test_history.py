"""The history's properties: kept whole, and refused when they are not what was written."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from icemigrate.catalog import Catalog, open_catalog
from icemigrate.errors import HistoryError
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_io import read_history
from icemigrate.history.history_properties import (
    APPLIED_KEY,
    DIGEST_KEY,
    INTENT_PREFIX,
    PROJECT_KEY,
    STATE_KEY,
    TABLE_PREFIX,
    AppliedVersion,
    History,
    HistoryDecoder,
    decode_history,
    encode_history,
    property_changes,
)
from icemigrate.history.history_record import SCHEMA, HistoryRecord, RunOutcome, check_columns
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg import json_text
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.json_text import compress
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import schema_to_json
from icemigrate.iceberg.table import DroppedField, Table
from icemigrate.iceberg.table_properties import HISTORY_FORMAT_PROPERTY
from icemigrate.iceberg.types import Field, Primitive, walk_fields
from icemigrate.system.inflate import MIB
from tests.support import sqlite_lakes
from tests.support.metadata_samples import SAMPLES, sample

NAME = TableName(("icemigrate",), "history")
NOON = datetime(2026, 11, 27, 12, 0, tzinfo=timezone.utc)


def _table(name: TableName, file: str) -> Table:
    table = table_from_json(sample(file), name)
    gone = DroppedField(
        Field(5, "zip", Primitive("string"), doc="code"), parent=3, path=("address", "zip"), after=4
    )
    return replace(table, dropped=(gone, replace(gone, parent=None, path=("zip",), after=None)))


TRADES, ODD = TableName(("db",), "trades"), TableName(("db", "a.b"), "odd `name`")
HISTORY = History(
    "market",
    (
        AppliedVersion(Version.parse("0001"), "abc", "Begin – café", NOON, "ann", 1200, fingerprint="f00d"),
        AppliedVersion(
            Version.parse("20261127120000"),
            "def",
            "",
            NOON + timedelta(seconds=1),
            state=VersionState.ROLLED_BACK,
        ),
    ),
    DeclaredState(
        {TRADES: _table(TRADES, "spark-v3"), ODD: _table(ODD, "pyiceberg-v2")},
        frozenset({("db",), ("db", "a.b")}),
        frozenset({TableName(("db",), "was")}),
    ),
)


def test_a_history_comes_back_as_it_was() -> None:
    decoded = decode_history(encode_history(HISTORY))
    assert decoded == HISTORY
    assert [applied.version.text for applied in decoded.applied] == ["0001", "20261127120000"]


def test_an_empty_history_comes_back() -> None:
    assert decode_history(encode_history(History("market"))) == History("market")


@pytest.mark.parametrize("file", SAMPLES)
def test_every_real_table_comes_back(file: str) -> None:
    history = History("market", (), DeclaredState({TRADES: _table(TRADES, file)}))
    assert decode_history(encode_history(history)).state.tables[TRADES] == _table(TRADES, file)


def test_versions_are_kept_in_order() -> None:
    mixed = replace(HISTORY, applied=HISTORY.applied[::-1])
    assert decode_history(encode_history(mixed)) == HISTORY


def test_other_properties_of_the_table_do_not_matter() -> None:
    assert decode_history({**encode_history(HISTORY), "owner": "ann", "icemigrate.lock": "held"}) == HISTORY


def test_only_what_changed_is_written() -> None:
    before = {**encode_history(HISTORY), "owner": "ann"}
    tables = dict(HISTORY.state.tables)
    tables[TRADES] = replace(tables[TRADES], location="file:/moved")
    del tables[ODD]
    after = encode_history(replace(HISTORY, state=replace(HISTORY.state, tables=tables)))
    to_set, to_remove = property_changes(before, after)
    assert set(to_set) == {DIGEST_KEY, TABLE_PREFIX + "db.trades"}
    assert to_remove == (TABLE_PREFIX + str(ODD),)
    kept = {key: value for key, value in before.items() if key not in to_remove}
    assert decode_history({**kept, **to_set}).state.tables == tables


def _pack(value: object) -> str:
    return base64.b64encode(zlib.compress(json.dumps(value).encode())).decode()


@pytest.mark.parametrize(
    "change",
    [
        {PROJECT_KEY: "other"},
        {PROJECT_KEY: "\ud800"},
        {APPLIED_KEY: "[]"},
        {STATE_KEY: '{"namespaces":[],"former":[]}'},
        {TABLE_PREFIX + "db.trades": _pack({})},
        {TABLE_PREFIX + "db.more": _pack({})},
        {DIGEST_KEY: "0"},
    ],
)
def test_what_was_altered_is_refused(change: Mapping[str, str]) -> None:
    with pytest.raises(HistoryError, match="its properties were altered or are damaged") as raised:
        decode_history({**encode_history(HISTORY), **change})
    assert raised.value.hint is not None


@pytest.mark.parametrize("key", [PROJECT_KEY, APPLIED_KEY, STATE_KEY, DIGEST_KEY, TABLE_PREFIX + "db.trades"])
def test_what_was_taken_out_is_missed(key: str) -> None:
    properties = encode_history(HISTORY)
    del properties[key]
    with pytest.raises(HistoryError, match="altered or are damaged"):
        decode_history(properties)


def _with_digest(properties: dict[str, str]) -> dict[str, str]:
    """Properties that somebody wrote who knows the digest, so that it does not give them away."""
    from icemigrate.history.history_properties import _digest

    rest = {key: value for key, value in properties.items() if key != DIGEST_KEY}
    return rest | {DIGEST_KEY: _digest(rest)}


def _applied(**change: object) -> str:
    version = {"version": "0001", "checksum": "c", "description": "d", "applied_at": "2026-01-01T00:00:00Z"}
    return json.dumps([version | change])


INTENT = json.dumps(
    {"version": "0009", "direction": "apply", "started_at": "0001-01-01T00:00:00+14:00"}
    | {"user": "u", "host": "h", "run": "r"}
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({APPLIED_KEY: "{"}, "Expected `array`, got `object`"),
        ({APPLIED_KEY: '[{"version": "x"}]'}, "a version is"),
        ({APPLIED_KEY: "[5]"}, "Expected `object`, got `int` - at `$[0]`"),
        ({STATE_KEY: "{}"}, "`namespaces` is missing"),
        ({STATE_KEY: "[" * 100_000}, "nested too deeply"),
        ({HISTORY_FORMAT_PROPERTY: "9" * 6000}, "`icemigrate.format` is '999"),
        ({INTENT_PREFIX + "0009": INTENT}, "start of 0009: 0001-01-01T00:00:00+14:00 is out of range"),
        (
            {APPLIED_KEY: _applied(applied_at="9999-12-31T23:59:59-14:00")},
            "time of 0001: 9999-12-31T23:59:59",
        ),
        ({APPLIED_KEY: _applied(applied_at="2026-01-01T00:00:00")}, "2026-01-01T00:00:00 has no time zone"),
        ({APPLIED_KEY: _applied(duration_ms=10**18)}, "duration of 0001: the number of milliseconds is out"),
        ({STATE_KEY: '{"namespaces":[],"former":["x"]}'}, "has no namespace"),
        ({TABLE_PREFIX + "db.trades": "%%%"}, "damaged"),
        ({TABLE_PREFIX + "db.trades": "AAAA"}, "damaged"),
        ({TABLE_PREFIX + "db.trades": _pack([])}, "damaged"),
        ({TABLE_PREFIX + "db.trades": _pack({"name": "db.trades"})}, "'schema' is missing"),
        (
            {TABLE_PREFIX + "db.more": encode_history(HISTORY)[TABLE_PREFIX + "db.trades"]},
            "holds table `db.trades`",
        ),
        ({TABLE_PREFIX + "more": _pack({})}, "has no namespace"),
    ],
)
def test_what_cannot_be_read_is_said(change: Mapping[str, str], reason: str) -> None:
    with pytest.raises(HistoryError) as raised:
        decode_history(_with_digest({**encode_history(HISTORY), **change}))
    assert raised.value.message.startswith("its properties were altered or are damaged: ")
    assert reason in raised.value.message


def test_the_content_of_a_property_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_MOST_BYTES", MIB)
    key = TABLE_PREFIX + "db.trades"
    with pytest.raises(HistoryError, match=f"`{key}`: its compressed data holds more than 1 MiB"):
        decode_history(_with_digest({**encode_history(HISTORY), key: compress(" " * (MIB + 1))}))


def test_a_written_history_is_kept_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    first, decoder = encode_history(HISTORY), HistoryDecoder()
    decoder.decode(first)
    (name, table), *others = HISTORY.state.tables.items()
    changed = {**dict(others), name: replace(table, last_column_id=table.last_column_id + 1, owner="market")}
    applied = tuple(reversed(HISTORY.applied))
    after = replace(HISTORY, applied=applied, state=replace(HISTORY.state, tables=changed), head=7)
    properties = encode_history(after, (first, HISTORY))
    assert properties == encode_history(after)
    decoder.keep(properties, after)
    expected = decode_history(properties)
    monkeypatch.setattr("icemigrate.history.history_properties.decode_history", lambda _: None)
    found = decoder.decode(dict(properties))
    assert found == expected
    assert found.state.tables[name].owner is None
    assert decoder.decode({**properties, "icemigrate.log": "altered"}) is None


def test_a_newer_form_is_refused_before_anything_else_is_read() -> None:
    with pytest.raises(HistoryError, match="written by a newer icemigrate") as raised:
        decode_history({HISTORY_FORMAT_PROPERTY: "4"})
    assert raised.value.hint == "pip install --upgrade icemigrate"


def test_a_form_that_is_no_number() -> None:
    with pytest.raises(HistoryError, match=r"`icemigrate.format` is 'one'"):
        decode_history({HISTORY_FORMAT_PROPERTY: "one"})


def _catalog(folder: Path, properties: Mapping[str, str]) -> Catalog:
    lake = sqlite_lakes.make(folder, {NAME: "spark-v2-empty"})
    metadata = sample("spark-v2-empty")
    metadata["properties"] |= properties
    metadata["schemas"] = [{**schema_to_json(SCHEMA), "schema-id": metadata["current-schema-id"]}]
    lake.files[NAME].write_text(json.dumps(metadata), encoding="utf-8")
    return open_catalog(lake.settings())


def test_the_history_is_read_by_the_catalog(tmp_path: Path) -> None:
    assert read_history(_catalog(tmp_path, encode_history(HISTORY)), NAME, "market") == HISTORY


def test_before_the_first_apply_there_is_none(tmp_path: Path) -> None:
    catalog = open_catalog(sqlite_lakes.Lake(tmp_path / "none.db").settings())
    assert read_history(catalog, NAME, "market") is None


@pytest.mark.parametrize(
    ("properties", "message", "hint"),
    [
        (
            encode_history(replace(HISTORY, project="bank")),
            "the history `icemigrate.history` belongs to project `bank`, not to `market`",
            "`history: NAMESPACE.TABLE`",
        ),
        (
            {HISTORY_FORMAT_PROPERTY: "99"},
            "the history `icemigrate.history` cannot be used: it was written by a newer icemigrate (",
            "pip install --upgrade icemigrate",
        ),
        (
            {},
            "the history `icemigrate.history` cannot be used: it is an ordinary table, not a history",
            "name another table as `history:`",
        ),
        (
            {**encode_history(HISTORY), PROJECT_KEY: "bank"},
            "the history `icemigrate.history` cannot be used: its properties were altered or are damaged",
            "only icemigrate may change the properties of the history: restore their values",
        ),
    ],
)
def test_a_history_that_cannot_be_used(
    properties: Mapping[str, str], message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(HistoryError) as raised:
        read_history(_catalog(tmp_path, properties), NAME, "market")
    assert raised.value.message.startswith(message)
    assert raised.value.hint is not None
    assert hint in raised.value.hint


RECORD = HistoryRecord(
    version=Version.parse("0003"),
    description="Begin",
    checksum="abc",
    project="market",
    environment="local",
    outcome=RunOutcome.APPLIED,
    started_at=NOON,
    finished_at=NOON + timedelta(milliseconds=1234),
    user="ann",
    host="laptop",
    tool_version="0.1.0",
    tables=("db.trades",),
    statements=("ALTER TABLE …",),
)


def test_a_row_has_the_columns_of_the_schema() -> None:
    row = RECORD.row()
    assert list(row) == [field.name for field in SCHEMA.fields]
    assert (row["version"], row["version_text"], row["duration_ms"]) == (3, "0003", 1234)
    optional = {"version", "version_text", "finished_at", "duration_ms", "message"}
    assert {field.name for field in SCHEMA.fields if not field.required} == optional


def test_the_schemas_ids_are_those_that_iceberg_gives() -> None:
    """Columns first, what lies below them after: then the created table has just these."""
    ids = [field.id for field in SCHEMA.fields] + [
        field.id for path, field in walk_fields(SCHEMA.root) if len(path) > 1
    ]
    assert ids == list(range(1, len(ids) + 1))


ROOMY = (
    *(replace(f, required=False) for f in reversed(SCHEMA.fields)),
    Field(90, "theirs", Primitive("long")),
    Field(91, "said", Primitive("long"), required=True, initial_default=1, write_default=1),
)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (ROOMY, None),
        (SCHEMA.fields[1:], "`version` is missing"),
        ((replace(SCHEMA.fields[0], type=Primitive("int")), *SCHEMA.fields[1:]), "`version` is int"),
        ((replace(SCHEMA.fields[0], required=True), *SCHEMA.fields[1:]), "`version` is long, required"),
        ((*SCHEMA.fields, Field(90, "theirs", Primitive("long"), required=True)), "`theirs` is required"),
    ],
)
def test_columns_that_somebody_altered_are_told_before_a_row_is_written(
    fields: tuple[Field, ...], reason: str | None
) -> None:
    if reason is None:
        check_columns(replace(SCHEMA, fields=fields))
        return
    with pytest.raises(HistoryError, match=f"its columns were altered: {reason}") as raised:
        check_columns(replace(SCHEMA, fields=fields))
    assert "only icemigrate may change them" in str(raised.value.hint)
