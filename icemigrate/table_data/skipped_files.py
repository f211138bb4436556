"""Why a query skips data files: by their partition values, or by their column statistics.

Iceberg's specification, "Scan Planning": a filter is projected to the partition values of a file, and
evaluated on the lower bounds, upper bounds and null counts of its columns.  PyIceberg has both evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.frozen import Frozen
from icemigrate.table_data.query_scans import static_table
from icemigrate.table_data.query_views import TableRead
from icemigrate.table_data.scan_filters import scan_expression
from icemigrate.table_data.table_session import TableSession

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
    from pyiceberg.manifest import DataFile

_FileTest = Callable[["DataFile"], bool]


class SkipReasons(Frozen):
    """The paths of files that a query skips.

    :param by_partitions: whose partition values exclude them.
    :param by_statistics: whose column statistics alone exclude them.
    """

    by_partitions: frozenset[str] = frozenset()
    by_statistics: frozenset[str] = frozenset()


def skip_reasons(
    session: TableSession, one: TableRead, filters: Sequence[Collection[str]], skipped: Collection[str]
) -> SkipReasons:
    """Why files are skipped.  A file for which neither reason holds is in none of both.

    :param filters: those of each scan of the table, as DuckDB's plan shows them.
    :param skipped: paths of data files.
    """
    if not skipped or not filters:
        return SkipReasons()
    # Here, so that a PyIceberg without it is an error and not a table without reasons.
    from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator

    try:
        table = static_table(session, one.metadata)
        return _reasons(table, filters, frozenset(skipped), _InclusiveMetricsEvaluator)
    except Exception:
        # The query succeeded.  PyIceberg reads neither every table nor every value, and the libraries of
        # storages raise their own exceptions.
        return SkipReasons()


def _reasons(
    table: Any,
    filters: Sequence[Collection[str]],
    skipped: frozenset[str],
    evaluator: type[_InclusiveMetricsEvaluator],
) -> SkipReasons:
    schema = table.schema()
    expressions = [scan_expression(texts, schema) for texts in filters]
    by_partitions, by_statistics = set[str](), set[str]()
    for manifest in table.current_snapshot().manifests(table.io):
        spec = table.specs()[manifest.partition_spec_id]
        scans = [
            (_partition_test(schema, spec, expression), evaluator(schema, expression).eval)
            for expression in expressions
        ]
        for entry in manifest.fetch_manifest_entry(table.io):
            file = entry.data_file
            if file.file_path not in skipped:
                continue
            if all(not may_match(file) for may_match, _ in scans):
                by_partitions.add(file.file_path)
            elif all(not (may_match(file) and may_have(file)) for may_match, may_have in scans):
                by_statistics.add(file.file_path)
    return SkipReasons(frozenset(by_partitions), frozenset(by_statistics))


def _partition_test(schema: Any, spec: Any, expression: BooleanExpression) -> _FileTest:
    """Whether the partition values of a file may match a filter."""
    from pyiceberg.expressions.visitors import expression_evaluator, inclusive_projection
    from pyiceberg.schema import Schema

    fields = Schema(*spec.partition_type(schema).fields)
    projected = inclusive_projection(schema, spec)(expression)
    may_match = expression_evaluator(fields, projected, case_sensitive=True)
    return lambda file: may_match(file.partition)
