"""One row of the history table: what was done, when, by whom, and how it ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from icemigrate.declare.version import Version
from icemigrate.errors import HistoryError
from icemigrate.frozen import Frozen
from icemigrate.model.schema import Schema
from icemigrate.model.type_text import format_type
from icemigrate.model.types import Field, List, Primitive, Type, same_type
from icemigrate.redaction import redact

Action: TypeAlias = Literal[
    "apply", "rollback", "refill", "unlock", "repair", "squash", "baseline", "maintain", "reconcile"
]
Outcome: TypeAlias = Literal[
    "started",
    "applied",
    "rolled_back",
    "failed",
    "interrupted",
    "repaired",
    "unlocked",
    "squashed",
    "baselined",
    "maintained",
    "reconciled",
]


class Record(Frozen):
    """A row.  Rows are appended and never changed: a later row of the same version stands for it.

    :param version: ``None`` where the row is about no single one (a lock that was taken away).
    :param outcome: ``started`` before the first change; ``failed`` where all that was done was undone again.
    :param finished_at: ``None`` in the row that says that it began.
    :param action: what was asked for.
    :param run: of the lock under which it was done: the same in all rows of one call of icemigrate.
    :param checksum: of the file's parsed content, see :mod:`icemigrate.declare`.
    :param fingerprint: of the file's bytes; kept beside the checksum, and no column of the table.
    :param since: of a squash, the first version that it stands for; no column of the table either.
    :param stays: what a rollback left of what the version did, in words; no column of the table either.
    :param started_at: with time zone, as every time here.
    :param user: who ran it, by the operating system.
    :param tables: names of the tables that it touched, sorted.
    :param statements: what was run, in order; a metadata commit stands as a sentence.
    :param message: why it failed; ``None`` where it did not.
    """

    version: Version | None
    description: str
    checksum: str
    project: str
    environment: str
    outcome: Outcome
    started_at: datetime
    finished_at: datetime | None
    user: str
    host: str
    tool_version: str
    tables: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    message: str | None = None
    action: Action = "apply"
    run: str = ""
    fingerprint: str = ""
    since: str = ""
    stays: tuple[str, ...] = ()

    @property
    def duration_ms(self) -> int:
        """How long it took; 0 for what has not ended."""
        if self.finished_at is None:
            return 0
        return round((self.finished_at - self.started_at).total_seconds() * 1000)

    def row(self) -> dict[str, Any]:
        """The values by column of :data:`SCHEMA`."""
        return {
            "version": None if self.version is None else self.version.number,
            "version_text": None if self.version is None else self.version.text,
            "description": self.description,
            "checksum": self.checksum,
            "project": self.project,
            "environment": self.environment,
            "outcome": self.outcome,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "duration_ms": None if self.finished_at is None else self.duration_ms,
            "user": self.user,
            "host": self.host,
            "tool_version": self.tool_version,
            "tables": list(self.tables),
            "statements": [redact(statement) for statement in self.statements],
            "message": None if self.message is None else redact(self.message),
            "action": self.action,
            "run": self.run,
        }


_LONG, _STRING, _TIME = Primitive("long"), Primitive("string"), Primitive("timestamptz")

_COLUMNS: tuple[tuple[str, Type, str], ...] = (
    ("version", _LONG, "The migration's version as a number"),
    ("version_text", _STRING, "The version as the file's name has it"),
    ("description", _STRING, "The file's description"),
    ("checksum", _STRING, "Checksum of the file's content, without layout and comments"),
    ("project", _STRING, "The project that the migration belongs to"),
    ("environment", _STRING, "The environment it was applied in"),
    (
        "outcome",
        _STRING,
        "started, applied, rolled_back, failed, interrupted, repaired, unlocked, squashed, baselined, "
        "maintained or reconciled",
    ),
    ("started_at", _TIME, "When it began"),
    ("finished_at", _TIME, "When it ended"),
    ("duration_ms", _LONG, "How long it took, in milliseconds"),
    ("user", _STRING, "Who ran it"),
    ("host", _STRING, "The machine it was run on"),
    ("tool_version", _STRING, "The version of icemigrate that ran it"),
    ("tables", _STRING, "The tables that it touched"),
    ("statements", _STRING, "What was run, in order"),
    ("message", _STRING, "Why it failed"),
    (
        "action",
        _STRING,
        "What was asked for: apply, rollback, unlock, repair, squash, baseline, maintain or reconcile",
    ),
    ("run", _STRING, "The same in all rows of one call of icemigrate"),
)
_OPTIONAL = {"version", "version_text", "finished_at", "duration_ms", "message"}
_LISTS = ("tables", "statements")


def _column(index: int, name: str, type_: Type, doc: str) -> Field:
    if name in _LISTS:
        # Ids of what lies below follow those of all columns, as Iceberg numbers a new table.
        element = len(_COLUMNS) + 1 + _LISTS.index(name)
        type_ = List(Field(element, "element", type_, required=True))
    return Field(index, name, type_, required=name not in _OPTIONAL, doc=doc)


SCHEMA = Schema(tuple(_column(i, *column) for i, column in enumerate(_COLUMNS, start=1)))
"""The history table's columns."""


def check_columns(there: Schema) -> None:
    """See that rows can still be written to a history's columns; what others added is none of ours.

    :raises HistoryError: somebody altered them.
    """
    found = {field.name: field for field in there.fields}
    for field in SCHEMA.fields:
        other = found.pop(field.name, None)
        if other is None:
            raise _altered(f"`{field.name}` is missing")
        if not same_type(field.type, other.type) or (other.required and not field.required):
            required = ", required" if other.required else ""
            raise _altered(f"`{field.name}` is {format_type(other.type)}{required}")
    for field in found.values():
        if field.required and field.write_default is None:
            raise _altered(f"`{field.name}` is required, and nothing is ever written there")


def _altered(reason: str) -> HistoryError:
    return HistoryError(
        f"its columns were altered: {reason}",
        "only icemigrate may change them: set them back to what an earlier metadata file of the table says, "
        "under the same field ids",
    )
