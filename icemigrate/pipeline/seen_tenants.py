"""The tenants that appear in a log: those that are drained, and those whose entries wait."""

from __future__ import annotations

from icemigrate.pipeline.drained_totals import read_totals
from icemigrate.pipeline.stream_checkpoint import last_complete
from icemigrate.pipeline.waiting_entries import waiting_entries
from icemigrate.project.project_values import PipelineSettings
from icemigrate.project.tenant_tables import log_of


def seen_tenants(settings: PipelineSettings) -> tuple[str, ...]:
    """The ids of the tenants, sorted; none while there is no log yet.

    Bytes that are no entry of a tenant, and ids that cannot be a part of a name, are left out.

    :param settings: with a log.
    :raises LogError: the log cannot be read.
    :raises EngineError: the checkpoint cannot be read.
    """
    log, checkpoint = log_of(settings, None, None)
    if not log.exists():
        return ()
    while True:
        # A batch that completes meanwhile can remove what is not read yet: read it all again.
        complete = last_complete(checkpoint)
        totals = read_totals(checkpoint, complete)
        waiting = waiting_entries(log, checkpoint, complete)
        if totals is not None and waiting is not None:
            found = {one.tenant for one in (*totals.tenants, *waiting)}
            return tuple(sorted(tenant for tenant in found if tenant is not None))
