"""The part of the history that planning needs, as properties of the history table.

Properties are in the table's metadata, so a plan reads the recorded state of all tables from one JSON file.
Each table is its own property: a migration rewrites only the properties of its tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from icemigrate.errors import HistoryError
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, field, replace
from icemigrate.history.head_snapshot import LockInfo
from icemigrate.history.recorded_versions import (
    RESTORE_HINT,
    AppliedVersion,
    Intent,
    VersionState,
    decode_recorded,
    encode_recorded,
    encode_versions,
)
from icemigrate.history.undo_bases import used_bases
from icemigrate.history.undo_record_codec import (
    UndoOutline,
    UndoRecord,
    may_have_last_copies,
    outline_undo,
    pack_undo_with_bases,
    unpack_undo,
)
from icemigrate.iceberg.declared_sides import EMPTY_STATE, DeclaredState
from icemigrate.iceberg.json_text import compress, decompress, write_json, write_texts
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_json import table_from_text, table_to_text
from icemigrate.iceberg.table_properties import HISTORY_FORMAT_PROPERTY
from icemigrate.iceberg.undo_record import last_copies_of

FORMAT = 3
"""Version of this format; it increases with a change that older releases would misread.

Format 3 has undo records as differences from bases.  A history without such a record has format 2, which
earlier releases read.
"""
_FORMAT_WITHOUT_BASES = 2
_FORMAT_DIGITS = 9

__all__ = [
    "AppliedVersion",
    "History",
    "HistoryDecoder",
    "VersionState",
    "decode_history",
    "encode_history",
    "property_changes",
]

PREFIX = "icemigrate."
PROJECT_KEY = PREFIX + "project"
APPLIED_KEY = PREFIX + "applied"
STATE_KEY = PREFIX + "state"
DIGEST_KEY = PREFIX + "digest"
LOG_KEY = PREFIX + "log"
TABLE_PREFIX = PREFIX + "table."
INTENT_PREFIX = PREFIX + "intent."
UNDO_PREFIX = PREFIX + "undo."
BASE_PREFIX = PREFIX + "undo-base."
_PREFIXES = (TABLE_PREFIX, INTENT_PREFIX, UNDO_PREFIX, BASE_PREFIX)


class History(Frozen):
    """A project's current history.

    :param applied: one for each version, by version.
    :param state: the tables as declared by the applied migrations, with the field ids of the catalog.
    :param intents: migrations that began and are neither applied nor completely undone, by version.
    :param undo: packed undo records by version's text; see :meth:`undo_record`.
    :param bases: what the packed undo records share; see :mod:`icemigrate.history.undo_bases`.
    :param log: packed events; see :mod:`icemigrate.history.event_log`.
    :param head: id of the history table's current snapshot; ``None`` where it has none.
    :param lock: the holder of the lock; ``None`` while no process holds it.
    """

    project: str
    applied: tuple[AppliedVersion, ...] = ()
    state: DeclaredState = EMPTY_STATE
    intents: tuple[Intent, ...] = ()
    undo: Mapping[str, str] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    head: int | None = None
    lock: LockInfo | None = None

    @property
    def intent(self) -> Intent | None:
        """The latest intent without an outcome."""
        return max(self.intents, key=lambda i: i.started_at, default=None)

    def of(self, version: Version) -> AppliedVersion | None:
        """The record of a version; ``None`` where no part of it was ever applied."""
        return next((a for a in self.applied if a.version == version), None)

    def undo_record(self, version: Version) -> UndoRecord | None:
        """The undo record of a version.

        :raises HistoryError: it is damaged, or a newer release wrote it.
        """
        packed = self.undo.get(version.text)
        return None if packed is None else unpack_undo(packed, self.bases)

    def undo_outline(self, version: Version) -> UndoOutline | None:
        """The tables of the undo record of a version; for all versions, this takes a tenth of the time.

        :raises HistoryError: as :meth:`undo_record`.
        """
        packed = self.undo.get(version.text)
        return None if packed is None else outline_undo(packed, self.bases)

    def with_last_copies(self) -> Iterator[tuple[AppliedVersion, UndoRecord]]:
        """The versions with values that depend on snapshots, and their undo records; no other one is read.

        :raises HistoryError: as :meth:`undo_record`.
        """
        for applied in self.applied:
            packed = self.undo.get(applied.version.text)
            if packed is not None and may_have_last_copies(packed):
                record = unpack_undo(packed, self.bases)
                if last_copies_of(record):
                    yield applied, record

    def with_undo_records(self, records: Mapping[str, UndoRecord]) -> History:
        """The history with these undo records of versions, instead of earlier ones."""
        undo, bases = dict(self.undo), dict(self.bases)
        for version, record in records.items():
            undo[version], new = pack_undo_with_bases(record, bases)
            bases |= new
        return replace(self, undo=undo, bases=used_bases(undo.values(), bases))


EncodedHistory: TypeAlias = tuple[Mapping[str, str], History]
"""The properties of a history's table, and the history in them."""


def encode_history(history: History, known: EncodedHistory | None = None) -> dict[str, str]:
    """All properties of a history.

    :param known: an earlier one, whose unchanged tables are not encoded again.
    """
    state, bases = history.state, used_bases(history.undo.values(), history.bases)
    properties = {
        HISTORY_FORMAT_PROPERTY: str(FORMAT if bases else _FORMAT_WITHOUT_BASES),
        PROJECT_KEY: history.project,
        APPLIED_KEY: encode_versions(sorted(history.applied, key=lambda a: a.version)),
        STATE_KEY: write_json(
            {
                "namespaces": sorted(list(namespace) for namespace in state.namespaces),
                "former": sorted(str(name) for name in state.former),
            }
        ),
        **{TABLE_PREFIX + str(name): _packed(name, table, known) for name, table in state.tables.items()},
        **{INTENT_PREFIX + i.version.text: encode_recorded(i) for i in history.intents},
        **{UNDO_PREFIX + version: packed for version, packed in history.undo.items()},
        **{BASE_PREFIX + one: text for one, text in bases.items()},
        **({LOG_KEY: history.log} if history.log else {}),
    }
    return properties | {DIGEST_KEY: _digest(properties)}


