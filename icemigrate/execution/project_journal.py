"""The journal of a project in an environment, with the lease that the environment sets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from icemigrate.errors import UsageError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.history.history_io import HistoryWriter
from icemigrate.history.journal import LOCK_TIMEOUT_S, Journal
from icemigrate.history.project_lock import LOCK_LEASE_S
from icemigrate.iceberg.retention import BadDuration, parse_seconds

if TYPE_CHECKING:
    from icemigrate.spark.engine_port import Engine

LEASE_VARIABLE = "ICEMIGRATE_LOCK_LEASE"
"""The environment variable with the lease of the lock: seconds, or a duration such as ``2m``."""


def open_journal(session: EnvironmentSession, engine: Engine, timeout_s: float | None = None) -> Journal:
    """The journal of a project in an environment.

    :param timeout_s: how long to wait while another process holds the lock; ``None`` for the default.
    :raises UsageError: the lease in the environment is not a duration.
    """
    writer = HistoryWriter(engine, session.history_name, session.project.name)
    return Journal(writer, _lease_s(), LOCK_TIMEOUT_S if timeout_s is None else timeout_s)


def _lease_s() -> float:
    text = os.environ.get(LEASE_VARIABLE)
    if text is None:
        return LOCK_LEASE_S
    try:
        lease = parse_seconds(text)
    except BadDuration as error:
        raise UsageError(f"{LEASE_VARIABLE}: {error}", f"the default is {LOCK_LEASE_S:g}") from error
    if lease == 0:
        raise UsageError(f"{LEASE_VARIABLE}: the lease cannot be 0", f"the default is {LOCK_LEASE_S:g}")
    return lease
