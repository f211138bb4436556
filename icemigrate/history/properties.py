"""What planning needs of a history, as properties of the history table.

Properties stand in the table's metadata, so a plan reads the base of all its tables with one JSON file.  Each
table is a property of its own: a migration rewrites only those of the tables that it touched.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

from icemigrate.declare.version import Version
from icemigrate.errors import HistoryError
from icemigrate.frozen import Frozen, field
from icemigrate.history.applied import Applied, Standing, applied_from_json, applied_to_json
from icemigrate.history.head import LockInfo
from icemigrate.history.intent import Intent, intent_from_json, intent_to_json
from icemigrate.history.undo_record import UndoRecord, unpack_undo
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.kept import table_from_text, table_to_text
from icemigrate.model.names import BadName, TableName
from icemigrate.model.sides import EMPTY_STATE, State
from icemigrate.model.table import Table

FORMAT = 2
"""Number of the form below; a change that an older icemigrate would misread counts it up."""

__all__ = ["Applied", "History", "Standing", "changes", "decode", "encode"]

PREFIX = "icemigrate."
FORMAT_KEY = PREFIX + "format"
PROJECT_KEY = PREFIX + "project"
APPLIED_KEY = PREFIX + "applied"
STATE_KEY = PREFIX + "state"
DIGEST_KEY = PREFIX + "digest"
LOG_KEY = PREFIX + "log"
TABLE_PREFIX = PREFIX + "table."
INTENT_PREFIX = PREFIX + "intent."
UNDO_PREFIX = PREFIX + "undo."
_PREFIXES = (TABLE_PREFIX, INTENT_PREFIX, UNDO_PREFIX)


class History(Frozen):
    """What a project's history says now.

    :param applied: one per version, by version.
    :param state: the tables as declared by what is applied, with the field ids that the catalog gave.
    :param intents: migrations that were begun and are neither done nor wholly undone, by version.
    :param undo: undo records by version's text, packed; see :meth:`undo_record`.
    :param log: what happened, packed; see :mod:`icemigrate.history.log`.
    :param head: id of the history table's current snapshot; ``None`` where it has none.
    :param lock: who may change tables now; ``None`` where nobody does.
    """

    project: str
    applied: tuple[Applied, ...] = ()
    state: State = EMPTY_STATE
    intents: tuple[Intent, ...] = ()
    undo: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    head: int | None = None
    lock: LockInfo | None = None

    @property
    def intent(self) -> Intent | None:
        """What was begun last and has no outcome yet."""
        return max(self.intents, key=lambda i: i.started_at, default=None)

    def of(self, version: Version) -> Applied | None:
        """Where a version stands; ``None`` where nothing of it was ever applied."""
        return next((a for a in self.applied if a.version == version), None)

    def undo_record(self, version: Version) -> UndoRecord | None:
        """What a version is undone from.

        :raises HistoryError: it is damaged, or a newer icemigrate wrote it.
        """
        packed = self.undo.get(version.text)
        return None if packed is None else unpack_undo(packed)


def encode(history: History) -> dict[str, str]:
    """All properties of a history."""
    state = history.state
    properties = {
        FORMAT_KEY: str(FORMAT),
        PROJECT_KEY: history.project,
        APPLIED_KEY: _compact([applied_to_json(a) for a in sorted(history.applied, key=lambda a: a.version)]),
        STATE_KEY: _compact(
            {
                "namespaces": sorted(list(namespace) for namespace in state.namespaces),
                "former": sorted(str(name) for name in state.former),
            }
        ),
        **{TABLE_PREFIX + str(name): _pack(table) for name, table in state.tables.items()},
        **{INTENT_PREFIX + i.version.text: _compact(intent_to_json(i)) for i in history.intents},
        **{UNDO_PREFIX + version: packed for version, packed in history.undo.items()},
        **({LOG_KEY: history.log} if history.log else {}),
    }
    return properties | {DIGEST_KEY: _digest(properties)}


def is_history(properties: Mapping[str, str]) -> bool:
    """Whether a table of these properties is a history, of whatever project."""
    return FORMAT_KEY in properties


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What must be set and what removed to get from the table's properties to those of :func:`encode`."""
    to_set = {key: value for key, value in after.items() if before.get(key) != value}
    return to_set, tuple(sorted(key for key in before if _is_ours(key) and key not in after))


def decode(properties: Mapping[str, str]) -> History:
    """Read what :func:`encode` wrote; other properties of the table do not matter.

    :raises HistoryError: they are not a history's, were written by a newer icemigrate, or were altered since.
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
            applied=tuple(applied_from_json(item) for item in json.loads(ours[APPLIED_KEY])),
            state=State(
                tables,
                frozenset(tuple(namespace) for namespace in state["namespaces"]),
                frozenset(TableName.parse(name) for name in state["former"]),
            ),
            intents=tuple(
                sorted(
                    (intent_from_json(json.loads(v)) for k, v in ours.items() if k.startswith(INTENT_PREFIX)),
                    key=lambda i: i.version,
                )
            ),
            undo={k.removeprefix(UNDO_PREFIX): v for k, v in ours.items() if k.startswith(UNDO_PREFIX)},
            log=ours.get(LOG_KEY, ""),
        )
    except KeyError as error:
        raise _altered(f"`{error.args[0]}` is missing") from error
    except (BadMetadata, BadName, ValueError, TypeError, AttributeError, zlib.error, binascii.Error) as error:
        raise _altered(str(error)) from error


def _check_format(properties: Mapping[str, str]) -> None:
    text = properties.get(FORMAT_KEY)
    if text is None:
        raise HistoryError(
            "it is an ordinary table, not a history",
            "name another table as `history:` in the project file",
        )
    if not (text.isascii() and text.isdigit()):
        raise _altered(f"`{FORMAT_KEY}` is {text!r}")
    if int(text) > FORMAT:
        raise HistoryError(
            f"it was written by a newer icemigrate (format {text}, known is {FORMAT})",
            "pip install --upgrade icemigrate",
        )


def _altered(reason: str) -> HistoryError:
    return HistoryError(
        f"its properties were altered or are damaged: {reason}",
        "only icemigrate may change them: set them back to what an earlier metadata file of the table says",
    )


def _is_ours(key: str) -> bool:
    whole = (FORMAT_KEY, PROJECT_KEY, APPLIED_KEY, STATE_KEY, DIGEST_KEY, LOG_KEY)
    return key in whole or key.startswith(_PREFIXES)


def _digest(properties: Mapping[str, str]) -> str:
    text = _compact(sorted(properties.items()))
    # What somebody altered may hold half a surrogate pair.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pack(table: Table) -> str:
    """A table as text: sixty columns are some kilobytes of JSON, and a tenth of it packed."""
    return base64.b64encode(zlib.compress(table_to_text(table).encode(), 9)).decode()


def _unpack(key: str, value: str) -> tuple[TableName, Table]:
    name = TableName.parse(key.removeprefix(TABLE_PREFIX))
    # All properties were written together, which their digest has told.
    table = table_from_text(zlib.decompress(base64.b64decode(value, validate=True)))
    if table.name != name:
        raise BadMetadata(f"`{key}` holds table `{table.name}`")
    return name, table
