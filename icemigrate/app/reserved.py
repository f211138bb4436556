"""Tables of icemigrate's own, of which no migration may speak: histories, and what lies in the trash."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TypeAlias

from icemigrate.app.mapping import Names
from icemigrate.declare.migration import UNSET, MigrationFile, Subject, TableEntry
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import UsageError
from icemigrate.frozen import replace
from icemigrate.model.makers import TRASH_NAMESPACE
from icemigrate.model.names import BadName, TableName
from icemigrate.project.values import Environment, Project

WhyReserved: TypeAlias = Callable[[TableName], "str | None"]
"""What a declared name is to icemigrate; ``None`` where it is anybody's."""


def nothing_reserved(_name: TableName) -> str | None:
    """Where there is no project to have a history."""
    return None


def reserved_in(
    project: Project,
    environments: Collection[Environment] | None = None,
    others: Collection[TableName] = (),
) -> WhyReserved:
    """What icemigrate keeps for itself.

    :param environments: those that are looked at; all of the project where left out.
    :param others: declared names of tables that are histories of other projects.
    """
    history = TableName.parse(project.history)
    own = {**dict.fromkeys(others, "holds a project's history"), history: "holds this project's history"}
    for environment in project.environments.values() if environments is None else environments:
        # A variable among the names that is not set here is for others to tell.
        with suppress(UsageError):
            mapped = Names(environment).declared(history)
            own.setdefault(mapped, f"is `{history}` in environment `{environment.name}`, the history")

    def why(name: TableName) -> str | None:
        if name.namespace[:1] == (TRASH_NAMESPACE,):
            return "lies in the trash for dropped tables"
        return own.get(name)

    return why


def without_reserved(file: MigrationFile, why: WhyReserved) -> tuple[MigrationFile, tuple[Diagnostic, ...]]:
    """The file without the entries that speak of such a table, and what is to be said of each."""
    told = [(entry, tuple(_mistakes(entry, why))) for entry in file.tables]
    found = tuple(mistake for _, mistakes in told for mistake in mistakes)
    if not found:
        return file, ()
    return replace(file, tables=tuple(entry for entry, mistakes in told if not mistakes)), found


def _mistakes(entry: TableEntry, why: WhyReserved) -> Iterator[Diagnostic]:
    named: tuple[tuple[str | None, Subject], ...] = (
        (entry.name, ("name",)),
        (None if entry.renamed_from is UNSET else entry.renamed_from, ("renamed_from",)),
    )
    for text, subject in named:
        try:
            reason = None if text is None else why(TableName.parse(text))
        except BadName:
            continue  # the fold says so
        if reason is not None:
            yield Diagnostic(
                "reserved-table",
                f"`{text}` {reason}: it is icemigrate's own, and no migration may touch it",
                entry.place_of(subject),
                "name another table; where the history is kept, `history:` in the project file says",
            )
