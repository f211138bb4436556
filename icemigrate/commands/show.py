"""``show``: the declared state as YAML that is itself a valid declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import known_version, load_valid_files, raise_if_errors
from icemigrate.commands.shown_templates import ShownTemplate, shown_templates, with_placeholders
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.files.write.entry_parts import EntryData, with_pins
from icemigrate.files.write.migration_entries import creation_entry, format_migration_file
from icemigrate.iceberg.names import BadName, TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import errors_besides_consents

_ALL_TABLES = "`icemigrate show` prints all tables"


def show(
    project: Project, table: str | None = None, at: str | None = None, *, shows_all: bool = False
) -> str:
    """The declared tables; equal tables of a template as one entry with ``for_each``.

    :param table: only this one, or the tables of a template by the name in its file.
    :param at: as declared after this version; by default after the last.
    :param shows_all: whether each table of a template has an entry, if its values are known.
    :raises UsageError: there is no such table or version.
    :raises Mistakes: files up to that version have errors.
    """
    names = () if table is None else (table,)
    files = load_valid_files(project, names=names)
    if any(file.templates for file in files):
        files = load_valid_files(with_placeholders(project, files), names=names)
    if at is not None:
        last = known_version(files, at, "--at")
        files = tuple(f for f in files if f.version.number <= last)
    rehearsed = plan_from_empty(project, files)
    # A table is declared even if a consent is missing.
    raise_if_errors(errors_besides_consents(rehearsed.diagnostics))
    state = rehearsed.state
    entries = {name: _entry(found) for name, found in state.tables.items()}
    templates = shown_templates(project, files, entries, shows_all=shows_all)
    if table is not None:
        of_template = [one.entry for one in templates if one.entry and table == one.written]
        return format_migration_file(of_template or [_named(entries, templates, table)])
    if not state.tables:
        return "# no table is declared\n"
    inhabited = {name.namespace for name in state.tables}
    empty = sorted(format_path(n) for n in state.namespaces - inhabited)
    covered = {name for one in templates for name in one.covered}
    shown = [(str(name), entries[name]) for name in state.tables if name not in covered]
    shown += [(one.written, one.entry) for one in templates if one.entry]
    if not (shown or empty):
        return "# no table is declared\n"
    return format_migration_file([entry for _, entry in sorted(shown, key=_name)], namespaces=empty)


def _name(shown: tuple[str, EntryData]) -> str:
    return shown[0]


def _entry(table: Table) -> EntryData:
    return with_pins(creation_entry(table), table)


def _named(
    entries: Mapping[TableName, EntryData], templates: Sequence[ShownTemplate], text: str
) -> EntryData:
    try:
        name = TableName.parse(text)
    except BadName as error:
        raise UsageError(str(error), _ALL_TABLES) from error
    stand_in = next((one for one in templates if one.placeholder == name), None)
    if name not in entries or (stand_in is not None and not stand_in.entry):
        hint = did_you_mean(text, map(str, entries)) or _ALL_TABLES
        raise UsageError(f"there is no declared table `{text}`", hint)
    return entries[name] if stand_in is None else stand_in.entry
