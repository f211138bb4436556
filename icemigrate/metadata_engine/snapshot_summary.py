"""The summary of a snapshot, as Java's ``SnapshotSummary`` and ``SnapshotProducer`` compute it.

Specification, `Snapshot Summary <https://iceberg.apache.org/spec/#optional-snapshot-summary-fields>`_.  The
keys that name an engine (``engine-name``, ``iceberg-version``) are left out: this is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from icemigrate.frozen import Frozen

_TOTALS = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
"""Each total, with the keys that are added to it and subtracted from it."""
_NUMBER = re.compile("[0-9]{1,18}")


class SummaryTotals(Frozen):
    """The number of some data files, with their rows and their size in bytes."""

    files: int = 0
    records: int = 0
    size: int = 0

    @classmethod
    def of(cls, sizes: Iterable[tuple[int, int]]) -> SummaryTotals:
        """The totals of files, by rows and size."""
        found = list(sizes)
        return cls(len(found), sum(records for records, _ in found), sum(size for _, size in found))


class FileChanges(Frozen):
    """The data files that a snapshot adds and removes.

    :param partitions: number of the partitions that they are in.
    """

    added: SummaryTotals
    removed: SummaryTotals
    partitions: int


class ManifestChanges(Frozen):
    """Numbers of the manifests that a snapshot writes, has from its parent, and has no longer."""

    created: int
    kept: int
    replaced: int


def snapshot_summary(
    given: Mapping[str, str],
    parent: Mapping[str, str] | None,
    changes: FileChanges,
    manifests: ManifestChanges,
) -> dict[str, str]:
    """The summary of a snapshot that adds and removes data files.

    A total that the parent's summary lacks stays unknown.

    :param given: further keys; computed ones win.
    :param parent: the parent's summary; ``None`` where the snapshot has no parent.
    """
    added, removed = changes.added, changes.removed
    sizes = {
        **{"added-data-files": added.files, "added-records": added.records, "added-files-size": added.size},
        **{"deleted-data-files": removed.files, "deleted-records": removed.records},
        "removed-files-size": removed.size,
    }
    counts = {
        **{"manifests-created": manifests.created, "manifests-kept": manifests.kept},
        "manifests-replaced": manifests.replaced,
        **{key: number for key, number in sizes.items() if number},
        "changed-partition-count": changes.partitions,
    }
    before = dict.fromkeys(_TOTALS, "0") if parent is None else parent
    for total, (plus, minus) in _TOTALS.items():
        if _NUMBER.fullmatch(before.get(total, "")):
            counts[total] = max(0, int(before[total]) + counts.get(plus, 0) - counts.get(minus, 0))
    computed = {"operation", *_TOTALS, *counts}
    further = {key: value for key, value in given.items() if key not in computed}
    operation = ("overwrite" if added.files else "delete") if removed.files else "append"
    return {"operation": operation, **further, **{key: str(number) for key, number in counts.items()}}
