"""An undo record as the text of a property of the history table.

An expiry removes schemas and specs that no snapshot refers to, so ids alone would not do: the record holds
whole tables, with field ids.  It is written in one commit with the outcome, and decoded only when asked for.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from typing import Any

from icemigrate.errors import HistoryError
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.names import BadName, TableName
from icemigrate.model.table import Table
from icemigrate.model.table_json import table_from_json_form, table_to_json
from icemigrate.model.undo_record import LastCopy, TableUndo, UndoRecord, last_copies_of

__all__ = ["TableUndo", "UndoRecord", "pack_undo", "undo_from_json", "undo_to_json", "unpack_undo"]

UNDO_FORMAT = 3
"""Of a record that names last copies: an older icemigrate would move their tags.  A baseline is of format 2,
since its undo touches no table, and an older icemigrate's would.  All others are of format 1."""


def undo_to_json(record: UndoRecord) -> dict[str, Any]:
    """The record as JSON values."""
    return {
        "format": UNDO_FORMAT if last_copies_of(record) else 2 if record.baseline else 1,
        "version": record.version,
        "tables": [_table_to_json(t) for t in record.tables],
        **({"baseline": True} if record.baseline else {}),
        # An older icemigrate passes over it, and leaves them as it always did.
        **({"namespaces": [list(n) for n in record.namespaces]} if record.namespaces else {}),
    }


def undo_from_json(json_: Any) -> UndoRecord:
    """Read what :func:`undo_to_json` wrote.

    :raises HistoryError: it is damaged, or a newer icemigrate wrote it.
    """
    try:
        if json_["format"] > UNDO_FORMAT:
            raise HistoryError(
                f"the undo record was written by a newer icemigrate (format {json_['format']}, "
                f"known is {UNDO_FORMAT})",
                "pip install --upgrade icemigrate",
            )
        tables = tuple(_table_from_json(t) for t in json_["tables"])
        made = tuple(tuple(map(str, namespace)) for namespace in json_.get("namespaces", ()))
        return UndoRecord(json_["version"], tables, json_.get("baseline", False), made)
    except (KeyError, TypeError, AttributeError, ValueError, BadMetadata, BadName) as error:
        raise HistoryError(f"the undo record is damaged: {error}") from error


def pack_undo(record: UndoRecord) -> str:
    """The record as the text of a table property: metadata packs to a tenth."""
    text = json.dumps(undo_to_json(record), ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack_undo(text: str) -> UndoRecord:
    """Read what :func:`pack_undo` wrote.

    :raises HistoryError: as :func:`undo_from_json`.
    """
    try:
        json_ = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
    except (ValueError, zlib.error, binascii.Error) as error:
        raise HistoryError(f"the undo record is damaged: {error}") from error
    return undo_from_json(json_)


def _table_to_json(undo: TableUndo) -> dict[str, Any]:
    return {
        "declared-before": _text(undo.declared_before),
        "declared-after": _text(undo.declared_after),
        "before": _packed(undo.before),
        "after": _packed(undo.after),
        "actual-before": _packed(undo.actual_before),
        "actual-after": _packed(undo.actual_after),
        "trash": _text(undo.trash),
        "rows-changed": undo.rows_changed,
        "rows-open": undo.rows_open,
        # An older icemigrate passes over what follows.
        **({"creates": {str(i): list(paths) for i, paths in undo.creates.items()}} if undo.creates else {}),
        **({"created": sorted(undo.created)} if undo.created is not None else {}),
        **({"tagged": True} if undo.is_tagged else {}),
        **({"unproved": True} if undo.is_unproved else {}),
        **({"last-copies": [_copy_to_json(c) for c in undo.last_copies]} if undo.last_copies else {}),
    }


def _copy_to_json(copy: LastCopy) -> dict[str, Any]:
    return {
        "declared": str(copy.declared),
        "version": copy.version,
        "snapshot-id": copy.snapshot_id,
        "fields": list(copy.fields),
        "max-ref-age-ms": copy.max_ref_age_ms,
    }


def _copy_from_json(json_: Mapping[str, Any]) -> LastCopy:
    return LastCopy(
        declared=TableName.parse(json_["declared"]),
        version=json_["version"],
        snapshot_id=json_["snapshot-id"],
        fields=tuple(json_["fields"]),
        max_ref_age_ms=json_["max-ref-age-ms"],
    )


def _table_from_json(json_: Mapping[str, Any]) -> TableUndo:
    return TableUndo(
        declared_before=_name(json_["declared-before"]),
        declared_after=_name(json_["declared-after"]),
        before=_unpacked(json_["before"]),
        after=_unpacked(json_["after"]),
        actual_before=_unpacked(json_["actual-before"]),
        actual_after=_unpacked(json_["actual-after"]),
        trash=_name(json_["trash"]),
        rows_changed=json_["rows-changed"],
        rows_open=json_.get("rows-open", False),
        creates={int(i): tuple(map(str, paths)) for i, paths in json_.get("creates", {}).items()},
        created=frozenset(map(int, json_["created"])) if "created" in json_ else None,
        is_tagged=json_.get("tagged", False),
        is_unproved=json_.get("unproved", False),
        last_copies=tuple(_copy_from_json(c) for c in json_.get("last-copies", ())),
    )


def _text(name: TableName | None) -> str | None:
    return None if name is None else str(name)


def _name(text: str | None) -> TableName | None:
    return None if text is None else TableName.parse(text)


def _packed(table: Table | None) -> dict[str, Any] | None:
    return None if table is None else table_to_json(table)


def _unpacked(json_: Any) -> Table | None:
    return None if json_ is None else table_from_json_form(json_)
