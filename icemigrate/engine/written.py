"""Whether a statement that writes rows did write them, and where: a session may stage or redirect it.

Spark commits a snapshot for every ``UPDATE``, ``MERGE``, ``INSERT`` and ``DELETE``, also where no row
matches (``SparkWrite`` and ``SparkPositionDeltaWrite`` of Iceberg 1.12).  A branch without a new snapshot is
therefore never the outcome of a statement that had nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from icemigrate.errors import EngineError
from icemigrate.model.names import TableName

_STAGED = "wap.id"
"""Key in the summary of a snapshot that waits to be published."""
_HINT = (
    "unset `spark.wap.id` and `spark.wap.branch`, set the table property `write.wap.enabled` to false while "
    "the migration runs, and apply again"
)


def snapshots_of(metadata: Mapping[str, Any]) -> dict[int, Mapping[str, str]]:
    """The summaries of a table's snapshots, by id.

    :param metadata: the JSON of a metadata file.
    """
    return {one["snapshot-id"]: one.get("summary", {}) for one in metadata.get("snapshots", ())}


def require_written(
    metadata: Mapping[str, Any],
    name: TableName,
    branch: str,
    before: Set[int],
    summary: Mapping[str, str],
) -> None:
    """Require that the head of a branch is a new snapshot of the statement that ran.

    :param metadata: the table's metadata after the statement.
    :param before: the snapshots that were there before it.
    :param summary: what the statement's snapshots say of themselves.
    :raises EngineError: it is not.
    """
    snapshots = snapshots_of(metadata)
    ref = metadata.get("refs", {}).get(branch)
    head = None if ref is None else ref["snapshot-id"]
    if head is not None and head not in before and summary.items() <= snapshots.get(head, {}).items():
        return
    new = {key: said for key, said in snapshots.items() if key not in before}
    mine = [key for key, said in new.items() if summary.items() <= said.items()]
    if not mine:
        raise EngineError(
            f"a statement reported success, but branch `{branch}` of table `{name}` has no snapshot of it: "
            "nothing was written",
            f"nothing is published; {_HINT}",
        )
    where = "staged it as" if any(_STAGED in new[key] for key in mine) else "put it elsewhere, as"
    raise EngineError(
        f"what a statement wrote is not on branch `{branch}` of table `{name}`: Spark {where} snapshot "
        f"{mine[-1]}",
        f"nothing is published; {_HINT}",
    )


def require_published(metadata: Mapping[str, Any], name: TableName, snapshot_id: int) -> None:
    """Require that main has come by a snapshot.

    :param metadata: the table's metadata after the publication.
    :raises EngineError: it has not.
    """
    parents = {one["snapshot-id"]: one.get("parent-snapshot-id") for one in metadata.get("snapshots", ())}
    at = metadata.get("current-snapshot-id")
    while at is not None and at != snapshot_id:
        at = parents.get(at)
    if at is None:
        raise EngineError(
            f"the rows of table `{name}` were reported as published, but its main branch does not have "
            f"snapshot {snapshot_id}",
            "another client may have moved the main branch back: compare its snapshots, and apply again",
        )
