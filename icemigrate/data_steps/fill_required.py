"""Columns that one migration fills and makes required: every file has to be rewritten.

Iceberg fails on a file that lacks a required field ("Missing required field"), whatever its rows contain, and
a copy-on-write ``UPDATE`` rewrites only files with a row to change.  Therefore such a column is optional
until its rows are published, and a query checks before that whether it has nulls.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from icemigrate.changes.change import PlanProblem, Subject
from icemigrate.data_steps.backfill import Backfill
from icemigrate.data_steps.data_step_kind import DataStepContext, QueryExpectation, TableDataStep
from icemigrate.data_steps.retype import Retype
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.schema import IndexedField, schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_properties import MERGE_ON_READ, UPDATE_MODE, has_merge_on_read_updates
from icemigrate.spark_sql.expressions import null_sql
from icemigrate.spark_sql.identifiers import path_sql


class FilledColumns(Frozen):
    """The fields that data steps fill.

    :param whole: the fields that they set.
    :param made: the structs around these, which are created where they are null.
    """

    whole: frozenset[FieldPath]
    made: frozenset[FieldPath] = frozenset()

    def has(self, entry: IndexedField, there: Container[int]) -> bool:
        """Whether a field gets a value in every row that is written.

        A struct that is set brings the fields in it, which counts if a file may have the struct without them.

        :param there: the ids of the fields before the migration.
        """
        path = entry.path
        if path in self.whole or path in self.made:
            return True
        return entry.parent in there and any(path[:depth] in self.whole for depth in range(1, len(path)))


def backfilled_columns(works: Sequence[TableDataStep]) -> FilledColumns:
    """The fields that backfills set."""
    paths = frozenset(path for work in works if isinstance(work, Backfill) for path in work.paths)
    return FilledColumns(paths, frozenset(path[:depth] for path in paths for depth in range(1, len(path))))


def remaining_null_checks(
    works: Sequence[TableDataStep], context: DataStepContext, after: Table, rows: str
) -> Mapping[int, tuple[QueryExpectation, ...]]:
    """Queries for nulls in columns that become required, by the index of the step after which they run.

    A retyped column that was required before has such a query already.

    :param after: the table after the migration.
    :param rows: the branch, as SQL names it.
    """
    last: dict[FieldPath, tuple[int, FieldPath]] = {}
    inside: dict[int, int] = {}
    for at, work in enumerate(works):
        if isinstance(work, Retype) and not _is_required(context.table, work.path):
            last[work.path] = at, work.temporary
        if isinstance(work, Backfill):
            last |= {path: (at, path) for path in work.paths}
            inside |= {i: at for path in work.paths for i in _made_required(context.table, after, path)}
    found: dict[int, tuple[QueryExpectation, ...]] = {}
    for path, (at, here) in last.items():
        if _is_required(after, path) and not _is_required(context.table, here):
            above = (here[:n] for n in range(1, len(here)) if not _is_required(after, path[:n]))
            conditions = [
                *(f"{path_sql(struct)} IS NOT NULL" for struct in above),
                f"{path_sql(here)} IS NULL",
            ]
            found[at] = (*found.get(at, ()), _question(rows, path, " AND ".join(conditions)))
    for field_id, at in inside.items():
        path = schema_index(after.schema)[field_id].path
        if path not in last:
            condition = null_sql(context.table.schema, field_id)
            found[at] = (*found.get(at, ()), _question(rows, path, condition))
    return found


def _made_required(before: Table, after: Table, struct: FieldPath) -> Iterator[int]:
    """The fields that become required in a struct that is set as a whole."""
    between = schema_index(before.schema)
    for field_id, entry in schema_index(after.schema).items():
        is_inside = len(entry.path) > len(struct) and entry.path[: len(struct)] == struct
        if (
            is_inside
            and entry.field.required
            and field_id in between
            and not between[field_id].field.required
        ):
            yield field_id


def _question(rows: str, path: FieldPath, condition: str) -> QueryExpectation:
    name = f"rows without a value of {format_path(path)}, which becomes required"
    query = f"SELECT count(*) FROM {rows} WHERE {condition}"
    return QueryExpectation(query, "0", name, "fill these rows, or leave the column optional")


def required_field_problems(
    works: Sequence[TableDataStep], context: DataStepContext, there: Table, after: Table
) -> Iterator[PlanProblem]:
    """Required fields that a file may lack after the migration, because no step fills them in every file.

    An existing field that no step fills is checked in manifests and rows instead.

    :param there: the table before the migration.
    :param after: the table after the migration.
    """
    before, between = schema_index(there.schema), schema_index(context.table.schema)
    for field_id, entry in schema_index(after.schema).items():
        field, old = entry.field, before.get(field_id)
        is_new = field.required and (old is None or not old.field.required)
        if not is_new or field.initial_default is not None or field_id not in between:
            continue
        fills = list(_fills(works, entry.path, between[field_id].path))
        may_be_null = [p for n in range(1, len(entry.path)) if not _is_required(after, p := entry.path[:n])]
        if any(path == between[field_id].path[: len(path)] for path in backfilled_columns(works).whole):
            may_be_null = []  # the struct around it is written in every row
        reason = _why(there, fills, may_be_null)
        if (
            not fills
            and there.has_rows
            and field_id > there.last_column_id
            and (entry.parent is None or entry.parent in before)
        ):
            reason = "existing files do not contain it"
        if reason is not None:
            yield PlanProblem(
                "required-not-in-every-file",
                context.declared,
                fills[0][0] if fills else ("columns", format_path(entry.path), "required"),
                f"`{format_path(entry.path)}` cannot become required: {reason}, and a file "
                "without a required field cannot be read",
                "declare it with `required: false`, and make it required in a later migration, after all "
                "files are rewritten",
            )


def _is_required(table: Table, path: FieldPath) -> bool:
    field = table.schema.find(path)
    return field is not None and field.required


def _fills(
    works: Sequence[TableDataStep], path: FieldPath, meanwhile: FieldPath
) -> Iterator[tuple[Subject, bool]]:
    """The steps that fill a field, and whether they fill it only in some rows.

    :param path: of the field after the migration.
    :param meanwhile: of the field while rows are written.
    """
    for work in works:
        if isinstance(work, Retype) and work.path == path:
            yield work.subject, False
        if isinstance(work, Backfill):
            # Setting a field creates the struct around it, and setting a struct sets its fields.
            inside = [p for p in work.paths if p[: len(meanwhile)] == meanwhile or p == meanwhile[: len(p)]]
            if inside:
                yield work.subject, work.where is not None and not any(map(work.is_null_guarded, inside))


def _why(table: Table, fills: Sequence[tuple[Subject, bool]], may_be_null: Sequence[FieldPath]) -> str | None:
    """Why some file may not be rewritten; ``None`` if all are rewritten, or nothing is filled."""
    if not fills:
        return None
    if has_merge_on_read_updates(table.properties):
        return f"`{UPDATE_MODE}` is {MERGE_ON_READ}, which does not rewrite existing files"
    if may_be_null:
        return f"files in which `{format_path(may_be_null[-1])}` is always null are not rewritten"
    if all(is_partial for _, is_partial in fills):
        return "files in which no row matches the condition are not rewritten"
    return None
