"""The entries that ``show`` prints: equal tables of a template as one entry with ``for_each``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from icemigrate.files.read.list_sources import ListSource, placeholder
from icemigrate.files.read.migration_file import MigrationFile, TableEntry
from icemigrate.files.write.entry_parts import EntryData
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.project.project_values import Project

FEWEST_IN_ENTRY = 2
"""Fewer tables of a template are shown as entries of their own."""


class ShownTemplate(Frozen):
    """A template and the tables that its entry covers.

    :param written: the name of the tables as it is in the file: ``otel.${tenant}_traces``.
    :param entry: with ``for_each``; empty where each table has an entry of its own.
    :param placeholder: the name with placeholders for the values.
    :param covered: the declared names of the tables, and the placeholder.
    """

    written: str
    entry: EntryData
    placeholder: TableName
    covered: frozenset[TableName]


def with_placeholders(project: Project, files: Iterable[MigrationFile]) -> Project:
    """The project with a placeholder among the values of each list that a template names."""
    lists = dict(project.lists)
    for entry in (template.entry for file in files for template in file.templates):
        for variable, name in entry.sources.items():
            source = lists[name]
            assert isinstance(source, ListSource), "templates name such lists"
            lists[name] = replace(source, named=tuple(dict.fromkeys((*source.named, placeholder(variable)))))
    return dataclasses.replace(project, lists=lists) if lists != project.lists else project


def shown_templates(
    project: Project,
    files: Iterable[MigrationFile],
    declared: Mapping[TableName, EntryData],
    *,
    shows_all: bool = False,
) -> tuple[ShownTemplate, ...]:
    """The templates whose tables are declared, each table in the last one that has its name.

    :param files: read with :func:`with_placeholders`.
    :param declared: the entry of each declared table, by its name.
    :param shows_all: whether each table of a known value has an entry of its own.
    """
    entries = {
        name: template.entry
        for file in files
        for template in file.templates
        if (name := _parsed(template.entry.name)) in declared
    }
    found = []
    for name, entry in entries.items():
        assert name is not None, "it is declared"
        is_known = all(_values(project, listed) is not None for listed in entry.sources.values())
        found.append(
            _template(project, entry, name, {name: declared[name]} if shows_all and is_known else declared)
        )
    return tuple(found)


def _template(
    project: Project, entry: TableEntry, name: TableName, declared: Mapping[TableName, EntryData]
) -> ShownTemplate:
    data = declared[name]
    marked = _escaped(data)
    for variable in entry.sources:
        marked = _with_text(marked, placeholder(variable), f"${{{variable}}}")
    for_each: dict[str, Any] = dict(entry.sources)
    covered = {name}
    if len(entry.sources) == 1:
        (variable, listed) = next(iter(entry.sources.items()))
        source = project.lists[listed]
        assert isinstance(source, ListSource), "templates name such lists"
        alike = {}
        for value in (*(source.values or ()), *source.named):
            copy = _with_text(data, placeholder(variable), value)
            own = _parsed(copy["name"])
            if own is not None and value != placeholder(variable) and declared.get(own) == copy:
                alike[value] = own
        is_whole = source.values is None or set(source.values) <= alike.keys()
        if not is_whole and len(alike) >= FEWEST_IN_ENTRY:
            for_each[variable] = list(alike)
        if is_whole or len(alike) >= FEWEST_IN_ENTRY:
            covered |= set(alike.values())
        else:
            for_each = {}
    else:
        is_known = any(_values(project, listed) is not None for listed in entry.sources.values())
        for_each = {} if is_known else for_each
    written = {"name": marked["name"], "for_each": for_each, **marked} if for_each else {}
    return ShownTemplate(marked["name"], written, name, frozenset(covered))


def _values(project: Project, listed: str) -> tuple[str, ...] | None:
    source = project.lists[listed]
    return source.values if isinstance(source, ListSource) else None


def _escaped(data: Any) -> Any:
    return _with_text(data, "${", "$${")


def _with_text(data: Any, old: str, new: str) -> Any:
    """The data with another text in all of its texts, keys included."""
    if isinstance(data, str):
        return data.replace(old, new)
    if isinstance(data, dict):
        return {_with_text(key, old, new): _with_text(value, old, new) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_with_text(item, old, new) for item in data)
    return data


def _parsed(text: str | None) -> TableName | None:
    try:
        return None if text is None else TableName.parse(text)
    except BadName:
        return None
