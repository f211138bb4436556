"""Undo records as differences from bases, in a history of many versions."""

from __future__ import annotations

import pytest

from icemigrate.errors import HistoryError
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_properties import (
    BASE_PREFIX,
    History,
    decode_history,
    encode_history,
)
from icemigrate.history.undo_record_codec import pack_undo, pack_undo_with_bases, unpack_undo
from icemigrate.iceberg.json_text import compress
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Ref, Table
from icemigrate.iceberg.table_properties import HISTORY_FORMAT_PROPERTY
from icemigrate.iceberg.types import Field, Primitive
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord

_LONG = Primitive("long")
MANY = 120


def name(table: str) -> TableName:
    return TableName(("lake",), table)


def table(number: int, of: str = "events") -> Table:
    """A table after so many versions, each of which adds a column and a tag."""
    columns = tuple(Field(at, f"c{at}", _LONG) for at in range(1, number + 1))
    tags = {f"icemigrate-{at:04}": Ref("tag", at * 7919) for at in range(1, number + 1)}
    return Table(name(of), Schema(columns), refs=tags, uuid=f"uuid-{of}", last_column_id=number)


def record(number: int, *tables: str) -> UndoRecord:
    """The undo record of a version: all tables get a column, and the first version creates them."""

    def undo(of: str) -> TableUndo:
        before, after = table(number - 1, of), table(number, of)
        declared = [replace(one, refs={}) for one in (before, after)]
        if number == 1:
            return TableUndo(None, name(of), None, declared[1], None, after)
        return TableUndo(name(of), name(of), *declared, before, after, creates={number: (f"c{number}",)})

    return UndoRecord(f"{number:04}", tuple(undo(of) for of in tables or ("events",)))


RECORDS = {f"{number:04}": record(number) for number in range(1, MANY + 1)}


@pytest.fixture(scope="module")
def history() -> History:
    """A history that got one record after the other, each first as an intent and then as an outcome."""
    found = History("market")
    for version, one in RECORDS.items():
        found = found.with_undo_records({version: replace(one, tables=(replace(one.tables[0], after=None),))})
        found = decode_history(encode_history(found.with_undo_records({version: one})))
    return found


def read(history: History) -> dict[str, UndoRecord | None]:
    return {version: history.undo_record(Version.parse(version)) for version in history.undo}


def test_each_record_is_read_as_it_was_written(history: History) -> None:
    assert read(history) == RECORDS


def test_differences_take_a_fraction_of_the_tables(history: History) -> None:
    complete = sum(len(pack_undo(one)) for one in RECORDS.values())
    stored = sum(len(text) for texts in (history.undo, history.bases) for text in texts.values())
    assert stored < complete / 2
    assert len(history.bases) < MANY / 6


def test_a_record_depends_on_no_other_record(history: History) -> None:
    # As after squashes and repairs: any records are gone.
    left = {version: text for at, (version, text) in enumerate(history.undo.items()) if at % 7 == 3}
    after = decode_history(encode_history(replace(history, undo=left)))
    assert read(after) == {version: RECORDS[version] for version in left}
    last = {"0120": history.undo["0120"]}
    assert len(decode_history(encode_history(replace(history, undo=last))).bases) == 1
    assert not decode_history(encode_history(replace(history, undo={}))).bases


def test_a_version_that_is_applied_again_changes_no_other_one(history: History) -> None:
    again = record(60)
    again = replace(again, tables=(replace(again.tables[0], actual_after=table(75)),))
    after = decode_history(encode_history(history.with_undo_records({"0060": again})))
    assert read(after) == {**RECORDS, "0060": again}


def test_a_new_base_serves_the_tables_that_differ_much() -> None:
    small, large = record(2, "a", "b"), record(60, "a", "b")
    history = History("market").with_undo_records({"0002": small, "0060": large})
    assert len(history.bases) == 2
    only_a = replace(record(61, "a"), version="0061")
    history = history.with_undo_records({"0061": only_a})
    assert len(history.bases) == 2
    assert read(history) == {"0002": small, "0060": large, "0061": only_a}


def test_records_of_earlier_releases_stay_as_they_are() -> None:
    old = History("market", undo={"0001": pack_undo(RECORDS["0001"])})
    properties = encode_history(old)
    assert properties[HISTORY_FORMAT_PROPERTY] == "2"
    history = decode_history(properties).with_undo_records({"0002": RECORDS["0002"]})
    assert history.undo["0001"] == old.undo["0001"]
    assert read(decode_history(encode_history(history))) == {v: RECORDS[v] for v in ("0001", "0002")}


def test_an_earlier_release_refuses_a_history_with_differences(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icemigrate.history.history_properties.FORMAT", 2)
    properties = {**encode_history(history), HISTORY_FORMAT_PROPERTY: "3"}
    with pytest.raises(HistoryError, match=r"newer icemigrate \(format 3, known is 2\)"):
        decode_history(properties)


def test_a_history_with_differences_has_the_format_that_earlier_releases_refuse(history: History) -> None:
    assert encode_history(history)[HISTORY_FORMAT_PROPERTY] == "3"


def test_a_record_without_a_table_needs_no_base() -> None:
    empty = UndoRecord("0001", ())
    assert pack_undo_with_bases(empty, {}) == (pack_undo(empty), {})


def test_an_outline_reads_no_base(history: History) -> None:
    found = replace(history, bases={}).undo_outline(Version.parse("0050"))
    assert found is not None
    (part,) = found.tables
    assert (part.declared_after, part.uuids) == (name("events"), ("uuid-events",) * 3)
    with pytest.raises(HistoryError, match=r"the undo record is damaged: its base `\S+` is missing"):
        part.read()
    found = history.undo_outline(Version.parse("0050"))
    assert found is not None
    assert tuple(part.read() for part in found.tables) == RECORDS["0050"].tables


@pytest.mark.parametrize("text", ["", "not base64;", compress("{"), compress("{}"), compress("[]")])
def test_an_altered_base_is_one_clear_error(history: History, text: str) -> None:
    bases = dict.fromkeys(history.bases, text)
    message = r"the undo record is damaged: its base `\S+` was altered"
    with pytest.raises(HistoryError, match=message) as raised:
        unpack_undo(history.undo["0050"], bases)
    assert "restore their values from an earlier metadata file" in str(raised.value.hint)
    with pytest.raises(HistoryError, match="was altered"):
        pack_undo_with_bases(RECORDS["0002"], bases)


def test_a_base_without_the_table_is_an_error() -> None:
    text, new = pack_undo_with_bases(RECORDS["0001"], {})
    other, others = pack_undo_with_bases(record(1, "other"), {})
    (one,), (another,) = new, others
    swapped = text.replace(one, another)
    assert swapped != text
    assert other.startswith(f"{another};")
    # The id in the header is not what a record is read by: the one in the body is.
    assert unpack_undo(swapped, new) == RECORDS["0001"]
    with pytest.raises(HistoryError, match=f"its base `{one}` is missing"):
        unpack_undo(swapped, others)


def test_the_properties_of_a_history_have_its_bases(history: History) -> None:
    found = {key for key in encode_history(history) if key.startswith(BASE_PREFIX)}
    assert found == {BASE_PREFIX + one for one in history.bases}
