"""Undo records as texts of properties of the history table.

An expiry removes schemas and specs that no snapshot refers to, so ids are not enough: the record has complete
tables, with field ids.  It is written in one commit with the outcome, and decoded on access.  Tables are
stored as differences from bases (:mod:`icemigrate.history.undo_bases`); earlier releases stored them whole.
"""

from __future__ import annotations

import json
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from icemigrate.errors import HistoryError
from icemigrate.frozen import Frozen
from icemigrate.history.recorded_versions import RESTORE_HINT
from icemigrate.history.undo_bases import (
    BASE_KEY,
    Bases,
    complete_table,
    stored_uuids,
    with_bases,
    with_header,
    without_header,
)
from icemigrate.iceberg.json_text import Raw, compress, decompress, object_form, read_json, write_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord, last_copies_of

if TYPE_CHECKING:
    from icemigrate.iceberg.value_codec import Codec

__all__ = [
    "TableUndo",
    "TableUndoOutline",
    "UndoOutline",
    "UndoRecord",
    "may_have_last_copies",
    "outline_undo",
    "pack_undo",
    "pack_undo_with_bases",
    "undo_from_json",
    "undo_to_json",
    "unpack_undo",
]

UNDO_FORMAT = 4
"""Format of a record whose tables are stored as differences."""
_LAST_COPIES_FORMAT = 3
"""Format of a complete record with last copies: an older release would move their tags.

A complete baseline has format 2, because its undo changes no table, and that of an older release would. All
other complete records have format 1.
"""
_NO_BASES: Bases = MappingProxyType({})
_LAST_COPIES_KEY = b'"last-copies"'
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
        "format": _LAST_COPIES_FORMAT if last_copies_of(record) else 2 if record.baseline else 1,
        **values,
        "tables": [_REQUIRED | table for table in values["tables"]],
    }


def undo_from_json(json_: Any, bases: Bases = _NO_BASES) -> UndoRecord:
    """Read the output of :func:`undo_to_json`, or one whose tables are differences from bases.

    :raises HistoryError: it, or a base, is damaged, or a newer release wrote it.
    """
    try:
        _check_format(json_["format"])
        tables = [_complete(table, bases) for table in json_["tables"]]
        json_ = {**json_, "tables": tables}
        record: UndoRecord = _codec().decode(UndoRecord, json_, "undo record")
        return record
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _damaged(error) from error


def pack_undo(record: UndoRecord) -> str:
    """The complete record as the text of a table property."""
    return compress(write_json(undo_to_json(record)))


def pack_undo_with_bases(record: UndoRecord, bases: Bases) -> tuple[str, dict[str, str]]:
    """The record as the text of a table property, as differences from bases.

    :param bases: that exist.
    :returns: the text, and the new bases that it needs.
    :raises HistoryError: a base is damaged.
    """
    json_ = undo_to_json(record)
    try:
        tables, new = with_bases(json_["tables"], bases)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _damaged(error) from error
    if all(BASE_KEY not in table for table in tables):
        return pack_undo(record), {}
    return with_header(compress(write_json({**json_, "format": UNDO_FORMAT, "tables": tables})), tables), new


def unpack_undo(text: str, bases: Bases = _NO_BASES) -> UndoRecord:
    """Read the output of :func:`pack_undo` or :func:`pack_undo_with_bases`.

    :raises HistoryError: as :func:`undo_from_json`.
    """
    try:
        json_ = json.loads(decompress(without_header(text)))
    except (ValueError, RecursionError) as error:
        raise _damaged(error) from error
    return undo_from_json(json_, bases)


def _complete(table: Any, bases: Bases) -> Any:
    # The codec names the place of a value that is no object.
    return complete_table(table, bases) if isinstance(table, dict) else table


def may_have_last_copies(text: str) -> bool:
    """Whether the text of a record names last copies; few do, and the answer needs no JSON.

    :raises HistoryError: it is no compressed text.
    """
    try:
        return _LAST_COPIES_KEY in decompress(without_header(text))
    except ValueError as error:
        raise _damaged(error) from error


class TableUndoOutline(Frozen):
    """Which table a part of an undo record is about; its definitions are read on demand.

    :param declared_after: its declared name after the migration; ``None`` where it was dropped.
    :param uuids: of the recorded table before and after the migration, and of the table as it was read back;
        ``None`` for one that is missing or has none.
    :param text: the part.
    :param bases: that it may need.
    """

    declared_before: TableName | None
    declared_after: TableName | None
    uuids: tuple[str | None, str | None, str | None]
    text: Raw
    bases: Bases = _NO_BASES

    def read(self) -> TableUndo:
        """All of it.

        :raises HistoryError: it is damaged.
        """
        try:
            json_ = complete_table(json.loads(bytes(self.text)), self.bases)
            undo: TableUndo = _codec().decode(TableUndo, json_, "undo record")
            return undo
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise _damaged(error) from error


class UndoOutline(Frozen):
    """The tables of an undo record.

    :param baseline: as in :class:`UndoRecord`.
    """

    tables: tuple[TableUndoOutline, ...]
    baseline: bool = False


_UUID_KEYS = ("before", "after", "actual-after")
_RECORD_FORM = object_form({"format": Any, "baseline": Any, "tables": list[Raw]})
_UUID_FORM: Any = object_form({"uuid": str | None}) | None
_NAMES = {"declared-before": Any, "declared-after": Any}
_TABLE_FORM = object_form(_NAMES | dict.fromkeys(_UUID_KEYS, _UUID_FORM))
_DIFFERENCES_FORM = object_form(_NAMES | {BASE_KEY: Any, "uuids": Any})


def outline_undo(text: str, bases: Bases = _NO_BASES) -> UndoOutline:
    """The tables in the text of a record, without their definitions.

    :raises HistoryError: as :func:`undo_from_json`, as far as it is read.
    """
    try:
        json_ = read_json(decompress(without_header(text)), _RECORD_FORM)
        _check_format(json_["format"])
        form = _DIFFERENCES_FORM if json_["format"] == UNDO_FORMAT else _TABLE_FORM
        tables = tuple(_outline(table, form, bases) for table in json_["tables"])
        return UndoOutline(tables, bool(json_.get("baseline", False)))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _damaged(error) from error


def _outline(text: Any, form: Any, bases: Bases) -> TableUndoOutline:
    # Text that only Python's own parser accepts was read without a form.
    text = text if isinstance(text, Raw) else Raw(write_json(text).encode())
    json_ = read_json(text, form)
    before, after = (
        None if name is None else TableName.parse(name)
        for name in (json_["declared-before"], json_["declared-after"])
    )
    if BASE_KEY in json_:
        return TableUndoOutline(before, after, stored_uuids(json_), text, bases)
    if form is not _TABLE_FORM:
        json_ = read_json(text, _TABLE_FORM)
    first, second, third = (None if (t := json_[key]) is None else t["uuid"] for key in _UUID_KEYS)
    return TableUndoOutline(before, after, (first, second, third), text)


def _check_format(number: int) -> None:
    if number > UNDO_FORMAT:
        raise HistoryError(
            f"the undo record was written by a newer icemigrate (format {number}, known is {UNDO_FORMAT})",
            "pip install --upgrade icemigrate",
        )


def _damaged(error: Exception) -> HistoryError:
    why = "it is nested too deeply" if isinstance(error, RecursionError) else error
    return HistoryError(f"the undo record is damaged: {why}", RESTORE_HINT)
