"""Undo records as the history stores them."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.errors import HistoryError
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import EPOCH, AppliedVersion
from icemigrate.history.undo_record_codec import outline_undo, pack_undo, undo_from_json, undo_to_json
from icemigrate.iceberg.json_text import compress, write_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import LastCopy, TableUndo, UndoRecord

NAME = TableName(("a",), "b")
STORED: dict[str, Any] = {
    "format": 3,
    "version": "0002",
    "tables": [
        {
            "declared-before": "a.b",
            "declared-after": "a.b",
            "before": None,
            "after": None,
            "actual-before": None,
            "actual-after": None,
            "trash": None,
            "rows-changed": True,
            "rows-open": True,
            "creates": {"3": ["a", "b"]},
            "created": [1, 3],
            "tagged": True,
            "last-copies": [
                {
                    "declared": "a.b",
                    "version": "icemigrate-0001",
                    "snapshot-id": 7,
                    "fields": [2],
                    "max-ref-age-ms": None,
                }
            ],
        },
        {
            "declared-before": "a.b",
            "declared-after": None,
            "before": None,
            "after": None,
            "actual-before": None,
            "actual-after": None,
            "trash": "a.c",
            "rows-changed": False,
        },
    ],
    "namespaces": [["a"]],
}
RECORD = UndoRecord(
    "0002",
    (
        TableUndo(
            NAME,
            NAME,
            None,
            None,
            None,
            None,
            rows_changed=True,
            rows_open=True,
            creates={3: ("a", "b")},
            created=frozenset({1, 3}),
            is_tagged=True,
            last_copies=(LastCopy(NAME, "icemigrate-0001", 7, (2,)),),
        ),
        TableUndo(NAME, None, None, None, None, None, trash=TableName(("a",), "c")),
    ),
    namespaces=(("a",),),
)


def test_a_record_is_stored_as_earlier_releases_stored_it() -> None:
    assert undo_to_json(RECORD) == STORED
    assert undo_from_json(STORED) == RECORD


def test_tables_are_stored_whole() -> None:
    table = Table(NAME, Schema())
    record = UndoRecord("0001", (TableUndo(None, NAME, None, table, None, table),), baseline=True)
    stored = undo_to_json(record)
    assert (stored["format"], stored["baseline"]) == (2, True)
    assert stored["tables"][0]["after"]["last-column-id"] == 0
    assert undo_from_json(stored) == record


def test_what_a_later_release_adds_is_ignored() -> None:
    tables = [{**table, "of-a-later-release": 1} for table in STORED["tables"]]
    assert undo_from_json({**STORED, "tables": tables, "of-a-later-release": []}) == RECORD


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 5}, r"written by a newer icemigrate \(format 5, known is 4\)"),
        ({"tables": [5]}, r"damaged: undo record.tables\[0\]: dict expected, 5 found"),
        (
            {"tables": [{**STORED["tables"][0], "trash": "b"}]},
            r"damaged: undo record.tables\[0\].trash: `b` has no namespace",
        ),
        (
            {"tables": [{**STORED["tables"][0], "creates": {"x": []}}]},
            r"damaged: undo record.tables\[0\].creates: invalid literal",
        ),
        ({"version": None}, "damaged: undo record.version: str expected, None found"),
    ],
)
def test_a_damaged_record_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(HistoryError, match=message):
        undo_from_json(STORED | change)


def packed(json_: Any) -> str:
    return compress(write_json(json_))


def test_an_outline_names_the_tables_and_reads_each_on_demand() -> None:
    before, after, back = (Table(NAME, Schema(), uuid=uuid) for uuid in ("u1", None, "u3"))
    record = UndoRecord("0002", (*RECORD.tables, TableUndo(NAME, NAME, before, after, None, back)))
    found = outline_undo(pack_undo(record))
    assert not found.baseline
    assert [(t.declared_before, t.declared_after) for t in found.tables] == [
        (NAME, NAME),
        (NAME, None),
        (NAME, NAME),
    ]
    assert [t.uuids for t in found.tables] == [(None, None, None), (None, None, None), ("u1", None, "u3")]
    assert tuple(t.read() for t in found.tables) == record.tables
    assert outline_undo(pack_undo(UndoRecord("0001", (), baseline=True))).baseline


def test_only_records_with_last_copies_are_read_for_them() -> None:
    others = {"0001": pack_undo(UndoRecord("0001", ())), "0003": pack_undo(UndoRecord("0003", ()))}
    applied = tuple(
        AppliedVersion(Version.parse(version), "", "", EPOCH) for version in ("0001", "0002", "0003")
    )
    history = History("p", applied=applied, undo={**others, "0002": pack_undo(RECORD)})
    assert list(history.with_last_copies()) == [(applied[1], RECORD)]
    with pytest.raises(HistoryError, match="damaged: "):
        list(replace(history, undo={"0003": "not compressed"}).with_last_copies())


def test_what_a_later_release_adds_is_ignored_in_an_outline() -> None:
    tables = [{**table, "of-a-later-release": 1} for table in STORED["tables"]]
    found = outline_undo(packed({**STORED, "tables": tables, "of-a-later-release": []}))
    assert tuple(t.read() for t in found.tables) == RECORD.tables


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 5}, r"written by a newer icemigrate \(format 5, known is 4\)"),
        ({"format": "new"}, "damaged: "),
        ({"tables": [5]}, "damaged: "),
        ({"tables": None}, "damaged: "),
        ({"tables": [{"declared-before": "a.b"}]}, "damaged: 'declared-after'"),
        ({"tables": [{**STORED["tables"][0], "declared-after": "b"}]}, "damaged: `b` has no namespace"),
        ({"tables": [{**STORED["tables"][0], "after": []}]}, "damaged: "),
    ],
)
def test_a_damaged_record_has_no_outline(change: dict[str, Any], message: str) -> None:
    with pytest.raises(HistoryError, match=message):
        outline_undo(packed(STORED | change))


def test_a_text_that_is_no_record_has_no_outline() -> None:
    with pytest.raises(HistoryError, match="damaged: "):
        outline_undo(compress("{"))
    with pytest.raises(HistoryError, match="damaged: "):
        outline_undo("not compressed")


def test_a_damaged_part_is_refused_when_it_is_read() -> None:
    (found,) = outline_undo(packed({**STORED, "tables": [{**STORED["tables"][0], "trash": "b"}]})).tables
    with pytest.raises(HistoryError, match=r"damaged: undo record\.trash: `b` has no namespace"):
        found.read()
