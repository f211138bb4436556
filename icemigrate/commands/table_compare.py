"""``table compare``: the differences of two snapshots; read-only."""

from __future__ import annotations

from collections.abc import Sequence

from icemigrate.project import Project
from icemigrate.results.compare_results import CompareResult
from icemigrate.table_data.compare_snapshots import SAMPLES, compare_snapshots
from icemigrate.table_data.table_session import open_tables


def table_compare(
    project: Project,
    environment: str | None,
    table: str,
    before: str,
    after: str,
    *,
    key: Sequence[str] = (),
    with_rows: bool = True,
    with_distinct: bool = False,
    samples: int = SAMPLES,
) -> CompareResult:
    """The differences of two snapshots of a table.

    :param before: an id, a tag, a branch or a time.
    :param after: an id, a tag, a branch or a time.
    :param key: columns that identify a row.
    :param with_rows: whether data files are read.
    :param with_distinct: whether distinct values are counted however many rows there are.
    :param samples: number of rows of each change in the result.
    :raises UsageError: there is no such environment, table, snapshot or column, or the key is not unique.
    :raises IcemigrateError: the catalog, a manifest or a data file cannot be read.
    """
    with open_tables(project, environment) as tables:
        return compare_snapshots(
            tables,
            table,
            before,
            after,
            key=key,
            with_rows=with_rows,
            with_distinct=with_distinct,
            samples=samples,
        )
