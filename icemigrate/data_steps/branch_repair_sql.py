"""SQL that repairs branches whose files lack a column that becomes required."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.iceberg.table import BranchHead, Table
from icemigrate.iceberg.validation import Violation
from icemigrate.iceberg.validation.table_rules import DROP_IT, NOT_TO_BE_FILLED
from icemigrate.spark_sql.branch_statements import fill_branch_sql, move_branch_sql


def violation_hint(violation: Violation, before: Table | None, catalog: str) -> str:
    """The hint of a violation, with SQL if branches cause it.

    :param before: the table before the migration.
    :param catalog: the catalog's name in Spark SQL.
    """
    if violation.branches is None or before is None:
        return violation.hint
    heads = {name: before.heads[name] for name in violation.branches.names}
    return branch_repair_hint(before, violation.branches.field_id, heads, catalog)


def branch_repair_hint(before: Table, field_id: int, heads: Mapping[str, BranchHead], catalog: str) -> str:
    """What to do about branches that lack a field, shown for the first of them.

    :param before: the table before the migration; a field that it does not have cannot be filled yet.
    """
    if before.schema.by_id(field_id) is None:
        return NOT_TO_BE_FILLED
    name = min(heads)
    repairs = [f"fill it there first: {fill_branch_sql(catalog, before, name, field_id)}"]
    if heads[name].is_behind:
        repairs.append(f"fast-forward the branch to main: {move_branch_sql(catalog, before.name, name)}")
    return "; or ".join((*repairs, DROP_IT))
