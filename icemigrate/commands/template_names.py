"""Names that templates give to tables: no template may change a table that another entry declares.

The values of a list can appear after the files were written, so that a name can be one by accident.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from icemigrate.commands.project_files import load_files, raise_if_errors
from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.read.list_sources import ListSource, by_list_name
from icemigrate.files.read.migration_file import MigrationFile, TableEntry, Unset
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.project.project_values import Project

RecordedValues = Mapping[Version, Mapping[str, tuple[str, ...]]]
"""The values of lists for which each applied version is applied, by the names of the lists."""


class NameCollision(Frozen):
    """A template's table that another entry declares.

    :param entry: the template's copy.
    :param owner: where the table is declared; ``None`` for the quarantine of the project's log.
    :param is_new_value: whether the template is applied already, and the value is new.
    :param is_freed: whether a pending migration drops or renames the other table.
    """

    name: TableName
    entry: TableEntry
    owner: FilePosition | None
    is_new_value: bool = False
    is_freed: bool = False

    def diagnostic(self, project: Project) -> Diagnostic:
        """The error, with what helps."""
        variable, listed = next(iter(self.entry.sources.items()))
        value, source = self.entry.variables[variable], project.lists.get(listed)
        is_file = isinstance(source, ListSource) and source.kind == "file"
        what = "is the quarantine of the log" if self.owner is None else f"is declared in {self.owner}"
        if self.is_new_value and not is_file:
            hint = "rename or drop that table in a new migration: a later plan creates that of the template"
        elif is_file:
            hint = f"remove `{value}` from the list `{listed}`, or name the tables in another way"
        else:
            hint = "give the tables of the template another name"
        if self.owner is None:
            hint = "name another table in `quarantine` of `pipeline`"
        return Diagnostic(
            "template-name-taken",
            f"`{self.name}`, the name that this template gives for `{value}`, {what}",
            self.entry.place,
            hint,
        )


def name_collisions(
    project: Project,
    files: Sequence[MigrationFile],
    recorded: RecordedValues,
    skipped: Iterable[Version] = (),
) -> Iterator[NameCollision]:
    """The tables of templates that belong to other entries.

    :param files: all files, in order.
    :param recorded: of the applied versions; all other files are pending.
    :param skipped: versions that are neither applied nor pending.
    """
    owners: dict[TableName, TableEntry] = {}
    new, pending = list[TableEntry](), list[TableEntry]()
    left_out = set(skipped)
    for file in files:
        values = recorded.get(file.version)
        for entry in file.tables if file.version not in left_out else ():
            if values is None:
                pending.append(entry)
            elif lacks_values(entry, values):
                new.append(entry)
            else:
                follow_name(owners, entry)
    freed = {name for entry in pending if not entry.sources for name in _freed_names(entry)}
    quarantine = None if project.pipeline.log is None else _parsed(project.pipeline.quarantine)
    for entries, is_new_value in ((new, True), (pending, False)):
        for entry in entries:
            name = _parsed(entry.name)
            owner = owners.get(name) if name is not None else None
            if name is not None and entry.sources and name == quarantine:
                yield NameCollision(name, entry, None, is_new_value)
            elif name is not None and owner is not None and entry.sources and not _are_one(entry, owner):
                yield NameCollision(name, entry, owner.place, is_new_value, name in freed)
            follow_name(owners, entry)


def require_own_names(project: Project, history: History, pending: Sequence[MigrationFile]) -> None:
    """Refuse pending templates that would change the tables of other entries.

    :raises Mistakes: with the templates.
    """
    names = [name for file in pending for e in file.tables if e.sources and (name := _parsed(e.name))]
    if not names:
        return
    others = {_parsed(e.name) for file in pending for e in file.tables if not e.sources}
    others |= {*history.state.tables, _parsed(project.pipeline.quarantine)}
    if len(set(names)) == len(names) and others.isdisjoint(names):
        return
    loaded = load_files(project)
    raise_if_errors(loaded.diagnostics)
    versions = {file.version for file in pending}
    recorded = {
        one.version: by_list_name(one.list_values)
        for one in history.applied
        if one.state is VersionState.APPLIED
    }
    skipped = {one.version for one in history.applied} - recorded.keys() - versions
    found = name_collisions(project, loaded.migrations, recorded, skipped)
    raise_if_errors(tuple(one.diagnostic(project) for one in found if not one.is_new_value))


def lacks_values(entry: TableEntry, recorded: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a copy of a template has a value that is not recorded."""
    return any(
        entry.variables[variable] not in recorded.get(name, ()) for variable, name in entry.sources.items()
    )


def follow_name(names: dict[TableName, TableEntry], entry: TableEntry) -> None:
    """Note the name of a table after an entry, with the entry that created the table.

    Replay reports wrong names.
    """
    owner = entry
    if (renamed := _parsed(entry.renamed_from)) is not None:
        owner = names.pop(renamed, owner)
    if (name := _parsed(entry.name)) is not None:
        names.setdefault(name, owner)
        if entry.drop:
            del names[name]


def _freed_names(entry: TableEntry) -> Iterator[TableName]:
    """Names that a table has no longer after an entry."""
    for text in (entry.name if entry.drop else None, entry.renamed_from):
        if (name := _parsed(text)) is not None:
            yield name


def _are_one(entry: TableEntry, owner: TableEntry) -> bool:
    """Whether both entries are about the table of the same value, such as one tenant."""
    return sorted(entry.variables.values()) == sorted(owner.variables.values())


def _parsed(text: str | Unset | None) -> TableName | None:
    try:
        return TableName.parse(text) if isinstance(text, str) else None
    except BadName:
        return None
