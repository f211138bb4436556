"""``diff``: writes the migration that leads from the declared state to a desired one; starts no JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from icemigrate.commands.desired_environment import read_environment_state
from icemigrate.commands.desired_sources import DesiredState, read_desired_state, read_schema_object
from icemigrate.commands.list_templates import PlaceholderTable, placeholder_tables
from icemigrate.commands.migration_draft import MigrationDraft, consents_of, plan_draft
from icemigrate.commands.next_migration_file import next_name, schema_header, write_next_file
from icemigrate.commands.plan_from_empty import OfflinePlan, plan_from_empty
from icemigrate.commands.project_files import load_valid_files, raise_if_errors
from icemigrate.desired_state.match_tables import TableMatch, match_table
from icemigrate.desired_state.rename_hints import (
    RenameQuestion,
    open_questions,
    parse_renames,
    require_used,
)
from icemigrate.desired_state.retypes import retype_comments
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import Mistakes, UsageError
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.write.entry_parts import EntryData, with_pins
from icemigrate.files.write.migration_entries import creation_entry
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import BadName, TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import errors_besides_consents
from icemigrate.results.diff_results import DiffResult, TableDiff

_REFUSAL = "no migration can declare this"
_BECAUSE = "the desired state declares it"
RenameAnswer = Callable[[RenameQuestion], int | None]
"""The index of the chosen candidate; ``None`` where nothing is renamed."""


class DiffOptions(Frozen):
    """The options of ``diff``.

    :param tables: names of the tables to compare; without any, all.
    :param renames: ``old=new``, see :func:`~icemigrate.desired_state.rename_hints.parse_renames`.
    :param no_renames: whether everything new is new, but for ``renames``.
    :param include_drops: whether the migration drops what the desired state does not have.
    :param description: of the migration.
    :param dry_run: whether no file is written.
    """

    tables: tuple[str, ...] = ()
    renames: tuple[str, ...] = ()
    no_renames: bool = False
    include_drops: bool = False
    description: str | None = None
    dry_run: bool = False


def diff(
    project: Project,
    desired: Path | Any | None = None,
    from_environment: str | None = None,
    options: DiffOptions | None = None,
    answer: RenameAnswer | None = None,
) -> DiffResult:
    """Write the next migration file, which leads from the declared state to the desired one.

    Reads only files, unless an environment is compared.

    :param desired: a file, a folder, a ``pyarrow.Schema`` or a ``StructType``.
    :param from_environment: the environment whose catalog is the desired state, instead of ``desired``.
    :param answer: asks whether something new is renamed; without it an open question is an error.
    :raises UsageError: there is no such file, table, environment or rename.
    :raises Mistakes: files have errors, a rename is not clear, or no migration can make the change.
    :raises CatalogError: the environment's catalog cannot be read.
    :raises IcemigrateError: a file cannot be read or written.
    """
    options = options or DiffOptions()
    names = tuple(map(_table_name, options.tables))
    wanted = _desired_state(project, desired, from_environment, names)
    of_templates = [str(table.name) for table in wanted.tables]
    behind = load_valid_files(project, names=of_templates) if project.migrations_dir.exists() else ()
    planned = plan_from_empty(project, behind)
    raise_if_errors(errors_besides_consents(planned.diagnostics))
    declared, wanted = _without_placeholders(placeholder_tables(project, behind), planned.state, wanted)
    limited = _limited(wanted, declared, names)
    comparison = _Comparison(declared, limited, options, answer, adopts=from_environment is not None)
    comparison.settle_renames()
    raise_if_errors(tuple(d for match in comparison.matches for d in match.problems))
    return _result(project, behind, comparison)


def _without_placeholders(
    stand_ins: Mapping[TableName, PlaceholderTable], declared: DeclaredState, wanted: DesiredState
) -> tuple[DeclaredState, DesiredState]:
    """Both states without the placeholders for tables of unknown values, which have no counterpart."""
    if not stand_ins:
        return declared, wanted
    written = (one.written for one in stand_ins.values())
    notes = (f"of `{name}`, only the tables that the desired state has are compared" for name in written)
    return (
        replace(declared, tables={n: t for n, t in declared.tables.items() if n not in stand_ins}),
        replace(
            wanted,
            tables=tuple(table for table in wanted.tables if table.name not in stand_ins),
            notes=(*wanted.notes, *notes),
        ),
    )


def _desired_state(
    project: Project, desired: Path | Any | None, environment: str | None, names: Sequence[TableName]
) -> DesiredState:
    if (desired is None) == (environment is None):
        raise UsageError(
            "`diff` compares the declared state with one other state",
            "name a file of tables (`.yaml`), Parquet or Arrow, a schema of Spark in JSON, a properties file "
            "of dbt, a data contract, a folder of such files, or `--from-env NAME`",
        )
    if environment is not None:
        return read_environment_state(project, environment)
    if isinstance(desired, Path):
        return read_desired_state(project, desired, names)
    return read_schema_object(desired, names)


def _table_name(text: str) -> TableName:
    try:
        return TableName.parse(text)
    except BadName as error:
        raise UsageError(f"`--table {text}`: {error}") from error


def _limited(wanted: DesiredState, declared: DeclaredState, names: Sequence[TableName]) -> DesiredState:
    """The desired state without tables that the user did not name."""
    if not names:
        return wanted
    known = {*declared.tables, *(table.name for table in wanted.tables)}
    for name in names:
        if name not in known:
            near = did_you_mean(str(name), map(str, known)) or "`icemigrate show` prints all declared tables"
            raise UsageError(f"`--table {name}`: neither state has this table", near)
    tables = tuple(table for table in wanted.tables if table.name in names)
    return DesiredState(tables, wanted.is_complete, frozenset(), wanted.notes)


class _Comparison:
    """The declared and the desired tables, matched.

    :ivar matches: one for each desired table. :ivar gone: declared tables that the desired state does not
        have. :ivar adopts: whether new tables exist in a catalog, so that their entries adopt them.
    """

    def __init__(
        self,
        declared: DeclaredState,
        wanted: DesiredState,
        options: DiffOptions,
        answer: RenameAnswer | None,
        *,
        adopts: bool = False,
    ) -> None:
        self.declared, self.wanted, self.options, self.answer = declared, wanted, options, answer
        self.adopts = adopts
        self.names = [table.name for table in wanted.tables]
        self.renames = parse_renames(options.renames, declared.tables, self.names)
        self.matches: list[TableMatch] = []
        self.gone: list[Table] = []
        self.match()
        require_used(self.renames, self.matches, self.names)

    def match(self) -> None:
        """Match the tables anew, with the renames that are known by now."""
        former = {new: old for old, new in self.renames.tables.items()}
        free = {n: t for n, t in self.declared.tables.items() if n not in self.renames.tables}
        self.matches = []
        for desired in self.wanted.tables:
            before = free.get(desired.name)
            if desired.name in former:
                before = self.declared.tables[former[desired.name]]
            fields = {} if before is None else self.renames.fields.get(before.name, {})
            self.matches.append(
                match_table(before, desired, fields, include_drops=self.options.include_drops)
            )
        compared = {match.before.name for match in self.matches if match.before is not None}
        limit = set(map(_table_name, self.options.tables))
        self.gone = [
            table
            for name, table in sorted(self.declared.tables.items())
            if self.wanted.is_complete and name not in compared and (not limit or name in limit)
        ]

    def settle_renames(self) -> None:
        """Ask about renames until none is open.

        :raises Mistakes: one is open, and the user cannot be asked.
        """
        declined: set[str] = set()
        while not self.options.no_renames:
            asked = list(open_questions(self.matches, self.gone, declined))
            if not asked:
                return
            if self.answer is None:
                message = "nothing was written: a rename is not clear"
                raise Mistakes(tuple(question.diagnostic() for question in asked), message)
            chosen = self.answer(asked[0])
            if chosen is None:
                declined.add(asked[0].subject)
            else:
                self.renames = asked[0].renames(self.renames, chosen)
                self.match()

    def entries(self) -> list[EntryData]:
        """The entries of the migration; those of dropped tables last."""
        found = [
            _adopting(entry) if self.adopts and match.before is None else entry
            for match in self.matches
            if (entry := match.entry) is not None
        ]
        if self.options.include_drops:
            found += [{"name": str(table.name), "drop": True} for table in self.gone]
        return found

    def namespaces(self) -> list[str]:
        """Declared namespaces without a table, which the declared state does not have."""
        new = self.wanted.namespaces - self.declared.namespaces
        return sorted(map(format_path, new))

    def left_out(self) -> Iterator[str]:
        """What stays although the desired state does not have it."""
        if self.options.include_drops:
            return
        for match in self.matches:
            for field in match.vanished:
                yield f"column {format_path(field.path)} of {match.after.name}"
            for name in match.lost_references:
                assert match.before is not None, "a new table loses nothing"
                yield f"{match.before.refs[name].kind} {name} of {match.after.name}"
        yield from (f"table {table.name}" for table in self.gone)


def _result(project: Project, behind: Sequence[MigrationFile], comparison: _Comparison) -> DiffResult:
    entries, options = comparison.entries(), comparison.options
    left_out, notes = tuple(comparison.left_out()), comparison.wanted.notes
    namespaces = tuple(comparison.namespaces())
    if not entries and not namespaces:
        return DiffResult(project.name, None, "", left_out=left_out, notes=notes)
    title = options.description or _title(entries)
    retypes = [(match.after.name, match.retypes) for match in comparison.matches]
    draft = MigrationDraft(entries, title, title, _BECAUSE, namespaces)
    name = next_name(project, draft.words, (f.version for f in behind))
    planned = plan_draft(project, behind, name, draft, _REFUSAL)
    _assert_desired(planned, comparison)
    # A person consents to a new column, after a review of its values.
    review = tuple(one.consent(table) for table, found in retypes for one in found)
    allow = tuple(one for one in consents_of(planned) if one not in review)
    comments = [line for table, found in retypes for line in retype_comments(table, found)]
    if review:
        place = "instead of the line `allow` below" if allow else "as a line of this file"
        comments.append(f"Then consent to it, {place}: allow: [{', '.join((*allow, *review))}]")
    text = replace(draft, comments=tuple(comments)).text(allow, schema_header(project))
    path = None if options.dry_run else write_next_file(project, name, text)
    return DiffResult(
        project=project.name,
        path=path,
        content=text,
        tables=tuple(
            TableDiff(str(table.declared), tuple(f"{c.change.symbol} {c.text}" for c in table.changes()))
            for table in planned.plans[-1].tables
        ),
        left_out=left_out,
        allow=allow,
        review=review,
        notes=notes,
    )


def _adopting(entry: EntryData) -> EntryData:
    """The entry of a table that exists already; where it does not, the entry creates it."""
    return {"name": entry["name"], "adopt": True, **entry}


def _title(entries: Sequence[EntryData]) -> str:
    if len(entries) == 1:
        return f"Change {entries[0]['name']}"
    return f"Change {len(entries)} tables" if entries else "Declare namespaces"


def _assert_desired(planned: OfflinePlan, comparison: _Comparison) -> None:
    """Assert that the new file leads to the desired state."""
    state = planned.state.tables
    for match in comparison.matches:
        assert _content(state[match.after.name]) == _content(match.wanted), f"{match.after.name} differs"
    taken = {match.after.name for match in comparison.matches}
    for table in comparison.gone:
        is_there = table.name in state and table.name not in taken
        assert is_there != comparison.options.include_drops, f"{table.name} differs"


def _content(table: Table) -> EntryData:
    """What a table declares, without its ids."""
    return with_pins(creation_entry(table), table)