def property_changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The properties to set and to remove, so that the table gets those of :func:`encode_history`."""
    to_set = {key: value for key, value in after.items() if before.get(key) != value}
    return to_set, tuple(sorted(key for key in before if _is_ours(key) and key not in after))


def decode_history(properties: Mapping[str, str]) -> History:
    """Read the output of :func:`encode_history`; other properties of the table do not matter.

    :raises HistoryError: they are not those of a history, a newer release wrote them, or another client
        changed them.
    """
    _check_format(properties)
    ours = {key: value for key, value in properties.items() if _is_ours(key)}
    if ours.pop(DIGEST_KEY, None) != _digest(ours):
        raise _altered("they are not what was written together")
    try:
        tables = dict(_unpack(key, value) for key, value in ours.items() if key.startswith(TABLE_PREFIX))
        state = json.loads(ours[STATE_KEY])
        return History(
            project=ours[PROJECT_KEY],
            applied=decode_recorded(ours[APPLIED_KEY], tuple[AppliedVersion, ...]),
            state=DeclaredState(
                tables,
                frozenset(tuple(namespace) for namespace in state["namespaces"]),
                frozenset(TableName.parse(name) for name in state["former"]),
            ),
            intents=tuple(
                sorted(
                    (decode_recorded(v, Intent) for k, v in ours.items() if k.startswith(INTENT_PREFIX)),
                    key=lambda i: i.version,
                )
            ),
            undo={k.removeprefix(UNDO_PREFIX): v for k, v in ours.items() if k.startswith(UNDO_PREFIX)},
            bases={k.removeprefix(BASE_PREFIX): v for k, v in ours.items() if k.startswith(BASE_PREFIX)},
            log=ours.get(LOG_KEY, ""),
        )
    except KeyError as error:
        raise _altered(f"`{error.args[0]}` is missing") from error
    except RecursionError as error:
        raise _altered("they are nested too deeply") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise _altered(str(error)) from error


class HistoryDecoder:
    """Decodes a history; the same properties as those before only once.

    A run reads its history several times between two writes, to find the head of another process.
    """

    def __init__(self) -> None:
        self._last: EncodedHistory | None = None

    def decode(self, properties: Mapping[str, str]) -> History:
        """See :func:`decode_history`."""
        last = self._last
        if last is None or last[0] != properties:
            last = self._last = properties, decode_history(properties)
        return last[1]

    def keep(self, properties: Mapping[str, str], history: History) -> None:
        """Keep what was written, so that it is not decoded when it is read back.

        :param properties: of the table, with those of the history.
        """
        before, known = self._last or ({}, None)
        tables = dict[TableName, Table]()
        for name in history.state.tables:
            key = TABLE_PREFIX + str(name)
            # A recorded table is what its text has; the one that was written may have more.
            if known is not None and before.get(key) == properties[key]:
                tables[name] = known.state.tables[name]
            else:
                tables[name] = _unpack(key, properties[key])[1]
        self._last = (
            properties,
            replace(
                history,
                applied=tuple(sorted(history.applied, key=lambda a: a.version)),
                state=replace(history.state, tables=tables),
                intents=tuple(sorted(history.intents, key=lambda i: i.version)),
                bases=used_bases(history.undo.values(), history.bases),
                head=None,
                lock=None,
            ),
        )


def _check_format(properties: Mapping[str, str]) -> None:
    text = properties.get(HISTORY_FORMAT_PROPERTY)
    if text is None:
        raise HistoryError(
            "it is an ordinary table, not a history",
            "name another table as `history:` in the project file",
        )
    if not (text.isascii() and text.isdigit() and len(text) <= _FORMAT_DIGITS):
        raise _altered(f"`{HISTORY_FORMAT_PROPERTY}` is {text[:40]!r}")
    if int(text) > FORMAT:
        raise HistoryError(
            f"it was written by a newer icemigrate (format {text}, known is {FORMAT})",
            "pip install --upgrade icemigrate",
        )


def _altered(reason: str) -> HistoryError:
    return HistoryError(f"its properties were altered or are damaged: {reason}", RESTORE_HINT)


def _is_ours(key: str) -> bool:
    whole = (HISTORY_FORMAT_PROPERTY, PROJECT_KEY, APPLIED_KEY, STATE_KEY, DIGEST_KEY, LOG_KEY)
    return key in whole or key.startswith(_PREFIXES)


def _digest(properties: Mapping[str, str]) -> str:
    return hashlib.sha256(write_texts(sorted(properties.items()))).hexdigest()


def _packed(name: TableName, table: Table, known: EncodedHistory | None) -> str:
    if known is not None:
        properties, history = known
        before = history.state.tables.get(name)
        if before is table or before == table:
            return properties[TABLE_PREFIX + str(name)]
    return compress(table_to_text(table))


def _unpack(key: str, value: str) -> tuple[TableName, Table]:
    name = TableName.parse(key.removeprefix(TABLE_PREFIX))
    # The digest shows that all properties were written together, not that icemigrate wrote them.
    try:
        table = table_from_text(decompress(value))
    except RecursionError as error:
        raise BadMetadata(f"`{key}`: it is nested too deeply") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise BadMetadata(f"`{key}`: {error}") from error
    if table.name != name:
        raise BadMetadata(f"`{key}` holds table `{table.name}`")
    return name, table
