"""The effects of a version that its rollback left, as notes for its redo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.redo import last_copy_columns
from icemigrate.planning.undo import candidate_names, find_undo_table, recorded_uuid
from icemigrate.results.status_results import WaitingValues

if TYPE_CHECKING:
    from icemigrate.commands.redo_inputs import Redo


def waiting_values(record: UndoRecord | None) -> tuple[WaitingValues, ...]:
    """The values that only a tag or a snapshot has since a version was rolled back without a refill."""
    tables = () if record is None else record.tables
    return tuple(
        WaitingValues(str(table.declared), last_copy_columns(table, copy), copy.version)
        for table in tables
        for copy in table.last_copies
    )


def notes_on(redos: Iterable[Redo]) -> Iterator[Diagnostic]:
    """Notes of a redo's plan about the effects that the rollback left."""
    for redo in redos:
        version = redo.file.version
        applied = redo.history.of(version)
        if applied is None or applied.state is not VersionState.ROLLED_BACK:
            continue
        if applied.remaining_effects:
            yield Diagnostic(
                "left-in-part",
                f"{version} was rolled back in part; still present: {'; '.join(applied.remaining_effects)}",
                hint="the file is planned against the current tables: remove from it what is still present",
                severity=Severity.NOTE,
            )
        for waiting in waiting_values(redo.record):
            yield Diagnostic(
                "values-kept",
                f"{version}: no row of `{waiting.table}` has the values of {waiting.listed} any more; "
                f"only {waiting.kept_in} has them, and the redo does not change {waiting.kept_in}",
                hint=f"`icemigrate rollback --only {version} --refill` restores the values before the redo",
                severity=Severity.NOTE,
            )


def tables_with_remaining_values(redo: Redo, session: EnvironmentSession) -> dict[TableName, Table]:
    """The current tables in which the rollback of a version left values, by declared name in its record."""
    found: dict[TableName, Table] = {}
    for undo in () if redo.record is None else redo.record.tables:
        current = _current_table(undo, redo.history, session) if undo.last_copies else None
        if current is not None:
            found[undo.declared] = current
    return found


def _current_table(undo: TableUndo, history: History, session: EnvironmentSession) -> Table | None:
    """The table, also under another name; ``None`` where the catalog no longer has it."""
    catalog = session.catalog
    actual = dict(catalog.load(sorted(candidate_names(undo, history.state, session.names.table))))
    if recorded_uuid(undo) is not None and find_undo_table(undo, actual) is None:
        others = [name for name in catalog.tables() if name not in actual]
        actual |= load_readable_tables(catalog, others).tables
    return find_undo_table(undo, actual)
