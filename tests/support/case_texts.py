"""What is planned, told as the documents in ``cases/`` tell it; tables in a form that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any

from icemigrate.catalog.capabilities import SPARK_ADDS
from icemigrate.changes import CHANGE_KINDS
from icemigrate.changes.change import SqlStatement, Statement
from icemigrate.diagnostics import Diagnostic
from icemigrate.files.write.migration_entries import creation_entry
from icemigrate.frozen import replace
from icemigrate.iceberg.kept_views import without_kept_views
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.ref_names import is_icemigrate_tag
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, Table
from icemigrate.iceberg.types import Field, children, is_nested, with_children
from icemigrate.planning.plan import MigrationPlan, PlannedChange, PlannedDataStep
from icemigrate.planning.stages import StagesOfTables, migration_stages, statement_texts
from icemigrate.planning.table_difference import find_difference
from icemigrate.planning.undo.inverse import UndoStates, invert_migration
from icemigrate.render.phrases import data_step_symbol, reversal_text


def plan_text(plan: MigrationPlan) -> str:
    """What a plan does, change by change: with what it costs, and whether there is a way back."""
    lines = [f"+ create namespace {format_path(n)}" for n in plan.create_namespaces if n != ("db",)]
    stages = StagesOfTables(migration_stages(plan, "lake", "market"))
    for table in plan.tables:
        changes = (change for stage in stages.of(table) for change in stage.changes())
        for _, alike in groupby(changes, lambda change: isinstance(change, PlannedChange)):
            lines += _lines([*alike])
        lines += [f"note: {note}" for note in table.notes]
    return "\n".join(lines)


def _lines(part: Sequence[PlannedChange | PlannedDataStep]) -> Iterator[str]:
    for one, following in zip_longest(part, part[1:]):
        symbol = data_step_symbol(one) if isinstance(one, PlannedDataStep) else one.change.symbol
        yield f"{symbol} {one.text}"
        yield from (f"    {h.kind.value} {h.scope}: {h.reason}" for h in one.hazards)
        # Neighbours that share a way back say it once, below the last of them.
        if following is None or following.reversal != one.reversal:
            yield f"    {reversal_text(one.reversal)}"


def statements_text(plan: MigrationPlan) -> str:
    """The statements, each ended by a semicolon, those about rows where they run."""
    without = replace(plan, create_namespaces=())
    return "\n".join(f"{text};" for text in statement_texts(without, "lake", "market"))


def open_text(plan: MigrationPlan) -> str:
    """The statements that change metadata: no plan can see whether rows have been written."""
    left = [s for t in plan.tables for step in t.all_steps for s in step.statements]
    return "\n".join(map(statement_text, left))


def statement_text(statement: Statement) -> str:
    """A statement as a document has it."""
    return statement.text if isinstance(statement, SqlStatement) else f"metadata commit: {statement.summary}"


def told(diagnostic: Diagnostic) -> str:
    """``line:column code: message; hint``."""
    place, hint = diagnostic.place, f"; {diagnostic.hint}" if diagnostic.hint else ""
    assert place is not None
    return f"{place.line}:{place.column} {diagnostic.code}: {diagnostic.message}{hint}"


def diagnostics_text(diagnostics: Iterable[Diagnostic]) -> str:
    """All that is told, a line each."""
    return "\n".join(map(told, diagnostics))


def conflicts_text(plan: MigrationPlan) -> str:
    """The conflicts with their three values."""
    return "\n".join(f"{c.fact}: base {c.base}; wanted {c.wanted}; actual {c.actual}" for c in plan.conflicts)


def unmarked(table: Table) -> dict[str, str]:
    """Its properties without those that say which migration made it and its views."""
    properties = without_kept_views(table.properties)
    return {k: v for k, v in properties.items() if k != CREATED_BY_PROPERTY}


def comparable(table: Table, *, with_ids: bool) -> dict[str, Any]:
    """What a declaration says of a table, in a form that shows a difference well.

    What a catalog adds by itself is left out, and the marks of migrations.
    """
    paths = {f.id: format_path(p) for p, f in table.schema.walk()}
    properties = {k: v for k, v in unmarked(table).items() if k not in SPARK_ADDS}
    return {
        "columns": [_column(f, with_ids) for f in table.schema.fields],
        "identifier": sorted(paths[i] for i in table.schema.identifier_ids),
        "partition_by": [
            f"{f.transform}({paths[f.source_ids[0]]}) as {f.name}" + (f", field {f.id}" if with_ids else "")
            for f in table.spec.live
        ],
        "sort_by": [
            f"{f.transform}({paths[f.source_ids[0]]}) {f.direction} {f.null_order}"
            for f in table.sort_order.fields
        ],
        "properties": properties,
        "format_version": table.format_version,
        "refs": {n: replace(r, snapshot_id=0) for n, r in table.refs.items() if _is_ours(n)},
    }


def _is_ours(reference: str) -> bool:
    return reference != "main" and not is_icemigrate_tag(reference)


def _column(f: Field, with_ids: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"name": f.name, "required": f.required, "description": f.doc}
    out["defaults"] = (f.initial_default, f.write_default)
    out["type"] = with_children(f.type, ()) if not is_nested(f.type) else type(f.type).__name__
    out["below"] = [_column(child, with_ids) for child in children(f.type)]
    return out | ({"id": f.id} if with_ids else {})


def ids_of(table: Table) -> dict[str, int]:
    """Field ids by path."""
    return {format_path(path): f.id for path, f in table.schema.walk()}


def undone(declared_before: Table, declared_after: Table, there: Table) -> Table:
    """The table when a migration of it is undone: its difference the other way round, on what is there."""
    target = invert_migration(UndoStates(declared_before, declared_after), there).target
    return find_difference(there, target, CHANGE_KINDS).after


def entry_of(table: Table) -> Mapping[str, Any]:
    """The entry that declares the table."""
    return creation_entry(table)
