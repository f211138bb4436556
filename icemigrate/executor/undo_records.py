"""What a migration is undone from: its tables before it, and after it as foreseen, then as read back."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.widen_type import WidenType
from icemigrate.data.base import Stage
from icemigrate.engine.port import Engine
from icemigrate.engine.publish import fold
from icemigrate.executor.ground import require_planned_ids
from icemigrate.executor.work import foreseen
from icemigrate.frozen import replace
from icemigrate.model.evidence import Publication
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import index
from icemigrate.model.sides import State
from icemigrate.model.table import Table
from icemigrate.model.undo_record import TableUndo, UndoRecord
from icemigrate.plan import MigrationPlan, TablePlan
from icemigrate.planner import settle


def intended(
    migration: MigrationPlan,
    engine: Engine,
    state: State,
    tags_at_once: bool = False,
    known: Mapping[TableName, Table | None] | None = None,
) -> tuple[UndoRecord, dict[str, str]]:
    """The tables as they are now, and as the migration is foreseen to leave them.

    :param state: as declared before it.
    :param tags_at_once: whether the commit that alters a table also puts the migration's tag on it.
    :param known: the tables as the plan found them.
    :raises StalePlan: another client added fields to a table since the plan was made.
    :returns: the undo record; and where each table's metadata file is, by its name in the catalog.
    """
    tables, metadata = [], {}
    for plan in migration.tables:
        # Another table may have the name still, which an earlier plan of the migration takes from it.
        found = None if _is_made(plan) else engine.table(plan.name)
        require_planned_ids(plan, known or {}, found)
        tables.append(_table(plan, found, state, tags_at_once))
        location = None if found is None else engine.metadata_location(plan.name)
        if location is not None:
            metadata[str(plan.name)] = location
    made = migration.create_namespaces
    return UndoRecord(migration.version, tuple(tables), namespaces=made), metadata


def finished(
    undo: UndoRecord,
    migration: MigrationPlan,
    after: Mapping[TableName, Table | None],
    state: State,
    published: Mapping[TableName, Publication | None],
) -> UndoRecord:
    """The undo record with what was read back.

    :param undo: as it was written with the intent.
    :param migration: its tables in the order of the record's.
    :param after: by the declared name in the table's plan.
    :param state: as declared after the migration.
    :param published: rows on the main branch, by the same name;
    """
    tables = (
        _with_rows(
            replace(
                table,
                after=None if plan.wanted is None else state.tables.get(plan.declared),
                actual_after=None if plan.wanted is None else after[plan.declared],
            ),
            published.get(plan.declared),
        )
        for table, plan in zip(undo.tables, migration.tables, strict=True)
    )
    return replace(undo, tables=tuple(tables))


def _with_rows(undo: TableUndo, published: Publication | None) -> TableUndo:
    """The record of a table whose rows were changed: they go back to what they were written on; what comes
    behind the last of the migration's own snapshots is others'."""
    if not undo.rows_changed:
        return undo
    before, after = undo.actual_before, undo.actual_after
    if published is None or before is None or after is None:
        return replace(undo, rows_changed=False, rows_open=False)  # there was none to change
    return replace(
        undo,
        actual_before=replace(before, snapshot=published.before),
        actual_after=replace(after, snapshot=published.last),
        rows_open=False,
    )


def taken(migration: MigrationPlan, known: Mapping[TableName, Table | None], state: State) -> UndoRecord:
    """The undo record of a migration that is recorded as done already.

    :param known: the tables as the plan found them.
    :param state: as declared before it.
    """
    tables = []
    for plan in migration.tables:
        stays = plan.wanted is not None
        there = known.get(plan.name) if stays else None
        tables.append(
            TableUndo(
                declared_before=plan.formerly if stays else plan.formerly or plan.declared,
                declared_after=plan.declared if stays else None,
                before=None if plan.formerly is None else state.tables.get(plan.formerly),
                after=plan.wanted,
                actual_before=there,
                actual_after=there,
            )
        )
    return UndoRecord(migration.version, tuple(tables), baseline=True)


def _is_made(plan: TablePlan) -> bool:
    return plan.formerly is None and any(isinstance(p.change, CreateTable) for p in plan.changes())


def _creates(plan: TablePlan, found: Table | None) -> dict[int, tuple[str, ...]]:
    """The fields that a plan adds, by the id that it foresees, each with all paths that it has on the way.

    A column that is retyped has a temporary name first.
    """
    if found is None:
        return {}
    known, table = index(found.schema), found
    paths: dict[int, dict[str, None]] = {}
    for step in plan.all_steps:
        table = fold(step, table)
        for field_id, entry in index(table.schema).items():
            if field_id not in known:
                paths.setdefault(field_id, {})[format_path(entry.path)] = None
    return {field_id: tuple(names) for field_id, names in paths.items()}


def _table(plan: TablePlan, found: Table | None, state: State, tags_at_once: bool) -> TableUndo:
    then = foreseen(plan, found)
    stays = plan.wanted is not None
    # Files that it writes under a wider type keep the type from going back, so they go with its rows.
    is_widened = any(isinstance(p.change, WidenType) for p in plan.changes())
    is_rewritten = any(work.overwrites or (is_widened and work.work.writes) for work in plan.rows)
    trash = [p.change.trash for p in plan.changes() if isinstance(p.change, DropTable)]
    return TableUndo(
        declared_before=plan.formerly if stays else plan.formerly or plan.declared,
        declared_after=plan.declared if stays else None,
        before=None if plan.formerly is None else state.tables.get(plan.formerly),
        after=None if plan.wanted is None else settle(plan.wanted, then),
        actual_before=found,
        actual_after=then if stays else None,
        trash=trash[0] if trash else None,
        last_copies=plan.last_copies,
        rows_changed=is_rewritten,
        rows_open=is_rewritten,
        creates=_creates(plan, found),
        is_tagged=tags_at_once and not any(planned.work.stage is not Stage.BEFORE for planned in plan.rows),
    )
