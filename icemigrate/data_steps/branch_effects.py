"""Effects of a migration on other branches, whose rows it does not change: data steps write to main only.

A branch is read with the table's schema, so a column that is filled or retyped reads null there.  A column
that becomes required and is missing there is refused, see
:mod:`icemigrate.iceberg.validation.table_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icemigrate.changes.change import PlanProblem, SqlStatement
from icemigrate.data_steps.backfill import Backfill
from icemigrate.data_steps.data_step_kind import DataStepContext, TableDataStep
from icemigrate.data_steps.retype import Retype
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.table import BranchHead, Table
from icemigrate.iceberg.types import Field
from icemigrate.iceberg.validation.table_rules import reference_names_text
from icemigrate.spark_sql.branch_statements import branch_sql, move_branch_sql
from icemigrate.spark_sql.identifiers import quote, table_sql

_SHOWN = 3
"""For how many branches of a table the repair is shown; a table may have hundreds."""


class _BranchEffect(Frozen):
    """Columns of a branch that data steps do not change.

    :param works: the data steps that set these columns on main.
    :param null: columns that read null there, under their names after the migration.
    :param default: columns that read their initial default.
    :param kept: columns that keep their old values.
    """

    name: str
    head: BranchHead
    works: tuple[TableDataStep, ...]
    null: tuple[FieldPath, ...]
    default: tuple[FieldPath, ...]
    kept: tuple[FieldPath, ...]

    @property
    def message(self) -> str:
        """The effect on readers of the branch."""
        parts = [
            f"{verb} {', '.join(f'`{format_path(path)}`' for path in paths)}"
            for verb, paths in (
                ("reads null in", self.null),
                ("reads the default in", self.default),
                ("keeps its old values in", self.kept),
            )
            if paths
        ]
        branch = f"branch `{self.name}` ({self.head.rows_text})"
        return f"the migration changes rows on main only: {branch} {', and '.join(parts)}"


def branch_effect_problems(
    works: Sequence[TableDataStep], context: DataStepContext, there: Table, after: Table, catalog: str
) -> Iterator[PlanProblem]:
    """Effects on other branches, with the SQL that makes the same change there.

    :param there: the table before the migration.
    :param after: the table after the migration.
    :param catalog: the catalog's name in Spark SQL.
    """
    heads = {n: h for n, h in sorted(there.heads.items()) if n in after.refs and h.has_rows}
    left = [
        found for name, head in heads.items() if (found := _branch_effect(name, head, works, context, after))
    ]
    for one in left[:_SHOWN]:
        yield PlanProblem(
            "rows-left-on-branch",
            context.declared,
            one.works[0].subject,
            one.message,
            "to change the branch too, run after the migration: "
            + _branch_repair_sql(one, context, there, after, catalog),
        )
    if len(left) > _SHOWN:
        names = reference_names_text("branch", [one.name for one in left[_SHOWN:]])
        yield PlanProblem(
            "rows-left-on-branch",
            context.declared,
            left[_SHOWN].works[0].subject,
            f"the migration changes rows on main only, also for {names}",
            "drop branches that are not needed",
        )


def _branch_effect(
    name: str, head: BranchHead, works: Sequence[TableDataStep], context: DataStepContext, after: Table
) -> _BranchEffect | None:
    """The effect on a branch; ``None`` if there is none, or if the migration is refused for the branch."""
    found: dict[str, list[FieldPath]] = {"null": [], "default": [], "kept": []}
    of: list[TableDataStep] = []
    for work in works:
        for path, field in _set(work, head, context):
            known, end = head.schema, after.schema.by_id(field.id)
            is_there = known is not None and known.by_id(field.id) is not None
            if end is None:
                continue  # the same migration drops it
            if end.required and not is_there and end.initial_default is None:
                continue  # the migration is refused
            kind = "kept" if is_there else "null" if end.initial_default is None else "default"
            found[kind].append(after.schema.path_of(field.id) or path)
            of.append(work)
    if not of:
        return None
    paths = {kind: tuple(dict.fromkeys(of_kind)) for kind, of_kind in found.items()}
    return _BranchEffect(name, head, tuple(dict.fromkeys(of)), paths["null"], paths["default"], paths["kept"])


def _set(
    work: TableDataStep, head: BranchHead, context: DataStepContext
) -> Iterator[tuple[FieldPath, Field]]:
    """The fields that a step sets, under their paths at that time, except those without a source."""
    if isinstance(work, Retype):
        if head.schema is not None and head.schema.by_id(work.field_id) is None:
            return  # a branch from before the column, which has always been null there
        paths: tuple[FieldPath, ...] = (work.temporary,)
    else:
        paths = work.paths if isinstance(work, Backfill) else ()
    for path in paths:
        field = context.table.schema.find(path)
        if field is not None:
            yield path, field


def _branch_repair_sql(
    left: _BranchEffect, context: DataStepContext, there: Table, after: Table, catalog: str
) -> str:
    """The SQL that makes the change on a branch."""
    table = context.table.name
    branch = branch_sql(catalog, table, left.name)
    goes = any(after.schema.by_id(field.id) is None for field in there.schema.fields)
    if goes or any(isinstance(work, Retype) for work in left.works):
        repair = _overwrite(left, context, after, catalog)
    else:
        repair = "; ".join(
            s.text for work in left.works for s in work.statements(branch) if isinstance(s, SqlStatement)
        )
    moved = move_branch_sql(catalog, table, left.name)
    return f"{repair}; or fast-forward it to main: {moved}" if left.head.is_behind else repair


def _overwrite(left: _BranchEffect, context: DataStepContext, after: Table, catalog: str) -> str:
    """``INSERT OVERWRITE`` of the branch from its snapshot, whose schema still has the source columns."""
    table, branch = table_sql(catalog, context.table.name), branch_sql(catalog, context.table.name, left.name)
    source = f"{table} VERSION AS OF {left.head.snapshot.id}"
    values = _values(left.works)
    if values is None or left.head.schema is None:
        return f"INSERT OVERWRITE {branch} with the changed rows of SELECT * FROM {source}"
    between = {field.id: field.name for field in context.table.schema.fields}
    fields = left.head.schema.fields
    renamed = [(f.name, between[f.id]) for f in fields if between.get(f.id, f.name) != f.name]
    if renamed:
        given = ", ".join(f"{quote(old)} AS {quote(new)}" for old, new in renamed)
        source = f"(SELECT * EXCEPT ({_listed([old for old, _ in renamed])}), {given} FROM {source})"
    stay = {field.id for field in after.schema.fields}
    names = [between.get(f.id, f.name) for f in fields if f.id not in stay or between.get(f.id) in values]
    but = f" EXCEPT ({_listed(names)})" if names else ""
    given = ", ".join(f"{value} AS {quote(name)}" for name, value in values.items())
    return f"INSERT OVERWRITE {branch} BY NAME SELECT *{but}, {given} FROM {source}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quote, names))


def _values(works: Sequence[TableDataStep]) -> dict[str, str] | None:
    """The columns that are set, with their expressions; ``None`` if one ``SELECT`` cannot express them."""
    values: dict[str, str] = {}
    for work in works:
        if isinstance(work, Retype):
            pairs: tuple[tuple[FieldPath, str], ...] = ((work.path, work.using),)
        else:
            assert isinstance(work, Backfill), "nothing else sets columns"
            if work.where is not None:
                return None
            pairs = tuple(zip(work.paths, (value for _, value in work.sets), strict=True))
        for path, value in pairs:
            if len(path) > 1 or path[0] in values:
                return None
            values[path[0]] = " ".join(value.split())
    return values
