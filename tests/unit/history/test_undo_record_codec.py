"""Undo records as the history stores them."""

from __future__ import annotations

from typing import Any

import pytest

from icemigrate.errors import HistoryError
from icemigrate.history.undo_record_codec import undo_from_json, undo_to_json
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
        ({"format": 4}, r"written by a newer icemigrate \(format 4, known is 3\)"),
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
