"""Templates in files: entries for lists whose values are not in the project file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icemigrate.diagnostics import Diagnostic, Severity
from icemigrate.errors import Mistakes
from icemigrate.files.read.list_sources import ListSource
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.project.project_values import Project


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
                    f"`{entry.variables[variable]}`",
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
