"""The entries of a log that are in no table yet, by tenant and kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.frozen import Frozen
from icemigrate.pipeline.deferred_entries import TAKEN_BACK, waiting_segments
from icemigrate.pipeline.drained_segments import drained_segments
from icemigrate.pipeline.stream_checkpoint import last_complete, stream_id
from icemigrate.wal.entries import is_tenant_id
from icemigrate.wal.log_folder import OPEN, SEALED, open_segments, read_segment, sealed_segments
from icemigrate.wal.segment_format import TORN, StoredEntry, decode_segment
from icemigrate.wal.storage_path import AnyPath


class WaitingEntries(Frozen):
    """The entries of one tenant and kind that wait.

    :param tenant: ``None``, as the kind, for bytes that are no entry of a tenant.
    :param oldest_ns: when the oldest one was received, in nanoseconds since 1970; ``None`` for bytes without
        a time.
    """

    tenant: str | None
    kind: str | None
    entries: int
    oldest_ns: int | None

    def with_more(self, other: WaitingEntries) -> WaitingEntries:
        """These entries and further ones of the same tenant and kind."""
        times = [time for time in (self.oldest_ns, other.oldest_ns) if time is not None]
        return WaitingEntries(self.tenant, self.kind, self.entries + other.entries, min(times, default=None))


def waiting_entries(log: AnyPath, checkpoint: AnyPath, complete: int) -> tuple[WaitingEntries, ...] | None:
    """The entries of open, sealed and deferred segments that no complete batch has, by tenant and kind.

    :param complete: the number of the last complete batch; -1 for none.
    :returns: ``None`` where a further batch completed meanwhile, and segments can be removed.
    :raises LogError: the log cannot be read.
    :raises EngineError: the checkpoint cannot be read.
    """
    # Deferred segments move into the log, and open ones are sealed: those that change meanwhile are listed
    # under both names.
    deferred = {path.name: path for path in waiting_segments(stream_id(checkpoint), complete, log)}
    listed = dict[str, AnyPath]({path.name.removesuffix(OPEN): path for path in open_segments(log)})
    drained = frozenset(drained_segments(log, checkpoint, complete))
    sealed = [path for path in sealed_segments(log) if path not in drained]
    listed |= {path.name.removesuffix(SEALED): path for path in sealed}
    for path in sealed:
        deferred.pop(path.name.removeprefix(TAKEN_BACK), None)
    if last_complete(checkpoint) != complete:
        return None
    counts = list[WaitingEntries]()
    for path in (*listed.values(), *deferred.values()):
        content = read_segment(path) or read_segment(log / f"{TAKEN_BACK}{path.name}")
        if not content and not path.exists():
            return None
        counts += count_entries(content)
    return add_up(counts)


def count_entries(content: bytes) -> tuple[WaitingEntries, ...]:
    """The entries of a segment by tenant and kind."""
    return add_up(_entries(content))


def add_up(counts: Iterable[WaitingEntries]) -> tuple[WaitingEntries, ...]:
    """Counts by tenant and kind, one for each."""
    found = dict[tuple[str | None, str | None], WaitingEntries]()
    for one in counts:
        key = (one.tenant, one.kind)
        found[key] = one if key not in found else found[key].with_more(one)
    return tuple(found.values())


def _entries(content: bytes) -> Iterator[WaitingEntries]:
    """The entries of a segment, each as a count of one."""
    for part in decode_segment(content).parts:
        if isinstance(part, StoredEntry):
            entry = part.entry
            is_valid = is_tenant_id(entry.tenant)
            tenant, kind = (entry.tenant, entry.kind.value) if is_valid else (None, None)
            yield WaitingEntries(tenant, kind, 1, entry.time_ns)
        elif part.reason != TORN:
            yield WaitingEntries(None, None, 1, None)
