"""The tenants that appear in a log: those that are drained, and those whose entries wait."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.errors import EngineError, os_error_reason
from icemigrate.pipeline.drained_totals import read_drained_and_waiting
from icemigrate.project.project_values import PipelineSettings
from icemigrate.project.tenant_tables import log_of


def seen_tenants(settings: PipelineSettings, storage: Mapping[str, str]) -> tuple[str, ...]:
    """The ids of the tenants, sorted; none while there is no log yet.

    Bytes that are no entry of a tenant, and ids that cannot be a part of a name, are left out.

    :param settings: with a log.
    :param storage: how to sign in where the log is on a remote storage, by PyIceberg's keys.
    :raises LogError: an entry of the log cannot be read.
    :raises EngineError: the log or the checkpoint cannot be read.
    """
    log, checkpoint = log_of(settings, None, None, lambda: storage)
    try:
        if not log.exists():
            return ()
        _, totals, waiting = read_drained_and_waiting(log, checkpoint)
    except OSError as error:
        raise EngineError(
            f"the log {log} cannot be read: {os_error_reason(error)}",
            "check `log` of `pipeline` and the access to it",
        ) from error
    found = {*(one.tenant for one in totals.tenants), *(one.tenant for one in waiting)}
    return tuple(sorted(tenant for tenant in found if tenant is not None))
