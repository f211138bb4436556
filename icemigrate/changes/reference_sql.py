"""The base of the kinds that change branches and tags, their SQL, and the limits of that SQL."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import Change, ChangePhase, PlanProblem, SqlStatement, Subject
from icemigrate.changes.statement_shapes import alter_table
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.snapshot_pins import UNKNOWN_SNAPSHOT
from icemigrate.iceberg.table import CURRENT_SNAPSHOT, Ref, Table
from icemigrate.spark_sql.identifiers import quote

BRANCH, TAG = "branch", "tag"
MAIN = "main"

_UNITS = (("DAYS", 86_400_000), ("HOURS", 3_600_000), ("MINUTES", 60_000))
_WORDS = (
    ("day", 86_400_000),
    ("hour", 3_600_000),
    ("minute", 60_000),
    ("second", 1_000),
    ("millisecond", 1),
)


class ReferenceChange(Change):
    """A change of one branch or tag."""

    phase: ClassVar[ChangePhase] = ChangePhase.REFERENCES

    name: str

    @property
    @abstractmethod
    def ref_kind(self) -> str:
        """:data:`BRANCH` or :data:`TAG`."""

    @property
    def subject(self) -> Subject:
        """The key of a table entry."""
        return reference_subject(self.name, self.ref_kind)

    def scope(self) -> str:
        return f"{self.table}.{self.name}"


def reference_subject(name: str, kind: str) -> Subject:
    """The key of a reference in a table entry."""
    return ("branches" if kind == BRANCH else "tags", name)


def create_reference_sql(catalog: str, table: TableName, name: str, ref: Ref) -> SqlStatement:
    """``CREATE BRANCH`` or ``CREATE TAG``; see :func:`is_on_empty_snapshot` for what it cannot create."""
    return _reference_sql("CREATE", catalog, table, name, ref)


def is_on_empty_snapshot(ref: Ref, before: Table) -> bool:
    """Whether a metadata commit creates the reference, on an empty snapshot of its own.

    A table without a snapshot has none that a tag could refer to, and ``CREATE TAG`` fails there.  ``CREATE
    BRANCH`` adds an empty snapshot itself.
    """
    return ref.kind == TAG and ref.snapshot_id == CURRENT_SNAPSHOT and before.snapshot is None


def replace_reference_sql(catalog: str, table: TableName, name: str, ref: Ref) -> SqlStatement:
    """``REPLACE BRANCH`` or ``REPLACE TAG``; limits that the statement does not set stay as they are."""
    return _reference_sql("REPLACE", catalog, table, name, ref)


def drop_reference_sql(catalog: str, table: TableName, name: str, kind: str) -> SqlStatement:
    """``DROP BRANCH`` or ``DROP TAG``."""
    return alter_table(catalog, table, f"DROP {kind.upper()} {quote(name)}")


def _reference_sql(verb: str, catalog: str, table: TableName, name: str, ref: Ref) -> SqlStatement:
    action = f"{verb} {ref.kind.upper()} {quote(name)}"
    if ref.snapshot_id > CURRENT_SNAPSHOT:
        action += f" AS OF VERSION {ref.snapshot_id}"
    if ref.max_ref_age_ms is not None:
        action += f" RETAIN {_age(ref.max_ref_age_ms)}"
    kept = []
    if ref.min_snapshots_to_keep is not None:
        kept.append(f"{ref.min_snapshots_to_keep} SNAPSHOTS")
    if ref.max_snapshot_age_ms is not None:
        kept.append(_age(ref.max_snapshot_age_ms))
    if kept:
        action += f" WITH SNAPSHOT RETENTION {' '.join(kept)}"
    return alter_table(catalog, table, action)


def _age(ms: int) -> str:
    unit, size = next((u for u in _UNITS if ms % u[1] == 0), _UNITS[-1])
    return f"{ms // size} {unit}"


def _age_text(ms: int) -> str:
    """An age in words, to the millisecond, as clients other than Spark can set it."""
    word, size = next(w for w in _WORDS if ms % w[1] == 0)
    return _counted(ms // size, word)


def _counted(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else f'{word}s'}"


def reference_limits(ref: Ref) -> tuple[int | None, int | None, int | None]:
    """The limits of a reference: its age, the age of its snapshots, and their minimum number."""
    return (ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep)


def limits_text(ref: Ref) -> str:
    """The limits in words, as the end of a description; empty for none."""
    parts = []
    if ref.max_ref_age_ms is not None:
        parts.append(f"for {_age_text(ref.max_ref_age_ms)}")
    if ref.min_snapshots_to_keep is not None:
        parts.append(f"at least {_counted(ref.min_snapshots_to_keep, 'snapshot')}")
    if ref.max_snapshot_age_ms is not None:
        parts.append(f"snapshots for {_age_text(ref.max_snapshot_age_ms)}")
    return f", kept {', '.join(parts)}" if parts else ""


def reference_text(ref: Ref) -> str:
    """The kind and the limits of a reference, in words."""
    return f"{ref.kind}{limits_text(ref) or ', kept forever'}"


def snapshot_text(snapshot_id: int) -> str:
    """A snapshot in words; one that only the catalog knows has no id."""
    if snapshot_id == CURRENT_SNAPSHOT:
        return "its snapshot"
    return "its declared snapshot" if snapshot_id == UNKNOWN_SNAPSHOT else f"snapshot {snapshot_id}"


def reference_sql_problems(table: TableName, name: str, ref: Ref) -> Iterator[PlanProblem]:
    """Why Spark SQL cannot create a reference or set its limits."""
    subject = reference_subject(name, ref.kind)
    if any(ms is not None and ms % _UNITS[-1][1] for ms in (ref.max_ref_age_ms, ref.max_snapshot_age_ms)):
        yield PlanProblem(
            "age-not-in-minutes",
            table,
            subject,
            f"an age of {ref.kind} `{name}` is not a whole number of minutes, and Spark SQL cannot set it",
            "use whole minutes, hours or days",
        )
