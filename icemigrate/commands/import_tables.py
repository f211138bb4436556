"""``import``: writes a migration that adopts existing tables; starts no JVM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icemigrate.catalog.capabilities import server_managed_predicate
from icemigrate.commands.next_migration_file import next_name, schema_header, write_next_file
from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import file_errors_first, load_valid_files, raise_if_errors
from icemigrate.diagnostics import Diagnostic, did_you_mean
from icemigrate.errors import MetadataError, Mistakes, UsageError
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.write.migration_entries import format_migration_file
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import TRASH_NAMESPACE, Table, owner_of
from icemigrate.iceberg.table_properties import is_history
from icemigrate.planning.adopted_entries import AdoptionEntry, adoption_entry, declarable_table
from icemigrate.planning.create_or_adopt import adoption_warnings
from icemigrate.planning.drift.recreated_table import recreated_table_hint
from icemigrate.project.project_values import Project
from icemigrate.redaction import is_secret_property
from icemigrate.results.command_results import ImportResult, errors_besides_consents

_MAX_LISTED_TABLES = 3
"""The number of skipped tables that the error names, where no table is left."""


def import_tables(
    project: Project,
    environment: str | None = None,
    names: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    description: str | None = None,
    dry_run: bool = False,
) -> ImportResult:
    """Write the next migration file, which adopts undeclared tables.

    Planned against the same catalog it changes nothing.  Either all tables are written, or none and all
    obstacles are reported.

    :param names: tables and namespaces, with their catalog or declared names; without any, the whole catalog.
    :param exclude: tables and namespaces to skip.
    :param description: the file's; by default made from the names.
    :param dry_run: write no file.
    :raises UsageError: there is no table to import.
    :raises Mistakes: files have errors; a name matches no table to import; a table cannot be read or adopted.
    :raises CatalogError: the catalog cannot be read.
    :raises IcemigrateError: the file cannot be written.
    """
    with file_errors_first(project), open_environment(project, environment) as session:
        work = _ImportRun(session, _declared(project), session.history().state.tables)
        tables = work.load(work.chosen(names, exclude))
        adopted = {table.name: work.adopt(table) for table in tables}
    if work.mistakes:
        raise Mistakes(tuple(work.mistakes), "nothing was imported")
    entries = [found.entry for found in adopted.values() if found is not None]
    if not entries:
        raise UsageError(_nothing(names), _why_nothing(work.notes))
    title = description or _title(names, list(adopted))
    text = format_migration_file(entries, description=title, header=schema_header(project))
    path = None if dry_run else write_next_file(project, next_name(project, title), text)
    return ImportResult(
        project=project.name,
        environment=session.environment.name,
        path=path,
        tables=tuple(map(str, adopted)),
        content=text,
        notes=tuple(work.notes),
    )


def _title(names: Sequence[str], adopted: Sequence[TableName]) -> str:
    if len(adopted) == 1:
        return f"Import {adopted[0]}"
    return f"Import {', '.join(names)}" if 0 < len(names) < 4 else f"Import {len(adopted)} tables"


def _nothing(names: Sequence[str]) -> str:
    return f"there is no table to import{' in ' + ', '.join(names) if names else ' in this catalog'}"


def _why_nothing(notes: Sequence[str]) -> str:
    if not notes:
        return "`icemigrate doctor` shows which catalog is used"
    more = len(notes) - _MAX_LISTED_TABLES
    return "; ".join([*notes[:_MAX_LISTED_TABLES], *([f"and {more} more"] if more > 0 else [])])


class _DeclaredNames(Frozen):
    """What the files declare, by declared name.

    :param made: the version that first declares each table, under any of its names.
    :param left: for each name that a table had before, the version and what it does to the table.
    """

    made: Mapping[TableName, str]
    left: Mapping[TableName, str]


def _declared(project: Project) -> _DeclaredNames:
    files: Sequence[MigrationFile] = load_valid_files(project) if project.migrations_dir.exists() else ()
    rehearsed = plan_from_empty(project, files)
    raise_if_errors(errors_besides_consents(rehearsed.diagnostics))
    made, left = dict[TableName, str](), dict[TableName, str]()
    for plan in rehearsed.plans:
        for table in plan.tables:
            if table.formerly is not None and (table.wanted is None or table.formerly != table.declared):
                what = "drops it" if table.wanted is None else f"renames it to `{table.declared}`"
                left[table.formerly] = f"{plan.version} {what}"
        made |= {
            t.declared: made.get(t.formerly, plan.version) if t.formerly else plan.version
            for t in plan.tables
        }
    return _DeclaredNames({name: made[name] for name in rehearsed.state.tables}, left)


@dataclass(slots=True)
class _ImportRun:
    """One import.

    :param recorded: tables of the history, by declared name. :ivar notes: skipped tables, and facts that the
        file does not declare.
    """

    session: EnvironmentSession
    declared: _DeclaredNames
    recorded: Mapping[TableName, Table]
    mistakes: list[Diagnostic] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _named: set[TableName] = field(default_factory=set)

    def chosen(self, names: Sequence[str], exclude: Sequence[str]) -> list[TableName]:
        """The tables to import, by their names in the catalog."""
        there = self.session.catalog.tables()
        tables, spaces = defaultdict[str, list[TableName]](list), defaultdict[str, list[TableName]](list)
        for name in there:
            for text in {str(name), str(self.session.names.declared(name))}:
                tables[text].append(name)
            for text in self._namespaces(name):
                spaces[text].append(name)
        found = {t for text in names for t in self._fitting(text, tables, spaces)} if names else set(there)
        for text in exclude:
            found -= set(self._fitting(text, tables, spaces, "--exclude "))
        return [name for name in sorted(found) if self._is_free(name)]

    def _fitting(
        self,
        text: str,
        tables: Mapping[str, list[TableName]],
        spaces: Mapping[str, list[TableName]],
        option: str = "",
    ) -> list[TableName]:
        """The tables that an argument names, or whose namespace it names; reports an argument without any."""
        exact = tables.get(text, [])
        if exact:
            if not option:
                self._named.update(exact)
            return exact
        below = spaces.get(text, [])
        if not below:
            hint = (
                did_you_mean(text, {**tables, **spaces})
                or "`icemigrate import` without a name imports all tables"
            )
            message = f"{option}{text}: the catalog has no table or namespace of this name"
            self.mistakes.append(Diagnostic("unknown-table", message, None, hint))
        return below

    def _namespaces(self, name: TableName) -> set[str]:
        """The table's namespace and its parents, with their catalog and declared names."""
        both = (name.namespace, self.session.names.declared(name).namespace)
        return {format_path(space[:length]) for space in both for length in range(1, len(space) + 1)}

    def _is_free(self, name: TableName) -> bool:
        """Whether the table is undeclared, by its name."""
        names = self.session.names
        declared = names.declared(name)
        if name == names.table(self.session.history_name) or name == self.session.history_name:
            return self._passed(name, "it is this project's history", is_silent=True)
        if name.namespace[:1] == (TRASH_NAMESPACE,):
            return self._passed(name, "it is in the trash: `icemigrate rollback` restores it", is_silent=True)
        if names.table(declared) != name:
            other = names.table(declared)
            why = f"`namespaces:` of environment `{self.session.environment.name}` maps its name to `{other}`"
            return self._passed(name, f"no declared name maps to it: {why}")
        if declared in self.declared.made:
            why = f"{self.declared.made[declared]} already declares it"
            if self._is_recreated(name, declared):
                why += f", and another client created this table again: {recreated_table_hint(declared)}"
            return self._passed(name, why)
        if declared in self.recorded and declared in self.declared.left:
            return self._passed(name, f"{self.declared.left[declared]}, and is not applied yet")
        return True

    def _is_recreated(self, name: TableName, declared: TableName) -> bool:
        """Whether another table has the name of the recorded one."""
        recorded = self.recorded.get(declared)
        if recorded is None or recorded.uuid is None:
            return False
        try:
            found = self.session.catalog.load([name])[name]
        except MetadataError:
            return False  # it is not imported anyway
        return found is not None and found.uuid not in (None, recorded.uuid)

    def _passed(self, name: TableName, why: str, *, is_silent: bool = False) -> bool:
        """Pass a table over; a mistake where the user named it."""
        if name in self._named:
            self.mistakes.append(Diagnostic("cannot-import", f"cannot import `{name}`: {why}", None))
        elif not is_silent:
            self.notes.append(f"{name} is skipped: {why}")
        return False

    def load(self, names: Sequence[TableName]) -> list[Table]:
        """The tables, under their declared names; one that cannot be read is a mistake."""
        try:
            found = self.session.catalog.load(names)
        except MetadataError:  # which of them it is, and whether others are, is checked one by one
            found = {name: self._loaded(name) for name in names}
        tables = [t for name in names if (t := found[name]) is not None and self._is_nobodys(t)]
        return [replace(table, name=self.session.names.declared(table.name)) for table in tables]

    def _loaded(self, name: TableName) -> Table | None:
        try:
            return self.session.catalog.load([name])[name]
        except MetadataError as error:
            hint = f"{error.hint}; or exclude the table: `--exclude {name}`"
            self.mistakes.append(Diagnostic("unreadable-metadata", error.message, None, hint))
            return None

    def _is_nobodys(self, table: Table) -> bool:
        owner = owner_of(table)
        if is_history(table.properties):
            return self._passed(table.name, "it is an icemigrate history", is_silent=True)
        if owner is not None and owner != self.session.project.name:
            return self._passed(table.name, f"it belongs to project `{owner}`")
        return True

    def adopt(self, table: Table) -> AdoptionEntry | None:
        """The entry that adopts a table; reports a table without one."""
        set_here = self._set_by_environment(table)
        differing = {key: value for key, value in set_here.items() if table.properties.get(key) != value}
        if differing:
            self._complain_of_overrides(table, differing)
            return None
        is_set = server_managed_predicate(self.session.catalog.capabilities)
        secret = {key for key, value in table.properties.items() if is_secret_property(key, value)}
        own = declarable_table(table, lambda key, value: is_set(key, value) or key in {*set_here, *secret})
        for key in sorted(secret - {*set_here}):
            self.notes.append(f"{table.name}: `properties.{key}` holds a credential and is left out")
        found = adoption_entry(own)
        if found is None:
            self._passed(
                self.session.names.table(table.name),
                "a migration file cannot contain its name; rename it first",
            )
            return None
        for problem in adoption_warnings(own.name, own):
            self.notes.append(f"{table.name}: {problem.message}; {problem.hint}")
        for part in found.unsaid:
            self.notes.append(f"{table.name}: a file cannot declare its {part}, which stays unchanged")
        return found

    def _set_by_environment(self, table: Table) -> Mapping[str, str]:
        """The properties that overrides set on the table."""
        names = self.session.names
        return names.adjust(Table(names.table(table.name), Schema())).properties

    def _complain_of_overrides(self, table: Table, differing: Mapping[str, str]) -> None:
        for key, value in differing.items():
            there = table.properties.get(key)
            message = (
                f"`{table.name}`: `overrides:` of environment `{self.session.environment.name}` set `{key}` "
                f"to `{value}`, but the table has {'none' if there is None else f'`{there}`'}"
            )
            hint = "make both values equal, in the project file or in the catalog"
            self.mistakes.append(Diagnostic("override-differs", message, None, hint))
