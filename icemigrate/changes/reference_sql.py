"""What the kinds that change branches and tags have in common, and what Spark SQL cannot say of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Phase, Problem, Sql, Subject
from icemigrate.changes.statements import alter_table
from icemigrate.model.names import TableName
from icemigrate.model.table import CURRENT_SNAPSHOT, Ref
from icemigrate.sql.names import quote

BRANCH, TAG = "branch", "tag"
MAIN = "main"
TAG_WITHOUT_SNAPSHOT = "tag-without-snapshot"

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

    phase: ClassVar[Phase] = Phase.REFERENCES

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
        """The reference, below its table."""
        return f"{self.table}.{self.name}"


def reference_subject(name: str, kind: str) -> Subject:
    """Where a reference stands in a table entry."""
    return ("branches" if kind == BRANCH else "tags", name)


def create_sql(catalog: str, table: TableName, name: str, ref: Ref) -> Sql:
    """``CREATE BRANCH`` or ``CREATE TAG``."""
    return _reference_sql("CREATE", catalog, table, name, ref)


def replace_sql(catalog: str, table: TableName, name: str, ref: Ref) -> Sql:
    """``REPLACE BRANCH`` or ``REPLACE TAG``; a limit that is not said stays as it was."""
    return _reference_sql("REPLACE", catalog, table, name, ref)


def drop_sql(catalog: str, table: TableName, name: str, kind: str) -> Sql:
    """``DROP BRANCH`` or ``DROP TAG``."""
    return alter_table(catalog, table, f"DROP {kind.upper()} {quote(name)}")


def _reference_sql(verb: str, catalog: str, table: TableName, name: str, ref: Ref) -> Sql:
    action = f"{verb} {ref.kind.upper()} {quote(name)}"
    if ref.snapshot_id != CURRENT_SNAPSHOT:
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
    """An age in words, to the millisecond: others than Spark set them so."""
    word, size = next(w for w in _WORDS if ms % w[1] == 0)
    return _counted(ms // size, word)


def _counted(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else f'{word}s'}"


def limits(ref: Ref) -> tuple[int | None, int | None, int | None]:
    """What is declared of a reference."""
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
    """Its kind and its limits, in words."""
    return f"{ref.kind}{limits_text(ref) or ', kept for ever'}"


def unsayable_problem(table: TableName, name: str, ref: Ref, has_snapshot: bool) -> Iterator[Problem]:
    """Why a reference cannot be made, or cannot be given these limits."""
    subject = reference_subject(name, ref.kind)
    if ref.kind == TAG and not has_snapshot:
        yield Problem(
            TAG_WITHOUT_SNAPSHOT,
            table,
            subject,
            f"tag `{name}` would point at nothing: nobody has written to the table yet",
            "make the tag in a later migration, when the table has rows",
        )
    if any(ms is not None and ms % _UNITS[-1][1] for ms in (ref.max_ref_age_ms, ref.max_snapshot_age_ms)):
        yield Problem(
            "age-not-in-minutes",
            table,
            subject,
            f"an age of {ref.kind} `{name}` is no whole number of minutes, which Spark SQL cannot say",
            "write whole minutes, hours or days",
        )
