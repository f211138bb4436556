"""What to do about branches of others whose files lack a column that becomes required, in SQL."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.model.legality import Breach
from icemigrate.model.legality.referring import DROP_IT, NOT_TO_BE_FILLED
from icemigrate.model.table import Head, Table
from icemigrate.sql.branches import fill_branch_sql, move_branch_sql


def hint_of(breach: Breach, before: Table | None, catalog: str) -> str:
    """The way out of a breach, with the SQL where branches are in the way.

    :param before: the table as it is.
    :param catalog: the catalog's name in Spark SQL.
    """
    if breach.branches is None or before is None:
        return breach.hint
    heads = {name: before.heads[name] for name in breach.branches.names}
    return way_out(before, breach.branches.field_id, heads, catalog)


def way_out(before: Table, field_id: int, heads: Mapping[str, Head], catalog: str) -> str:
    """What to do for branches that lack a field, told of the first of them.

    :param before: the table as it is: what is not there cannot be filled yet.
    """
    if before.schema.by_id(field_id) is None:
        return NOT_TO_BE_FILLED
    name = min(heads)
    ways = [f"fill it there first: {fill_branch_sql(catalog, before, name, field_id)}"]
    if heads[name].is_behind:
        ways.append(f"make it what main is: {move_branch_sql(catalog, before.name, name)}")
    return "; or ".join((*ways, DROP_IT))
