"""Changes after which Spark cannot use a table any more; they need a consent."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.changes.change import Hazard, HazardKind
from icemigrate.frozen import replace
from icemigrate.iceberg.partitioning import VOID
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.snapshot_writers import WriterKind
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.planning.plan import PlannedChange, Step, TablePlan
from icemigrate.spark_sql.type_sql import not_loaded_by

_SPARK = WriterKind.SPARK | WriterKind.SPARK_STREAM


def with_spark_hazards(plan: TablePlan, current: Table, after: Table) -> TablePlan:
    """The plan with a hazard on each change after which Spark cannot load or write the table.

    :param current: the table before the plan; a table that Spark does not write may get any type.
    :param after: the table after it.
    """
    is_written = any(writer.kind in _SPARK for writer in current.writers)
    table = current

    def with_hazard(planned: PlannedChange) -> PlannedChange:
        nonlocal table
        before, table = table, planned.change.apply(table)
        known = dict(_reasons(before, is_written))
        new = [reason for key, reason in _reasons(table, is_written) if key not in known]
        if not new:
            return planned
        scope = f"{plan.declared}{planned.change.scope()[len(str(planned.change.table)) :]}"
        return replace(
            planned, hazards=(*planned.hazards, *(Hazard(HazardKind.INCOMPATIBLE, r, scope) for r in new))
        )

    def with_hazards(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(replace(s, changes=tuple(map(with_hazard, s.changes))) for s in steps)

    if not any(True for _ in _reasons(after, is_written)):
        return plan
    return replace(plan, steps=with_hazards(plan.steps), finish=with_hazards(plan.finish))


def _reasons(table: Table, is_written: bool) -> Iterator[tuple[int, str]]:
    """Why Spark cannot use a table, by the id of the field that is the reason."""
    if is_written:
        for path, type_ in not_loaded_by(table.schema):
            found = table.schema.find(path)
            assert found is not None, "the path is of the schema"
            text = f"Spark writes this table, and cannot load a table with a `{format_type(type_)}`"
            yield found.id, text
    if table.spec.live:
        fields = schema_index(table.schema)
        for field in table.spec.fields:
            if field.transform == VOID and field.source_ids[0] not in fields:
                text = (
                    f"Spark cannot write rows without the source of the void partition field `{field.name}`"
                )
                yield -field.id, text
