"""Values of dropped columns that the files of now do not hold any more: where they are, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from icemigrate.changes.end_refill import EndRefill, begun, is_refilling
from icemigrate.changes.refill_columns import RefillColumns, Refilled
from icemigrate.changes.set_property import SetProperty
from icemigrate.diff import Found
from icemigrate.model.evidence import Evidence, Kept
from icemigrate.model.names import format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.plan import Step
from icemigrate.sql.names import path_sql, table_sql
from icemigrate.sql.refilling import version_sql
from icemigrate.sql.types import spark_loads
from icemigrate.steps import as_steps
from icemigrate.undo.keeping import dropped
from icemigrate.undo.values import Options


@dataclass(frozen=True, slots=True)
class Refill:
    """What is done about values that were rewritten away.

    :param before: belongs to the commit that brings the columns back.
    :param steps: what follows it.
    """

    before: tuple[Found, ...] = ()
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()


def shares(before: Table, after: Table, evidence: Evidence | None) -> Iterator[str]:
    """How much of what was dropped is still in the files."""
    for field_id in dropped(before, after):
        if evidence is not None and field_id in evidence.held:
            name = format_path(index(before.schema)[field_id].path)
            yield f"values of {name} that are still in the files: {evidence.held[field_id]}"


def plan_refill(
    table: Table, version: str, catalog: str, evidence: Evidence | None, options: Options
) -> Refill:
    """Plan the way back of values that only an earlier version of the rows has.

    :param table: with its columns back.
    :param version: of the migration that is undone.
    """
    there = index(table.schema)
    kept = {} if evidence is None else {i: k for i, k in evidence.kept.items() if i in there}
    wanted = is_refilling(table) if options.refill is None else options.refill
    fit = {i: k for i, k in kept.items() if k.can_be_matched and spark_loads(table.schema)}
    notes = [_elsewhere(table, i, k, catalog) for i, k in kept.items() if i not in fit]
    if not wanted:
        notes += [_offered(table, i, k, catalog) for i, k in fit.items()]
    refills = tuple(_refills(table, fit)) if wanted else ()
    if not refills and not is_refilling(table):
        return Refill(notes=tuple(notes))
    by_row_id = any(not refill.keys for refill in refills)
    found, current = list[Found](), table
    for key, value in begun(table, version, by_row_id).items() if refills else ():
        change = SetProperty(table.name, key, value, current.properties.get(key))
        found.append(Found(change, current))
        current = change.apply(current)
    notes += [_promised(table, i, k) for i, k in fit.items() if wanted]
    last = [Found(change, current) for change in (*refills, EndRefill(table.name))]
    # A statement of its own for each: what a refill does is not one commit.
    steps = [step for one in last for step in as_steps([one], catalog)]
    return Refill(tuple(found), tuple(steps), tuple(notes))


def _refills(table: Table, kept: dict[int, Kept]) -> Iterator[RefillColumns]:
    """One for each version that keeps values, by the one or the other way of telling rows."""
    there = index(table.schema)
    groups: dict[tuple[str, bool], list[int]] = {}
    for field_id, found in kept.items():
        groups.setdefault((found.version, found.by_row_id), []).append(field_id)
    for (version, by_row_id), ids in groups.items():
        identifier = {} if by_row_id else kept[ids[0]].identifier
        yield RefillColumns(
            table.name,
            version,
            tuple(Refilled(there[i].path, kept[i].path) for i in ids),
            tuple(Refilled(there[i].path, path) for i, path in identifier.items()),
        )


def _rows(kept: Kept) -> str:
    return "up to 1 row" if kept.rows == 1 else f"up to {kept.rows} rows"


def _query(table: Table, kept: Kept, catalog: str) -> str:
    columns: Iterable[str] = (*map(path_sql, kept.identifier.values()), path_sql(kept.path))
    name = table_sql(catalog, table.name)
    return f"SELECT {', '.join(columns)} FROM {name} VERSION AS OF {version_sql(kept.version)}"


def _offered(table: Table, field_id: int, kept: Kept, catalog: str) -> str:
    name = format_path(index(table.schema)[field_id].path)
    return (
        f"{_rows(kept)} lost the value of {name} when their files were written anew, and {kept.version} "
        f"keeps it: `--refill` brings it back; or look: {_query(table, kept, catalog)}"
    )


def _promised(table: Table, field_id: int, kept: Kept) -> str:
    name = format_path(index(table.schema)[field_id].path)
    return f"{_rows(kept)} get the value of {name} back from {kept.version}; no other value is touched"


def _elsewhere(table: Table, field_id: int, kept: Kept, catalog: str) -> str:
    name = format_path(index(table.schema)[field_id].path)
    if not kept.in_structs:
        why = "what is in a list or a map cannot be brought back"
    elif not spark_loads(table.schema):
        why = "Spark cannot load this table"
    elif table.format_version < 3:
        why = "without identifier fields, the same then and now, nothing tells which row was which"
    else:
        why = "rows had no row ids then, and no identifier fields that are the same now"
    return (
        f"{_rows(kept)} lost the value of {name} when their files were written anew, and {why}; "
        f"{kept.version} keeps it: {_query(table, kept, catalog)}"
    )
