"""One row of the history table: the action, its time, its user, and its outcome."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Literal, TypeAlias

from icemigrate.errors import HistoryError
from icemigrate.files.read.list_sources import ListValues
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.type_text import format_type
from icemigrate.iceberg.types import Field, List, Primitive, Type, same_type
from icemigrate.planning.plan import Direction, MigrationPlan
from icemigrate.redaction import redact_secrets

Action: TypeAlias = Literal[
    "apply", "rollback", "refill", "unlock", "repair", "squash", "baseline", "maintain", "reconcile", "reset",
    "alter",
]  # fmt: skip


class RunOutcome(str, Enum):
    """How a run ended; the value of the column ``outcome``."""

    STARTED = "started"
    """Written before the first change of a migration."""
    APPLIED = "applied"
    EXTENDED = "extended"
    """An applied migration was applied to new values of its lists."""
    ROLLED_BACK = "rolled_back"
    FAILED = "failed"
    """The migration failed, and everything that it had changed was undone."""
    INTERRUPTED = "interrupted"
    """The migration failed, and some of its changes remain."""
    REPAIRED = "repaired"
    UNLOCKED = "unlocked"
    SQUASHED = "squashed"
    BASELINED = "baselined"
    MAINTAINED = "maintained"
    RECONCILED = "reconciled"
    RESET = "reset"
    ALTERED = "altered"
    """A user changed a table with `icemigrate table` or `adopt-parquet`."""

    def __str__(self) -> str:
        return self.value


def outcome_of(migration: MigrationPlan) -> RunOutcome:
    """The outcome of a migration that has run."""
    if migration.direction is not Direction.APPLY:
        return RunOutcome.ROLLED_BACK
    return RunOutcome.EXTENDED if migration.extends else RunOutcome.APPLIED


class ManualFact(Frozen):
    """A fact that a user changed with `icemigrate table` or `adopt-parquet`; see
    :class:`~icemigrate.planning.drift.differing_facts.DifferingFact`.

    :param uuid: of the table.
    :param key: with field ids.
    :param actual: the value after the change, as text.
    """

    uuid: str
    key: tuple[str | int, ...]
    actual: str


class HistoryRecord(Frozen):
    """A row.  Rows are appended and never changed: a later row of a version supersedes an earlier one.

    :param version: ``None`` for a row without a single version (a lock that was removed).
    :param outcome: ``started`` before the first change; ``failed`` where every change was undone.
    :param finished_at: ``None`` in the row of a start.
    :param action: the command.
    :param run: id of the lock's acquisition: the same in all rows of one call of icemigrate.
    :param checksum: of the file's parsed content, see :mod:`icemigrate.files`.
    :param fingerprint: of the file's bytes; not a column of the table.
    :param since: of a squash, the first version that it replaces; not a column of the table.
    :param remaining_effects: effects of the version that a rollback left, as phrases; not a column of the
        table.
    :param lists: the values of lists for which the version is applied; not a column of the table.
    :param facts: what a manual change made different; not a column of the table.
    :param started_at: with time zone, as every time here.
    :param user: by the operating system.
    :param tables: names of the changed tables, sorted.
    :param statements: the statements, in order; a metadata commit as a sentence.
    :param message: why it failed; ``None`` where it did not.
    """

    version: Version | None
    description: str
    checksum: str
    project: str
    environment: str
    outcome: RunOutcome
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
    remaining_effects: tuple[str, ...] = ()
    facts: tuple[ManualFact, ...] = ()
    lists: tuple[ListValues, ...] = ()

    @property
    def duration_ms(self) -> int:
        """The duration; 0 while it has not ended, and where the clock was set back meanwhile."""
        if self.finished_at is None:
            return 0
        return max(0, round((self.finished_at - self.started_at).total_seconds() * 1000))

    def row(self) -> dict[str, Any]:
        """The values by column of :data:`SCHEMA`."""
        special = {
            "version": None if self.version is None else self.version.number,
            "version_text": None if self.version is None else self.version.text,
            "outcome": self.outcome.value,
            "duration_ms": None if self.finished_at is None else self.duration_ms,
            "tables": list(self.tables),
            "statements": list(map(redact_secrets, self.statements)),
            "message": None if self.message is None else redact_secrets(self.message),
        }
        names = (column.name for column in SCHEMA.fields)
        return {name: special[name] if name in special else getattr(self, name) for name in names}


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
        "started, applied, extended, rolled_back, failed, interrupted, repaired, unlocked, squashed, "
        "baselined, maintained, reconciled, reset or altered",
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
        "What was asked for: apply, rollback, unlock, repair, squash, baseline, maintain, reconcile, "
        "reset or alter",
    ),
    ("run", _STRING, "The same in all rows of one call of icemigrate"),
)
_OPTIONAL = {"version", "version_text", "finished_at", "duration_ms", "message"}
_LISTS = ("tables", "statements")


def _column(index: int, name: str, type_: Type, doc: str) -> Field:
    if name in _LISTS:
        # Ids of nested fields follow those of all columns, as Iceberg numbers a new table.
        element = len(_COLUMNS) + 1 + _LISTS.index(name)
        type_ = List(Field(element, "element", type_, required=True))
    return Field(index, name, type_, required=name not in _OPTIONAL, doc=doc)


SCHEMA = Schema(tuple(_column(i, *column) for i, column in enumerate(_COLUMNS, start=1)))
"""The history table's columns."""


def check_columns(there: Schema) -> None:
    """Check that rows can be written to a history's columns; additional columns are allowed.

    :raises HistoryError: another client altered them.
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
        "only icemigrate may change them: restore their values from an earlier metadata file of the table, "
        "under the same field ids",
    )
