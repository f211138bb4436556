"""Creates a table without a migration file, with the checks of a migration's first entry, in one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from icemigrate.commands.plan import planning_context
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import ConflictError, Mistakes, UsageError
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import CREATED_BY_PROPERTY, Table
from icemigrate.metadata_engine.table_creation import creation_commit
from icemigrate.metadata_engine.table_store import CommitConflict
from icemigrate.planning.planner import plan_migrations
from icemigrate.project.reserved_tables import reserved_names
from icemigrate.results.command_results import errors_of
from icemigrate.table_data.table_session import CurrentTable, TableSession

_KEYS = (
    "columns", "partition_by", "sort_by", "identifier", "properties", "format_version", "location",
    "description",
)  # fmt: skip
_VERSION = "9" * 18
_FILE = f"{_VERSION}_create.yaml"
"""The name of the file that the entry would be in; no message shows it."""


def create_table(tables: TableSession, name: str, entry: Mapping[str, Any]) -> CurrentTable:
    """Create a table, and its namespace where it is missing.

    No migration declares the table: ``import`` writes the migration that adopts it.

    :param name: of the table, as migration files write it.
    :param entry: keys of a table's entry in a migration file.
    :raises UsageError: the name or a key is invalid, or the table exists.
    :raises Mistakes: the table would break a rule.
    """
    declared = tables.parse(name)
    if unknown := [key for key in entry if key not in _KEYS]:
        raise UsageError(f"`{unknown[0]}` is no key of a new table", f"use {', '.join(_KEYS)}")
    if tables.find(declared) is not None:
        raise UsageError(f"table `{declared}` already exists", "choose another name")
    table = _planned_table(tables, name, _read(name, entry))
    properties = {key: value for key, value in table.properties.items() if key != CREATED_BY_PROPERTY}
    tables.store.create_namespace(table.name.namespace)
    commit = creation_commit(
        replace(table, properties=properties), str(uuid4()), tables.store.catalog_properties
    )
    try:
        (stored,) = tables.store.commit([commit])
    except CommitConflict as error:
        raise ConflictError(
            f"another client has created table `{declared}` meanwhile", "choose another name"
        ) from error
    return CurrentTable(declared, table.name, stored)


def _read(name: str, entry: Mapping[str, Any]) -> MigrationFile:
    text = json.dumps({"tables": [{"name": name, **entry}]}, ensure_ascii=False, default=str)
    read = read_migration(SourceText(_FILE, text), Version.parse(_VERSION), "create")
    if read.migration is None:
        raise _mistaken(name, errors_of(read.diagnostics))
    return read.migration


def _planned_table(tables: TableSession, name: str, file: MigrationFile) -> Table:
    """The table as a migration would create it, with its field ids.

    :raises Mistakes: it breaks a rule.
    """
    session = tables.environment
    declared = tables.parse(name)
    physical = session.names.table(declared)
    context = planning_context(
        session, History(session.project.name), (file,), frozenset({physical.namespace})
    )
    context = replace(context, reserved=reserved_names(session.project, (session.environment,)))
    planned = plan_migrations([file], EMPTY_STATE, {physical: None}, context)
    if errors := errors_of(planned.diagnostics(planned.migrations)):
        raise _mistaken(name, errors)
    ((table,),) = (migration.tables for migration in planned.migrations)
    after = Table(physical, Schema())
    for change in table.changes():
        after = change.change.apply(after)
    return after


def _mistaken(name: str, errors: tuple[Diagnostic, ...]) -> Mistakes:
    alone = tuple(replace(found, place=None) for found in errors)
    return Mistakes(alone, f"cannot create table `{name}`: {alone[0].message}")
