"""Undo records as texts of properties of the history table.

An expiry removes schemas and specs that no snapshot refers to, so ids are not enough: the record has complete
tables, with field ids.  It is written in one commit with the outcome, and decoded on access.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from icemigrate.errors import HistoryError
from icemigrate.history.recorded_versions import RESTORE_HINT
from icemigrate.iceberg.json_text import compress, decompress, write_json
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord, last_copies_of

if TYPE_CHECKING:
    from icemigrate.iceberg.value_codec import Codec

__all__ = ["TableUndo", "UndoRecord", "pack_undo", "undo_from_json", "undo_to_json", "unpack_undo"]

UNDO_FORMAT = 3
"""Format of a record with last copies: an older release would move their tags.

A baseline has format 2, because its undo changes no table, and that of an older release would. All others
have format 1.
"""
_REQUIRED = {"trash": None, "rows-changed": False}
"""Values of a table that older releases need even if they are defaults."""


@cache
def _codec() -> Codec:
    # Most commands read no undo record, and need not import this module.
    from icemigrate.iceberg.value_codec import Codec

    return Codec(is_stored=True)


def undo_to_json(record: UndoRecord) -> dict[str, Any]:
    """The record as JSON values."""
    values = _codec().encode(record)
    return {
        "format": UNDO_FORMAT if last_copies_of(record) else 2 if record.baseline else 1,
        **values,
        "tables": [_REQUIRED | table for table in values["tables"]],
    }


def undo_from_json(json_: Any) -> UndoRecord:
    """Read the output of :func:`undo_to_json`.

    :raises HistoryError: it is damaged, or a newer release wrote it.
    """
    try:
        if json_["format"] > UNDO_FORMAT:
            raise HistoryError(
                f"the undo record was written by a newer icemigrate (format {json_['format']}, "
                f"known is {UNDO_FORMAT})",
                "pip install --upgrade icemigrate",
            )
        record: UndoRecord = _codec().decode(UndoRecord, json_, "undo record")
        return record
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _damaged(error) from error


def pack_undo(record: UndoRecord) -> str:
    """The record as the text of a table property."""
    return compress(write_json(undo_to_json(record)))


def unpack_undo(text: str) -> UndoRecord:
    """Read the output of :func:`pack_undo`.

    :raises HistoryError: as :func:`undo_from_json`.
    """
    try:
        json_ = json.loads(decompress(text))
    except (ValueError, RecursionError) as error:
        raise _damaged(error) from error
    return undo_from_json(json_)


def _damaged(error: Exception) -> HistoryError:
    why = "it is nested too deeply" if isinstance(error, RecursionError) else error
    return HistoryError(f"the undo record is damaged: {why}", RESTORE_HINT)
