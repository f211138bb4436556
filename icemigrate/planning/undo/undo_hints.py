"""Violations of an undo's result in words that fit an undo.

The rules of Iceberg advise the author of a migration file.  An undo has no file: what is in the way was
declared by no migration that stays, so another client set it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from icemigrate.changes.change import PlanProblem, Subject
from icemigrate.data_steps.branch_repair_sql import violation_hint
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.validation import Violation
from icemigrate.spark_sql.identifiers import path_sql, quote

_PARTIAL = "`--partial` undoes the rest"


def undo_problem(
    found: Violation, declared: TableName, current: Table, goal: Table, catalog: str
) -> PlanProblem:
    """The problem of a violation by the table after an undo.

    :param current: the table before the undo; ``goal``, after it.
    :param catalog: the catalog's name in Spark SQL.
    """
    describe = _BY_RULE.get(found.rule)
    uses = [] if describe is None else [*describe(current, goal)]
    if uses:
        return _in_the_way(found.rule, found.subject, declared, uses)
    hint = violation_hint(found, current, catalog)
    return PlanProblem(found.rule, declared, found.subject, found.message, hint)


def identifier_problem(declared: TableName, current: Table, goal: Table) -> PlanProblem | None:
    """The problem of an undo that drops an identifier field, which the changes of an undo keep."""
    uses = [*_identifier_fields(current, goal)]
    return _in_the_way("identifier-missing", ("identifier",), declared, uses) if uses else None


def _in_the_way(
    rule: str, subject: Subject, declared: TableName, uses: Sequence[tuple[str, str]]
) -> PlanProblem:
    """:param uses: each what another client set, and the rest of the ``ALTER TABLE`` that removes it."""
    whats, texts = zip(*uses, strict=True)
    message = f"the undo removes what another client's change of the table needs: {'; '.join(whats)}"
    statements = ", ".join(_quoted(f"ALTER TABLE … {text}") for text in dict.fromkeys(texts))
    return PlanProblem(rule, declared, subject, message, f"run {statements} first; {_PARTIAL}")


def _quoted(statement: str) -> str:
    """A statement in backticks, which it can contain itself."""
    return statement if "`" in statement else f"`{statement}`"


def _partition_fields(current: Table, goal: Table) -> Iterator[tuple[str, str]]:
    for field in current.spec.live:
        if goal.schema.by_id(field.source_ids[0]) is None:
            yield (
                f"the partition field `{field.name}` has the source {_name(current, field.source_ids[0])}",
                f"DROP PARTITION FIELD {quote(field.name)}",
            )


def _sort_fields(current: Table, goal: Table) -> Iterator[tuple[str, str]]:
    for field in current.sort_order.fields:
        if goal.schema.by_id(field.source_ids[0]) is None:
            yield f"the table is sorted by {_name(current, field.source_ids[0])}", "WRITE UNORDERED"


def _identifier_fields(current: Table, goal: Table) -> Iterator[tuple[str, str]]:
    for field_id in sorted(current.schema.identifier_ids):
        path = current.schema.path_of(field_id)
        if goal.schema.by_id(field_id) is None and path is not None:
            what = f"{_name(current, field_id)} is an identifier field"
            yield what, f"DROP IDENTIFIER FIELDS {path_sql(path)}"


def _name(table: Table, field_id: int) -> str:
    path = table.schema.path_of(field_id)
    return f"field {field_id}" if path is None else f"`{format_path(path)}`"


_BY_RULE: Mapping[str, Callable[[Table, Table], Iterator[tuple[str, str]]]] = {
    "partition-source-missing": _partition_fields,
    "sort-source-missing": _sort_fields,
    "identifier-missing": _identifier_fields,
}
