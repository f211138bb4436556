"""The record of a migration on the table itself: a staged snapshot without rows of its own, under a tag.

Staged, so that no branch moves: readers of main, materialised views and freshness checks see nothing new,
while ``VERSION AS OF '<tag>'`` reads the rows as they were under the migration's schema.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from icemigrate.engine.manifests import each
from icemigrate.engine.port import Marker

FOR_EVER_MS = 2**63 - 1
"""Java's ``Long.MAX_VALUE``.  Written out, since without it ``history.expire.max-ref-age-ms`` decides."""


def add(transaction: Any, marker: Marker) -> Any:
    """Add the marker and its tags to a transaction on a table.

    The marker has the schema that the transaction's table has by then.

    :param transaction: Java's ``Transaction``.
    :returns: Java's ``Snapshot`` that is the marker; ``None`` where the migration goes on with the rows.
    """
    snapshot = None if marker.is_begun else stage(transaction, marker.summary)
    now_ms = time.time_ns() // 1_000_000
    refs = transaction.table().refs()
    manage = transaction.manageSnapshots()
    own = None if snapshot is None else int(snapshot.snapshotId())
    before_tag = marker.before_tag({name: refs.get(name).snapshotId() for name in each(refs.keySet())})
    for tag, snapshot_id in ((marker.tag, own), (before_tag, marker.before)):
        if tag in marker.needed_tags and refs.containsKey(tag):
            continue  # it is where it has to be, and must not expire earlier
        if snapshot_id is None:
            continue
        known = transaction.table().snapshot(snapshot_id)
        if known is None:
            continue  # expired meanwhile: there is nothing left to keep
        if refs.containsKey(tag):
            manage.replaceTag(tag, snapshot_id)
        else:
            manage.createTag(tag, snapshot_id)
        manage.setMaxRefAgeMs(tag, max_ref_age_ms(marker.keep, now_ms - known.timestampMillis()))
    manage.commit()
    return snapshot


def max_ref_age_ms(keep: timedelta | None, age_ms: int) -> int:
    """A tag's age limit in milliseconds that keeps it for ``keep`` from now.

    A reference's age is that of its snapshot (specification, "Snapshot Retention Policy"), so what the
    snapshot is old already comes on top.
    """
    if keep is None:
        return FOR_EVER_MS
    return max(1, max(0, age_ms) + keep // timedelta(milliseconds=1))


def stage(transaction: Any, summary: dict[str, str]) -> Any:
    """Add a snapshot without rows of its own that no branch leads to; Java's ``Snapshot``."""
    # A fast one: the other kind may merge manifests, which reads them.
    append = transaction.newFastAppend()
    for key, value in summary.items():
        append.set(key, value)
    append.stageOnly()
    append.commit()
    # A new snapshot is the list's last; asking each of thousands for its id would take seconds.
    staged = transaction.table().snapshots()[-1]
    assert all(staged.summary().get(key) == value for key, value in summary.items())
    return staged
