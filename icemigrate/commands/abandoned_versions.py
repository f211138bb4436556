"""``repair --abandon``: rolled-back versions that no redo applies again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from icemigrate.commands.history_corrections import correct_history, locked_for_repair
from icemigrate.errors import UsageError
from icemigrate.execution.command_record import command_record
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.version_number import number_of
from icemigrate.history.history_properties import AppliedVersion, History
from icemigrate.history.history_record import HistoryRecord, RunOutcome
from icemigrate.history.recorded_versions import VersionState
from icemigrate.history.superseding import with_abandoned
from icemigrate.project import Project
from icemigrate.results.command_results import RepairResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.history.journal import Journal, LockedJournal


def abandon_versions(
    project: Project,
    environment: str | None = None,
    versions: Sequence[str] = (),
    *,
    spark: SparkSession | None = None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> RepairResult:
    """Exclude rolled-back versions from every redo in this environment.

    Writes only the history, which keeps the versions.  A version that is abandoned already is passed over.

    :param on_start: called before Spark is started, which only happens where there is something to record.
    :raises UsageError: a version is not rolled back; nothing was recorded.
    :raises LockHeld: another process held the lock until the timeout.
    :raises HistoryError: the history cannot be used.
    """
    with open_environment(project, environment) as session:
        done: tuple[str, ...] = ()
        if _to_abandon(session.history(), versions):
            record = partial(record_abandoned, session, versions)
            done = correct_history(session, record, spark, on_start, lock_timeout_s)
        return RepairResult(project.name, session.environment.name, abandoned=done, action="abandon")


def record_abandoned(
    session: EnvironmentSession, versions: Sequence[str], journal: Journal
) -> tuple[str, ...]:
    """Look again under the lock, and record.

    :raises UsageError: as :func:`abandon_versions`.
    :raises LockHeld: as :func:`abandon_versions`.
    """
    with locked_for_repair(journal) as held:
        found = _to_abandon(held.history(), versions)
        records = [_record(session, held, one) for one in found]
        if records:
            held.supersede(records, partial(with_abandoned, versions={one.version for one in found}))
    return tuple(one.version.text for one in found)


def _to_abandon(history: History, versions: Sequence[str]) -> list[AppliedVersion]:
    """The named versions that are not abandoned yet.

    :raises UsageError: one of them is not rolled back, or its run was interrupted.
    """
    known = {a.version.number: a for a in history.applied}
    found: dict[int, AppliedVersion] = {}
    for text in versions:
        number = number_of(text)
        applied = None if number is None else known.get(number)
        if applied is None or applied.state is not VersionState.ROLLED_BACK:
            waiting = ", ".join(a.version.text for a in history.applied if a.awaits_redo)
            raise UsageError(
                f"--abandon {text}: {text if applied is None else applied.version} is not rolled back",
                f"rolled back: {waiting}"
                if waiting
                else "only a version that was rolled back can be abandoned",
            )
        intent = next((i for i in history.intents if i.version == applied.version), None)
        if intent is not None:
            raise UsageError(
                f"--abandon {text}: `{intent.command}` of {applied.version} was interrupted",
                "`icemigrate rollback` ends it",
            )
        if not applied.abandoned:
            found[applied.version.number] = applied
    return [found[number] for number in sorted(found)]


def _record(session: EnvironmentSession, held: LockedJournal, one: AppliedVersion) -> HistoryRecord:
    return command_record(
        session,
        held,
        "repair",
        RunOutcome.REPAIRED,
        one.description,
        version=one.version,
        checksum=one.checksum,
        fingerprint=one.fingerprint,
        message="abandoned: no redo applies it again",
    )
