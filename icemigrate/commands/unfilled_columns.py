"""Columns of the declared tables of telemetry that ``ingest`` leaves null, by the rule of ``check``."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from contextlib import suppress

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import load_valid_files
from icemigrate.errors import IcemigrateError
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.table import Table
from icemigrate.project.project_values import NO_SETTING, Project
from icemigrate.project.tenant_tables import TenantTables
from icemigrate.results.ingest_status_results import UnfilledColumns, UnfilledName
from icemigrate.rules.im405_unfilled_column import RULE, unfilled_by_ingest
from icemigrate.rules.rule import RuleLevel, options_of
from icemigrate.wal.entries import EntryKind


def declared_unfilled_columns(project: Project, tables: TenantTables | None) -> tuple[UnfilledColumns, ...]:
    """The columns that nothing fills, by kind; reads the migration files.

    Without files, with files that have errors, and where the rule is off, there are none: `check` reports the
    errors.

    :param tables: which tables have telemetry; ``None`` where none are known.
    """
    setting = project.rules.get(RULE.id, NO_SETTING)
    is_off = RuleLevel(setting.level or RULE.level) is RuleLevel.OFF
    if tables is None or is_off or not project.migrations_dir.exists():
        return ()
    try:
        declared = _declared_tables(project)
    except IcemigrateError:
        return ()
    options = options_of(RULE, setting.options)
    found = dict[EntryKind, dict[str, str | None]]()
    for table in declared:
        if (kind := tables.kind(table.name)) is None:
            continue
        for one in unfilled_by_ingest(table, kind, options):
            found.setdefault(kind, {}).setdefault(format_path(one.path), one.near)
    return tuple(
        UnfilledColumns(
            kind.value,
            tables.text(kind),
            tuple(UnfilledName(name, near) for name, near in columns.items()),
        )
        for kind, columns in found.items()
    )


def _declared_tables(project: Project) -> Collection[Table]:
    """The declared tables; of those that a template makes for the values of a list, that of one value.

    3,000 tables of a template take seconds, and have the same columns.
    """
    lists = {name: one[:1] if isinstance(one, tuple) else one for name, one in project.lists.items()}
    with suppress(IcemigrateError):  # a migration may name the table of another value
        return _planned_tables(dataclasses.replace(project, lists=lists))
    return _planned_tables(project)


def _planned_tables(project: Project) -> Collection[Table]:
    return plan_from_empty(project, load_valid_files(project)).state.tables.values()
