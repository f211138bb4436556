"""Templates in files: entries for lists whose values are not in the project file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from icemigrate.diagnostics import Diagnostic, FilePosition, Severity
from icemigrate.errors import Mistakes
from icemigrate.files.read.list_sources import ListSource, is_list_value, placeholder
from icemigrate.files.read.migration_file import UNSET, MigrationFile, TableEntry
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.project.project_values import Project


class PlaceholderTable(Frozen):
    """A declared table with a placeholder for values that are not known.

    :param written: its name as it is in the file: ``otel.${tenant}_traces``.
    :param place: of the template.
    :param sources: the names of its lists, by variable.
    """

    written: str
    place: FilePosition
    sources: Mapping[str, str]

    @property
    def reason(self) -> str:
        """Why there is no such table."""
        lists = " and ".join(dict.fromkeys(f"`{name}`" for name in self.sources.values()))
        of_all = f"it is a placeholder for the tables of `{self.written}` ({self.place})"
        return f"{of_all}: the list {lists} has no values here"


def placeholder_tables(project: Project, files: Iterable[MigrationFile]) -> dict[TableName, PlaceholderTable]:
    """The declared tables that are placeholders of those of values which are not known."""
    found: dict[TableName, PlaceholderTable] = {}
    for entry in (template.entry for file in files for template in file.templates):
        sources = [project.lists.get(name) for name in entry.sources.values()]
        is_unknown = any(isinstance(one, ListSource) and one.values is None for one in sources)
        if is_unknown and entry.name is not None:
            with suppress(BadName):
                written = _written(entry.name, entry.sources)
                found[TableName.parse(entry.name)] = PlaceholderTable(written, entry.place, entry.sources)
    return found


def with_named_values(project: Project, files: Sequence[MigrationFile], names: Iterable[str]) -> Project:
    """The project with the values that names of tables of templates have.

    A table of a template can have a value that is not known here: the list has no values without a catalog,
    or the value left the list.

    :param names: of tables that a user names; those that files change are found here.
    :returns: the same project where there is no further value.
    """
    templates = [template.entry for file in files for template in file.templates]
    if not templates:
        return project
    plain = [entry for file in files for entry in file.tables if not entry.sources]
    declared = {entry.name for entry in plain if not _is_change_of_other(entry)}
    changed = {name for entry in plain for name in _changed_names(entry)}
    values: dict[str, dict[str, None]] = {}
    for text in sorted({*names, *changed} - declared):
        for entry in templates:
            for name, value in _values_in(text, entry):
                values.setdefault(name, {})[value] = None
    lists = dict(project.lists)
    for name, found in values.items():
        source = lists[name]
        assert isinstance(source, ListSource), "templates name such lists"
        if new := tuple(value for value in found if value not in (source.values or ())):
            lists[name] = replace(source, named=new)
    return dataclasses.replace(project, lists=lists) if lists != project.lists else project


def _values_in(text: str, entry: TableEntry) -> Iterator[tuple[str, str]]:
    """The values that a table's name has where a template gives it, each with the name of its list."""
    if entry.name is None or not all(placeholder(variable) in entry.name for variable in entry.sources):
        return
    pattern, variables = re.escape(_plain(entry.name)), list(entry.sources)
    for number, variable in enumerate(variables):
        mark = re.escape(placeholder(variable))
        pattern = pattern.replace(mark, f"(?P<v{number}>[A-Za-z0-9_-]+)", 1).replace(mark, f"(?P=v{number})")
    if (match := re.fullmatch(pattern, _plain(text))) is None:
        return
    for number, variable in enumerate(variables):
        value = match[f"v{number}"]
        if is_list_value(value) and value != placeholder(variable):
            yield entry.sources[variable], value


def _is_change_of_other(entry: TableEntry) -> bool:
    """Whether an entry cannot create its table."""
    creates = bool(entry.columns) and all(column.type is not UNSET for column in entry.columns)
    return not (entry.adopt or creates) or entry.drop


def _changed_names(entry: TableEntry) -> Iterator[str]:
    """The names that the table of an entry has before it, where the entry cannot create it."""
    if isinstance(entry.renamed_from, str):
        yield entry.renamed_from
    elif entry.name is not None and _is_change_of_other(entry):
        yield entry.name


def _written(text: str, sources: Mapping[str, str]) -> str:
    for variable in sources:
        text = text.replace(placeholder(variable), f"${{{variable}}}")
    return text


def _plain(name: str) -> str:
    return name.replace("`", "")


def placeholder_notes(project: Project, files: Iterable[MigrationFile]) -> Iterator[Diagnostic]:
    """A note for each list without values: its entries are checked with a placeholder."""
    noted = set[str]()
    for entry in (template.entry for file in files for template in file.templates):
        for variable, name in entry.sources.items():
            source = project.lists[name]
            if name not in noted and isinstance(source, ListSource) and source.values is None:
                noted.add(name)
                yield Diagnostic(
                    "placeholder-value",
                    f"the list `{name}` has no values here: its entries are checked for "
                    f"`{placeholder(variable)}`",
                    entry.place,
                    "`icemigrate plan` shows the tables of an environment",
                    Severity.NOTE,
                )


def require_written_values(files: Iterable[MigrationFile], command: str, hint: str) -> None:
    """Refuse to write a file whose tables depend on values that are not in the project file.

    :param command: the command that writes it.
    :raises Mistakes: with the templates.
    """
    found = tuple(
        Diagnostic(
            "template-values",
            f"`{command}` cannot write tables of {file.version}: the values of the list "
            f"`{next(iter(template.entry.sources.values()))}` are not in the project file",
            template.entry.place,
            hint,
        )
        for file in files
        for template in file.templates
    )
    if found:
        raise Mistakes(found)
