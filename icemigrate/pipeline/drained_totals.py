"""What a stream has drained, by tenant and kind: a file for each batch, in the checkpoint.

A file has the totals up to its batch.  It is written before Spark marks the batch as complete, and a repeated
batch writes it again, from the totals of the batch before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from icemigrate.errors import EngineError, os_error_reason
from icemigrate.frozen import Frozen
from icemigrate.pipeline.batch_commit import TableBatch
from icemigrate.system.file_writes import sync_folder

_FOLDER = "totals"
_KEPT = 2
"""A batch that is not complete needs the totals before it."""


class TenantTotals(Frozen):
    """What is drained of one tenant and kind.

    :param tenant: ``None``, as the kind, for bytes that are no entry of a tenant.
    :param entries: entries in the table.
    :param rows: rows of these entries.
    :param quarantined: entries in the quarantine.
    :param problem: why entries of the last batch with some stay in the log; ``None`` where none do.
    """

    tenant: str | None
    kind: str | None
    entries: int = 0
    rows: int = 0
    quarantined: int = 0
    problem: str | None = None


def record_totals(checkpoint: Path, number: int, tables: Iterable[TableBatch]) -> None:
    """Write the totals with a batch.

    :param number: of the batch.
    :raises EngineError: they cannot be read or written.
    """
    folder = checkpoint / _FOLDER
    totals = {(one.tenant, one.kind): one for one in read_totals(checkpoint, number - 1)}
    unknown = 0
    for table in tables:
        if table.tenant is None:
            unknown += table.entries
            continue
        before = totals.get((table.tenant, table.kind), TenantTotals(table.tenant, table.kind))
        totals[table.tenant, table.kind] = _added(before, table)
        unknown -= table.quarantined
    if unknown:
        before = totals.get((None, None), TenantTotals(None, None))
        totals[None, None] = TenantTotals(None, None, quarantined=before.quarantined + unknown)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{number}.json", msgspec.json.encode(tuple(totals.values())))
        for other in _numbers(folder):
            if other <= number - _KEPT:
                _path(folder, other).unlink(missing_ok=True)
    except OSError as error:
        raise EngineError(
            f"the checkpoint {checkpoint} cannot be written: {os_error_reason(error)}",
            "check the free space, and the right to write there",
        ) from error


def read_totals(checkpoint: Path, number: int) -> tuple[TenantTotals, ...]:
    """The totals up to a batch.

    :raises EngineError: they cannot be read.
    """
    folder = checkpoint / _FOLDER
    try:
        last = max((one for one in _numbers(folder) if one <= number), default=None)
        if last is None:
            return ()
        return msgspec.json.decode(_path(folder, last).read_bytes(), type=tuple[TenantTotals, ...])
    except (OSError, msgspec.DecodeError) as error:
        reason = os_error_reason(error) if isinstance(error, OSError) else "a file is damaged"
        raise EngineError(
            f"the totals in {folder} cannot be read: {reason}",
            "remove this folder to count from now on; the entries are not affected",
        ) from error


def _added(before: TenantTotals, table: TableBatch) -> TenantTotals:
    """Totals with those of a batch; entries that stay in the log do not count."""
    is_done = table.problem is None
    return TenantTotals(
        before.tenant,
        before.kind,
        before.entries + (table.entries if is_done else 0),
        before.rows + table.rows,
        before.quarantined + table.quarantined,
        table.problem if table.entries else before.problem,
    )


def _numbers(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()]


def _path(folder: Path, number: int) -> Path:
    return folder / f"{number}.json"


def _write(path: Path, content: bytes) -> None:
    """Write a file that is never seen in part."""
    new = path.with_suffix(".new")
    with new.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(path)
    sync_folder(path.parent)
