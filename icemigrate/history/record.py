"""One row of the history table: what was done, when, by whom, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from icemigrate.declare.version import Version
from icemigrate.model.schema import Schema
from icemigrate.model.types import Field, List, Primitive, Type

Outcome: TypeAlias = Literal["applied", "rolled_back", "failed", "interrupted", "repaired"]


@dataclass(frozen=True, slots=True)
class Record:
    """A row.  Rows are appended and never changed: a later row of the same version stands for it.

    :param checksum: of the file's parsed content, see :mod:`icemigrate.declare`.
    :param started_at: with time zone, as every time here.
    :param user: who ran it, by the operating system.
    :param tables: names of the tables that it touched, sorted.
    :param statements: what was run, in order; a metadata commit stands as a sentence.
    :param message: why it failed; ``None`` where it did not.
    """

    version: Version
    description: str
    checksum: str
    project: str
    environment: str
    outcome: Outcome
    started_at: datetime
    finished_at: datetime
    user: str
    host: str
    tool_version: str
    tables: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    message: str | None = None

    @property
    def duration_ms(self) -> int:
        """How long it took."""
        return round((self.finished_at - self.started_at).total_seconds() * 1000)

    def row(self) -> dict[str, Any]:
        """The values by column of :data:`SCHEMA`."""
        return {
            "version": self.version.number,
            "version_text": self.version.text,
            "description": self.description,
            "checksum": self.checksum,
            "project": self.project,
            "environment": self.environment,
            "outcome": self.outcome,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "duration_ms": self.duration_ms,
            "user": self.user,
            "host": self.host,
            "tool_version": self.tool_version,
            "tables": list(self.tables),
            "statements": list(self.statements),
            "message": self.message,
        }


_LONG, _STRING, _TIME = Primitive("long"), Primitive("string"), Primitive("timestamptz")

_COLUMNS: tuple[tuple[str, Type, str], ...] = (
    ("version", _LONG, "The migration's version as a number"),
    ("version_text", _STRING, "The version as the file's name has it"),
    ("description", _STRING, "The file's description"),
    ("checksum", _STRING, "Checksum of the file's content, without layout and comments"),
    ("project", _STRING, "The project that the migration belongs to"),
    ("environment", _STRING, "The environment it was applied in"),
    ("outcome", _STRING, "applied, rolled_back, failed, interrupted or repaired"),
    ("started_at", _TIME, "When it began"),
    ("finished_at", _TIME, "When it ended"),
    ("duration_ms", _LONG, "How long it took, in milliseconds"),
    ("user", _STRING, "Who ran it"),
    ("host", _STRING, "The machine it was run on"),
    ("tool_version", _STRING, "The version of icemigrate that ran it"),
    ("tables", _STRING, "The tables that it touched"),
    ("statements", _STRING, "What was run, in order"),
    ("message", _STRING, "Why it failed"),
)
_OPTIONAL = {"message"}
_LISTS = ("tables", "statements")


def _column(index: int, name: str, type_: Type, doc: str) -> Field:
    if name in _LISTS:
        # Ids of what lies below follow those of all columns, as Iceberg numbers a new table.
        element = len(_COLUMNS) + 1 + _LISTS.index(name)
        type_ = List(Field(element, "element", type_, required=True))
    return Field(index, name, type_, required=name not in _OPTIONAL, doc=doc)


SCHEMA = Schema(tuple(_column(i, *column) for i, column in enumerate(_COLUMNS, start=1)))
"""The history table's columns."""
