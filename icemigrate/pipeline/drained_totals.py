"""What a stream has drained, by tenant and kind: a file for each batch, in the checkpoint.

A file has the totals up to its batch.  It is written before Spark marks the batch as complete, and a repeated
batch writes it again, from the totals of the batch before it.  So the file of the last complete batch exists,
and a reader that does not find it reads the number of that batch again.

Rates are of the current window of five minutes and the one before it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from icemigrate.errors import EngineError, os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.pipeline.batch_records import record_path, write_record
from icemigrate.pipeline.stream_checkpoint import last_complete
from icemigrate.pipeline.waiting_entries import WaitingEntries, waiting_entries
from icemigrate.wal.storage_path import AnyPath

_FOLDER = "totals"
_TRIES = 20
"""How often a log is read until no batch completes meanwhile."""
WINDOW_S = 300
"""How long a window is, in seconds."""


class TenantTotals(Frozen):
    """What is drained of one tenant and kind.

    :param tenant: ``None``, as the kind, for bytes that are no entry of a tenant.
    :param entries: entries in the table.
    :param rows: rows of these entries.
    :param quarantined: entries in the quarantine.
    :param problem: why entries of the last batch with some stay in the log; ``None`` where none do.
    :param problem_since_s: when the table began to have a problem, in seconds since 1970.
    :param failures: batches in a row whose entries stay in the log.
    :param recent: entries of the current window.
    :param before: entries of the window before it.
    """

    tenant: str | None
    kind: str | None
    entries: int = 0
    rows: int = 0
    quarantined: int = 0
    problem: str | None = None
    problem_since_s: float | None = None
    failures: int = 0
    recent: int = 0
    before: int = 0


class DrainedTotals(Frozen):
    """What a stream has drained up to a batch.

    :param earlier_s: when the window before the current one began, in seconds since 1970.
    :param window_s: when the current window began.
    :param recent_rows: of all tenants in the current window.
    :param before_rows: of all tenants in the window before it.
    """

    tenants: tuple[TenantTotals, ...] = ()
    earlier_s: float = 0.0
    window_s: float = 0.0
    recent_rows: int = 0
    before_rows: int = 0

    def rate(self, count: int, now_s: float) -> float:
        """A number of both windows for each second."""
        return count / max(now_s - self.earlier_s, 1.0)


def record_totals(
    checkpoint: AnyPath, number: int, tables: Iterable[TableBatch], began_s: float, now_s: float
) -> None:
    """Write the totals with a batch.

    :param number: of the batch.
    :param began_s: when it began, in seconds since 1970.
    :raises EngineError: they cannot be read or written.
    """
    windows = _with_window(read_totals(checkpoint, number - 1) or DrainedTotals(), began_s, now_s)
    totals = {(one.tenant, one.kind): one for one in windows.tenants}
    unknown = rows = 0
    for table in tables:
        if table.tenant is None:
            unknown += table.entries
            continue
        before = totals.get((table.tenant, table.kind), TenantTotals(table.tenant, table.kind))
        totals[table.tenant, table.kind] = _added(before, table, now_s)
        unknown -= table.quarantined
        rows += table.rows
    if unknown:
        before = totals.get((None, None), TenantTotals(None, None))
        totals[None, None] = TenantTotals(None, None, quarantined=before.quarantined + unknown)
    written = replace(windows, tenants=tuple(totals.values()), recent_rows=windows.recent_rows + rows)
    write_record(checkpoint, _FOLDER, number, msgspec.json.encode(written))


def read_totals(checkpoint: AnyPath, number: int) -> DrainedTotals | None:
    """The totals up to a batch; ``None`` where they are not kept.

    :raises EngineError: they cannot be read.
    """
    folder = checkpoint / _FOLDER
    try:
        return msgspec.json.decode(record_path(folder, number).read_bytes(), type=DrainedTotals)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        reason = os_error_reason(error) if isinstance(error, OSError) else "a file is damaged"
        raise EngineError(
            f"the totals in {folder} cannot be read: {reason}",
            "remove this folder to count from now on; the entries are not affected",
        ) from error


def read_complete_totals(checkpoint: AnyPath) -> tuple[int, DrainedTotals]:
    """The totals up to the last complete batch, also beside a running stream.

    :returns: the number of that batch, -1 for none, and the totals.
    :raises EngineError: the checkpoint cannot be read.
    """
    while True:
        complete = last_complete(checkpoint)
        totals = read_totals(checkpoint, complete)
        # A stream that completed further batches may have removed the totals of this one.
        if totals is not None or last_complete(checkpoint) == complete:
            return complete, totals or DrainedTotals()


def read_drained_and_waiting(
    log: AnyPath, checkpoint: AnyPath
) -> tuple[int, DrainedTotals, tuple[WaitingEntries, ...]]:
    """The number of the last complete batch, the totals up to it, and what waits after it.

    :raises LogError: the log cannot be read.
    :raises EngineError: the checkpoint cannot be read, or batches complete faster than the log is read.
    """
    for _ in range(_TRIES):
        complete, totals = read_complete_totals(checkpoint)
        # With this number, a batch that completes meanwhile counts as waiting, and is never missing.
        waiting = waiting_entries(log, checkpoint, complete)
        if waiting is not None:
            return complete, totals, waiting
    raise EngineError(
        f"`ingest` removes segments of {log} faster than this command reads them",
        "set a longer `retention`, or run the command again when less waits",
    )


def _with_window(totals: DrainedTotals, began_s: float, now_s: float) -> DrainedTotals:
    """Totals with the window that a batch belongs to; windows without a batch do not count."""
    age_s = now_s - totals.window_s
    if 0 <= age_s < WINDOW_S:
        return totals
    is_next = 0 <= age_s < 2 * WINDOW_S
    return DrainedTotals(
        tuple(
            one if one.recent == one.before == 0 else replace(one, recent=0, before=one.recent * is_next)
            for one in totals.tenants
        ),
        totals.window_s if is_next else began_s,
        now_s if is_next else began_s,
        0,
        totals.recent_rows * is_next,
    )


def _added(before: TenantTotals, table: TableBatch, now_s: float) -> TenantTotals:
    """Totals with those of a batch; entries that stay in the log do not count."""
    ingested = table.entries if table.problem is None else 0
    found = replace(
        before,
        entries=before.entries + ingested,
        rows=before.rows + table.rows,
        quarantined=before.quarantined + table.quarantined,
        recent=before.recent + ingested,
    )
    if not table.entries:
        return found
    if table.problem is None:
        return replace(found, problem=None, problem_since_s=None, failures=0)
    since_s = now_s if before.problem_since_s is None else before.problem_since_s
    return replace(found, problem=table.problem, problem_since_s=since_s, failures=before.failures + 1)
