"""``show``: the declared state as YAML that is itself a valid declaration."""

from __future__ import annotations

from icemigrate.app.offline import rehearse
from icemigrate.app.opening import as_mistakes, known_version, sound_files
from icemigrate.declare.author import document, dump
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import UsageError
from icemigrate.model.names import BadName, TableName, format_path
from icemigrate.model.sides import State
from icemigrate.project.values import Project
from icemigrate.results import errors_of


def show(project: Project, table: str | None = None, at: str | None = None) -> str:
    """The declared tables.

    :param table: this one alone.
    :param at: as declared after this version; after the last where left out.
    :raises UsageError: there is no such table or version.
    :raises Mistakes: files up to that version hold mistakes.
    """
    files = sound_files(project)
    if at is not None:
        last = known_version(files, at, "--at")
        files = tuple(f for f in files if f.version.number <= last)
    rehearsed = rehearse(project, files)
    # A missing consent does not keep a table from being declared.
    as_mistakes(tuple(d for d in errors_of(rehearsed.diagnostics) if d.code != "missing-allow"))
    state = rehearsed.state
    if table is not None:
        return dump([document(state.tables[_named(state, table)])])
    if not state.tables:
        return "# no table is declared\n"
    inhabited = {name.namespace for name in state.tables}
    empty = sorted(format_path(n) for n in state.namespaces - inhabited)
    return dump([document(state.tables[n]) for n in sorted(state.tables)], namespaces=empty)


def _named(state: State, text: str) -> TableName:
    try:
        name = TableName.parse(text)
    except BadName as error:
        raise UsageError(str(error)) from error
    if name not in state.tables:
        hint = did_you_mean(text, map(str, state.tables)) or "`icemigrate show` prints all tables"
        raise UsageError(f"there is no declared table `{text}`", hint)
    return name
