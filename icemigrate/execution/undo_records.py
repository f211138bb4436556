"""Builds undo records: a migration's tables before it, and after it as predicted, then as read back."""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.changes.create_table import CreateTable
from icemigrate.changes.drop_table import DropTable
from icemigrate.changes.widen_type import WidenType
from icemigrate.data_steps.data_step_kind import DataStepStage
from icemigrate.execution.opened_tables import expected_table
from icemigrate.execution.table_checks import require_planned_ids
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.file_evidence_values import PublishedRows
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import schema_index
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import TableUndo, UndoRecord
from icemigrate.planning.merge import with_catalog_ids
from icemigrate.planning.plan import MigrationPlan, TablePlan
from icemigrate.spark.engine_port import Engine
from icemigrate.spark.publish import Publisher, apply_step


def foreseen_undo_record(
    migration: MigrationPlan,
    engine: Engine,
    state: DeclaredState,
    publisher: Publisher | None = None,
    known: Mapping[TableName, Table | None] | None = None,
) -> tuple[UndoRecord, dict[str, str]]:
    """The current tables, and their predicted state after the migration.

    :param state: the declared state before it.
    :param publisher: knows how its commits can be identified.
    :param known: the tables in the plan.
    :raises StalePlan: another client added fields to a table since the plan was made.
    :returns: the undo record; and the location of each table's metadata file, by its name in the catalog.
    """
    tables, metadata = [], {}
    for plan in migration.tables:
        # Another table may have the name still, which an earlier plan of the migration takes from it.
        found = None if _is_made(plan) else engine.table(plan.name)
        require_planned_ids(plan, known or {}, found)
        tables.append(_table(plan, found, state, publisher))
        location = None if found is None else engine.metadata_location(plan.name)
        if location is not None:
            metadata[str(plan.name)] = location
    made = migration.create_namespaces
    return UndoRecord(migration.version, tuple(tables), namespaces=made), metadata


def completed_undo_record(
    undo: UndoRecord,
    migration: MigrationPlan,
    after: Mapping[TableName, Table | None],
    state: DeclaredState,
    published: Mapping[TableName, PublishedRows | None],
) -> UndoRecord:
    """The undo record with the tables as they were read back.

    :param undo: the record in the intent.
    :param migration: its tables in the order of the record's.
    :param after: by the declared name in the table's plan.
    :param state: the declared state after it.
    :param published: rows on the main branch, by the same name.
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


def _with_rows(undo: TableUndo, published: PublishedRows | None) -> TableUndo:
    """The record of a table whose rows changed.

    An undo restores the snapshot on which they were written; snapshots after the migration's last one belong
    to others.
    """
    if not undo.rows_changed:
        return undo
    before, after = undo.actual_before, undo.actual_after
    if published is None or before is None or after is None:
        return replace(undo, rows_changed=False, rows_open=False)  # there were no rows to change
    return replace(
        undo,
        actual_before=replace(before, snapshot=published.before),
        actual_after=replace(after, snapshot=published.last),
        rows_open=False,
    )


def baseline_undo_record(
    migration: MigrationPlan, known: Mapping[TableName, Table | None], state: DeclaredState
) -> UndoRecord:
    """The undo record of a migration that is recorded as applied without running.

    :param known: the tables in the plan.
    :param state: the declared state before it.
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
    """The fields that a plan adds, by their predicted ids, each with all paths that it has during the
    migration.

    A column that is retyped has a temporary name first.
    """
    if found is None:
        return {}
    known, table = schema_index(found.schema), found
    paths: dict[int, dict[str, None]] = {}
    for step in plan.all_steps:
        table = apply_step(step, table)
        for field_id, entry in schema_index(table.schema).items():
            if field_id not in known:
                paths.setdefault(field_id, {})[format_path(entry.path)] = None
    return {field_id: tuple(names) for field_id, names in paths.items()}


def _table(
    plan: TablePlan, found: Table | None, state: DeclaredState, publisher: Publisher | None
) -> TableUndo:
    then = expected_table(plan, found)
    stays = plan.wanted is not None
    # Files with a wider type prevent undoing the type, so they are removed with the migration's rows.
    is_widened = any(isinstance(p.change, WidenType) for p in plan.changes())
    is_rewritten = any(work.overwrites or (is_widened and work.work.writes) for work in plan.rows)
    trash = [p.change.trash for p in plan.changes() if isinstance(p.change, DropTable)]
    return TableUndo(
        declared_before=plan.formerly if stays else plan.formerly or plan.declared,
        declared_after=plan.declared if stays else None,
        before=None if plan.formerly is None else state.tables.get(plan.formerly),
        after=None if plan.wanted is None else with_catalog_ids(plan.wanted, then),
        actual_before=found,
        actual_after=then if stays else None,
        trash=trash[0] if trash else None,
        last_copies=plan.last_copies,
        rows_changed=is_rewritten,
        rows_open=is_rewritten,
        creates=_creates(plan, found),
        is_tagged=publisher is not None
        and publisher.tags_at_once
        and not any(planned.work.stage is not DataStepStage.BEFORE for planned in plan.rows),
        is_signed=publisher is not None and publisher.signs,
    )
