"""The summary of a snapshot, as Java's ``SnapshotSummary`` and ``SnapshotProducer`` compute it.

Specification, `Snapshot Summary <https://iceberg.apache.org/spec/#optional-snapshot-summary-fields>`_.  The
keys that name an engine (``engine-name``, ``iceberg-version``) are left out: this is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOTALS = {
    "total-records": "added-records",
    "total-files-size": "added-files-size",
    "total-data-files": "added-data-files",
    "total-delete-files": "added-delete-files",
    "total-position-deletes": "added-position-deletes",
    "total-equality-deletes": "added-equality-deletes",
}
"""Each total, with the key that an append adds to it."""
_NUMBER = re.compile("[0-9]{1,18}")


def append_summary(
    given: Mapping[str, str],
    parent: Mapping[str, str] | None,
    *,
    data_files: int,
    records: int,
    size: int,
    kept_manifests: int,
    merged_manifests: int = 0,
) -> dict[str, str]:
    """The summary of a snapshot that appends data files to an unpartitioned table.

    A total that the parent's summary lacks stays unknown.

    :param given: further keys; computed ones win.
    :param parent: the parent's summary; ``None`` where the snapshot has no parent.
    :param data_files: number of the new files.
    :param records: in the new files.
    :param size: of the new files, in bytes.
    :param merged_manifests: number of the parent's manifests that one new manifest replaces.
    """
    changed = 1 if data_files else 0
    created = changed + (1 if merged_manifests else 0)
    added = {"added-data-files": data_files, "added-records": records, "added-files-size": size}
    counts = {
        **{"manifests-created": created, "manifests-kept": kept_manifests},
        "manifests-replaced": merged_manifests,
        **{key: number for key, number in added.items() if number},
        "changed-partition-count": changed,
    }
    before = dict.fromkeys(_TOTALS, "0") if parent is None else parent
    for total, key in _TOTALS.items():
        if _NUMBER.fullmatch(before.get(total, "")):
            counts[total] = int(before[total]) + counts.get(key, 0)
    computed = {"operation", *_TOTALS, *counts}
    further = {key: value for key, value in given.items() if key not in computed}
    return {"operation": "append", **further, **{key: str(number) for key, number in counts.items()}}
