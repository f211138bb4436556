"""The history row of a command that runs no plan, such as ``repair``, ``maintain`` and ``reset``."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from icemigrate import versions
from icemigrate.files.version_number import Version
from icemigrate.history.history_record import Action, HistoryRecord, RunOutcome

if TYPE_CHECKING:
    from icemigrate.execution.environment_session import EnvironmentSession
    from icemigrate.history.journal import LockedJournal


def command_record(
    session: EnvironmentSession,
    held: LockedJournal,
    action: Action,
    outcome: RunOutcome,
    description: str,
    *,
    started_at: datetime | None = None,
    version: Version | None = None,
    checksum: str = "",
    fingerprint: str = "",
    tables: tuple[str, ...] = (),
    statements: tuple[str, ...] = (),
    message: str | None = None,
) -> HistoryRecord:
    """A row by the holder of the lock, whose command ends now.

    :param started_at: ``None`` for a command that takes no time.
    :param version: ``None`` for a row without a single version.
    """
    now, by = datetime.now(timezone.utc), held.lock.holder
    return HistoryRecord(
        version=version,
        description=description,
        checksum=checksum,
        project=session.project.name,
        environment=session.environment.name,
        outcome=outcome,
        started_at=started_at or now,
        finished_at=now,
        user=by.user,
        host=by.host,
        tool_version=versions.ICEMIGRATE,
        tables=tables,
        statements=statements,
        message=message,
        action=action,
        run=held.run,
        fingerprint=fingerprint,
    )
