"""``import``: tables that others made, written as a migration that takes them in; starts no JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icemigrate.app.next_file import header, next_name, put
from icemigrate.app.offline import rehearse
from icemigrate.app.opening import as_mistakes, mistakes_first, sound_files
from icemigrate.app.world import Opened, opened
from icemigrate.catalog.capabilities import is_set_by_machines
from icemigrate.declare.author import dump
from icemigrate.declare.author_catalog import Adoption, adoption, without_others
from icemigrate.declare.migration import MigrationFile
from icemigrate.diagnostics import Diagnostic, did_you_mean
from icemigrate.errors import MetadataError, Mistakes, UsageError
from icemigrate.frozen import replace
from icemigrate.history.properties import is_history
from icemigrate.model.imported import ImportResult
from icemigrate.model.makers import TRASH_NAMESPACE, owner_of
from icemigrate.model.names import TableName, format_path
from icemigrate.model.schema import Schema
from icemigrate.model.table import Table
from icemigrate.project.values import Project
from icemigrate.redaction import is_secret_property
from icemigrate.results import errors_of

_TOLD = 3
"""How many tables are named that were left out, where nothing is left."""


def import_tables(
    project: Project,
    environment: str | None = None,
    names: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    description: str | None = None,
    dry_run: bool = False,
) -> ImportResult:
    """Write the next migration file, one that takes in tables which nobody declared.

    Planned against the same catalog it changes nothing.  All of them are written, or none and all that is in
    the way is told.

    :param names: tables and namespaces, as the catalog or as the files call them; all of the catalog where
        there are none.
    :param exclude: tables and namespaces to leave out.
    :param description: the file's; made of the names where left out.
    :param dry_run: write no file.
    :raises UsageError: there is nothing to import.
    :raises Mistakes: files hold mistakes; a name is none of a table to import; a table cannot be read or
        taken in.
    :raises CatalogError: the catalog cannot be read.
    :raises IcemigrateError: the file cannot be written.
    """
    with mistakes_first(project), opened(project, environment) as world:
        work = _Import(world, _declared(project))
        tables = work.load(work.chosen(names, exclude))
        adopted = {table.name: work.adopt(table) for table in tables}
    if work.mistakes:
        raise Mistakes(tuple(work.mistakes), "nothing was imported")
    entries = [found.entry for found in adopted.values() if found is not None]
    if not entries:
        raise UsageError(_nothing(names), _why_nothing(work.notes))
    title = description or _title(names, list(adopted))
    text = dump(entries, description=title, header=header(project))
    path = None if dry_run else put(project, next_name(project, title), text)
    return ImportResult(
        project=project.name,
        environment=world.environment.name,
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
        return "`icemigrate doctor` tells which catalog is meant"
    more = len(notes) - _TOLD
    return "; ".join([*notes[:_TOLD], *([f"and {more} more"] if more > 0 else [])])


def _declared(project: Project) -> Mapping[TableName, str]:
    """Which version made each table that the files declare, or is about to; under whatever name."""
    files: Sequence[MigrationFile] = sound_files(project) if project.migrations_dir.exists() else ()
    rehearsed = rehearse(project, files)
    as_mistakes(tuple(d for d in errors_of(rehearsed.diagnostics) if d.code != "missing-allow"))
    made: dict[TableName, str] = {}
    for plan in rehearsed.plans:
        made |= {
            t.declared: made.get(t.formerly, plan.version) if t.formerly else plan.version
            for t in plan.tables
        }
    return {name: made[name] for name in rehearsed.state.tables}


@dataclass(slots=True)
class _Import:
    """One import.

    :param declared: tables of the files → the version that made them.
    :ivar notes: what was passed over, and what of a table the file does not say.
    """

    world: Opened
    declared: Mapping[TableName, str]
    mistakes: list[Diagnostic] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _named: set[TableName] = field(default_factory=set)

    def chosen(self, names: Sequence[str], exclude: Sequence[str]) -> list[TableName]:
        """The tables to import, by their names in the catalog."""
        there = self.world.catalog.tables()
        found = {table for text in names for table in self._fitting(text, there)} if names else set(there)
        for text in exclude:
            found -= set(self._fitting(text, there, "--exclude "))
        return [name for name in sorted(found) if self._is_free(name)]

    def _fitting(self, text: str, there: Sequence[TableName], option: str = "") -> list[TableName]:
        """The tables that a text names, or whose namespace it does; a complaint where there are none."""
        shown = {name: {str(name), str(self.world.names.declared(name))} for name in there}
        exact = [name for name in there if text in shown[name]]
        if exact:
            if not option:
                self._named.update(exact)
            return exact
        spaces = {name: self._namespaces(name) for name in there}
        below = [name for name in there if text in spaces[name]]
        if not below:
            known = {
                *(n for names in shown.values() for n in names),
                *(s for of in spaces.values() for s in of),
            }
            hint = (
                did_you_mean(text, sorted(known))
                or "`icemigrate import` without a name takes in all there are"
            )
            message = f"{option}{text}: the catalog has no table and no namespace of this name"
            self.mistakes.append(Diagnostic("unknown-table", message, None, hint))
        return below

    def _namespaces(self, name: TableName) -> set[str]:
        """The table's namespace and those above it, as the catalog and as the files call them."""
        both = (name.namespace, self.world.names.declared(name).namespace)
        return {format_path(space[:length]) for space in both for length in range(1, len(space) + 1)}

    def _is_free(self, name: TableName) -> bool:
        """Whether the table is nobody's yet, as far as its name tells."""
        names = self.world.names
        declared = names.declared(name)
        if name == names.table(self.world.history_name) or name == self.world.history_name:
            return self._passed(name, "it is this project's history", is_silent=True)
        if name.namespace[:1] == (TRASH_NAMESPACE,):
            return self._passed(
                name, "it is in the trash: `icemigrate rollback` brings it back", is_silent=True
            )
        if names.table(declared) != name:
            other = names.table(declared)
            why = f"`namespaces:` of environment `{self.world.environment.name}` makes `{other}` of that name"
            return self._passed(name, f"no declared name leads to it: {why}")
        if declared in self.declared:
            return self._passed(name, f"{self.declared[declared]} declares it already")
        return True

    def _passed(self, name: TableName, why: str, *, is_silent: bool = False) -> bool:
        """Pass a table over; a mistake where the user named it."""
        if name in self._named:
            self.mistakes.append(Diagnostic("cannot-import", f"`{name}` cannot be imported: {why}", None))
        elif not is_silent:
            self.notes.append(f"{name} is left out: {why}")
        return False

    def load(self, names: Sequence[TableName]) -> list[Table]:
        """The tables, under their declared names; one that cannot be read is a mistake."""
        try:
            found = self.world.catalog.load(names)
        except MetadataError:  # which of them it is, and whether others are, is seen one by one
            found = {name: self._loaded(name) for name in names}
        tables = [t for name in names if (t := found[name]) is not None and self._is_nobodys(t)]
        return [replace(table, name=self.world.names.declared(table.name)) for table in tables]

    def _loaded(self, name: TableName) -> Table | None:
        try:
            return self.world.catalog.load([name])[name]
        except MetadataError as error:
            hint = f"{error.hint}; or leave the table out: `--exclude {name}`"
            self.mistakes.append(Diagnostic("unreadable-metadata", error.message, None, hint))
            return None

    def _is_nobodys(self, table: Table) -> bool:
        owner = owner_of(table)
        if is_history(table.properties):
            return self._passed(table.name, "it is a history of icemigrate", is_silent=True)
        if owner is not None and owner != self.world.project.name:
            return self._passed(table.name, f"it belongs to project `{owner}`")
        return True

    def adopt(self, table: Table) -> Adoption | None:
        """The entry that takes a table in; a complaint where there is none."""
        set_here = self._set_by_environment(table)
        differing = {key: value for key, value in set_here.items() if table.properties.get(key) != value}
        if differing:
            self._complain_of_overrides(table, differing)
            return None
        is_set = is_set_by_machines(self.world.catalog.capabilities)
        secret = {key for key, value in table.properties.items() if is_secret_property(key, value)}
        own = without_others(table, lambda key, value: is_set(key, value) or key in {*set_here, *secret})
        for key in sorted(secret - {*set_here}):
            self.notes.append(f"{table.name}: `properties.{key}` holds a credential and is left out")
        found = adoption(own)
        if found is None:
            self._passed(
                self.world.names.table(table.name), "no migration file can say its name; rename it first"
            )
            return None
        for part in found.unsaid:
            self.notes.append(f"{table.name}: no file can say its {part}, which stays as the catalog has it")
        return found

    def _set_by_environment(self, table: Table) -> Mapping[str, str]:
        """The properties that overrides give the table, whatever its file says."""
        names = self.world.names
        return names.adjust(Table(names.table(table.name), Schema())).properties

    def _complain_of_overrides(self, table: Table, differing: Mapping[str, str]) -> None:
        for key, value in differing.items():
            there = table.properties.get(key)
            message = (
                f"`{table.name}`: `overrides:` of environment `{self.world.environment.name}` set `{key}` to "
                f"`{value}`, and the table has {'none' if there is None else f'`{there}`'}"
            )
            hint = "bring the two together first, in the project file or in the catalog"
            self.mistakes.append(Diagnostic("override-differs", message, None, hint))
