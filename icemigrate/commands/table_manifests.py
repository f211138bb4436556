"""``table manifests``: the manifests of a snapshot; read-only."""

from __future__ import annotations

from icemigrate.project import Project
from icemigrate.results.file_results import ManifestsResult
from icemigrate.table_data.file_lists import list_manifests
from icemigrate.table_data.table_session import open_tables


def table_manifests(
    project: Project,
    environment: str | None,
    table: str,
    *,
    snapshot: str | None = None,
    limit: int | None = None,
) -> ManifestsResult:
    """The manifests of a snapshot.

    :param snapshot: an id, a tag, a branch or a time; ``None`` for the current snapshot.
    :param limit: number of entries that the result lists; ``None`` for all.
    :raises UsageError: there is no such environment, table or snapshot.
    :raises CatalogError: the catalog or a manifest cannot be read.
    """
    with open_tables(project, environment) as tables:
        return list_manifests(tables, table, snapshot=snapshot, limit=limit)
