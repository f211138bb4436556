"""Rows written on a branch, verified there, and published to main, with retries after other commits.

Spark commits a snapshot for every ``UPDATE``, ``MERGE``, ``INSERT`` and ``DELETE``, also where no row matches
(``SparkWrite`` and ``SparkPositionDeltaWrite`` of Iceberg 1.12).  A branch without a new snapshot therefore
means that the statement did not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from icemigrate.data_steps.data_step_kind import MAX_WRITE_ATTEMPTS, PAUSE_WRITERS_HINT
from icemigrate.data_steps.publication_state import is_in_main_history
from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.spark.engine_port import Engine


def retry_until_published(name: TableName, attempt: Callable[[int], bool], hint: str = "") -> None:
    """Write rows until they are published.

    :param attempt: called with its number from 1 on; returns whether the rows are published, or others wrote
        meanwhile.
    :param hint: further advice for the error.
    :raises EngineError: others wrote meanwhile at every attempt.
    """
    if not any(attempt(number) for number in range(1, MAX_WRITE_ATTEMPTS + 1)):
        raise publish_tries_exhausted_error(name, hint)


def publish_tries_exhausted_error(name: TableName, hint: str = "") -> EngineError:
    """The error after others wrote to a table at every attempt to publish its rows.

    :param hint: further advice.
    """
    return EngineError(
        f"other writers kept changing table `{name}`: its rows were written {MAX_WRITE_ATTEMPTS} times "
        "and could not be published",
        f"{PAUSE_WRITERS_HINT}, and run the command again{hint and f'; {hint}'}",
    )


def publish_branch(engine: Engine, name: TableName, text: str, branch: str, base: int | None) -> bool:
    """Point main to a branch's snapshot; returns ``False`` where others have moved main.

    :param text: the statement that does it.
    :param base: the snapshot of main from which the branch was created.
    :raises EngineError: it failed, and no other writer committed.
    """
    try:
        engine.sql(text)
    except EngineError:
        table = require_table(engine, name)
        metadata, own = engine.metadata_json(name), table.refs.get(branch)
        if own is not None and metadata is not None and is_in_main_history(metadata, own.snapshot_id):
            return True  # reported as failed, and done; others may have committed after it already
        if table.snapshot is not None and table.snapshot.id == base:
            raise
        return False
    return True


def require_table(engine: Engine, name: TableName) -> Table:
    """The current table.

    :raises EngineError: it is gone.
    """
    table = engine.table(name)
    if table is None:
        raise EngineError(f"table `{name}` no longer exists")
    return table


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
    :param before: the snapshots from before it.
    :param summary: the expected summary of the statement's snapshots.
    :raises EngineError: it is not.
    """
    snapshots = snapshots_of(metadata)
    ref = metadata.get("refs", {}).get(branch)
    head = None if ref is None else ref["snapshot-id"]
    if head is not None and head not in before and summary.items() <= snapshots.get(head, {}).items():
        return
    new = {key: entries for key, entries in snapshots.items() if key not in before}
    mine = [key for key, entries in new.items() if summary.items() <= entries.items()]
    if not mine:
        raise EngineError(
            f"a statement reported success, but it wrote no snapshot to branch `{branch}` of table `{name}`",
            f"no rows were published; {_HINT}",
        )
    where = "staged it as" if any(_STAGED in new[key] for key in mine) else "put it elsewhere, as"
    raise EngineError(
        f"the rows of a statement are not on branch `{branch}` of table `{name}`: Spark {where} snapshot "
        f"{mine[-1]}",
        f"no rows were published; {_HINT}",
    )


def require_published(metadata: Mapping[str, Any], name: TableName, snapshot_id: int) -> None:
    """Require that main has had a snapshot as its head.

    :param metadata: the table's metadata after the publication.
    :raises EngineError: it has not.
    """
    if not is_in_main_history(metadata, snapshot_id):
        raise EngineError(
            f"the rows of table `{name}` were reported as published, but its main branch does not contain "
            f"snapshot {snapshot_id}",
            "another client may have moved the main branch back: compare its snapshots, then apply again",
        )
