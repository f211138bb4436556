"""``show``: the declared state as YAML that is itself a valid declaration."""

from __future__ import annotations

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import known_version, load_valid_files, raise_if_errors
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.files.write.entry_parts import EntryData, with_pins
from icemigrate.files.write.migration_entries import creation_entry, format_migration_file
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import BadName, TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import errors_besides_consents

_ALL_TABLES = "`icemigrate show` prints all tables"


def show(project: Project, table: str | None = None, at: str | None = None) -> str:
    """The declared tables.

    :param table: only this one.
    :param at: as declared after this version; by default after the last.
    :raises UsageError: there is no such table or version.
    :raises Mistakes: files up to that version have errors.
    """
    files = load_valid_files(project)
    if at is not None:
        last = known_version(files, at, "--at")
        files = tuple(f for f in files if f.version.number <= last)
    rehearsed = plan_from_empty(project, files)
    # A table is declared even if a consent is missing.
    raise_if_errors(errors_besides_consents(rehearsed.diagnostics))
    state = rehearsed.state
    if table is not None:
        return format_migration_file([_entry(state.tables[_named(state, table)])])
    if not state.tables:
        return "# no table is declared\n"
    inhabited = {name.namespace for name in state.tables}
    empty = sorted(format_path(n) for n in state.namespaces - inhabited)
    return format_migration_file([_entry(state.tables[n]) for n in sorted(state.tables)], namespaces=empty)


def _entry(table: Table) -> EntryData:
    return with_pins(creation_entry(table), table)


def _named(state: DeclaredState, text: str) -> TableName:
    try:
        name = TableName.parse(text)
    except BadName as error:
        raise UsageError(str(error), _ALL_TABLES) from error
    if name not in state.tables:
        hint = did_you_mean(text, map(str, state.tables)) or _ALL_TABLES
        raise UsageError(f"there is no declared table `{text}`", hint)
    return name
