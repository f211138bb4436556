"""Replays migration files before they are planned, with the inputs of the plan's
diagnostics and the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from icemigrate.changes.change import PlanProblem
from icemigrate.data_steps.time_zone import DEFAULT_TIME_ZONE
from icemigrate.diagnostics import Diagnostic, FilePosition, Severity, sort_key
from icemigrate.files.read.migration_file import UNSET, AnyFile, KeyPath, MigrationFile, TableEntry
from icemigrate.files.replay.replay_migration import ReplayedMigration, replay_migration
from icemigrate.files.replay.replay_work import ReplayWork
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.declared_sides import DeclaredState, TableTarget
from icemigrate.iceberg.metadata_tables import metadata_names, table_above
from icemigrate.iceberg.names import BadName, TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.planning.merge import Fact
from icemigrate.planning.plan import MISSING_CONSENT, Consent, MigrationPlan, PlannedMigrations, TablePlan
from icemigrate.planning.planning_context import PlanningContext, ReservedNames

_MOST_SHOWN = 20
"""Consents of a file that the hint of a missing one repeats."""
_MOST_SCOPED = 5
"""Up to so many missing consents of a file, each hint has the line that gives all of them."""
_PLAIN_ITEM = re.compile(r"[\w.]+( [\w.`-]+)*\Z")


_RULE = re.compile(r"IM[0-9]+")


def is_rule_finding(found: Diagnostic) -> bool:
    """Whether a rule of `check` reported it, and not the reading or planning of the file."""
    return _RULE.fullmatch(found.code) is not None


def plan_diagnostics(
    file: MigrationFile, entries: Mapping[TableName, TableEntry], plan: MigrationPlan
) -> Iterator[Diagnostic]:
    """Problems, warnings and missing consents of one migration.

    :param entries: the entry of the file for each planned table.
    """

    def diagnostic(problem: PlanProblem, severity: Severity) -> Diagnostic:
        entry = entries.get(problem.table)
        place = file.place if entry is None else entry.place_of(problem.subject)
        return Diagnostic(problem.rule, problem.message, place, problem.hint, severity)

    for problem in plan.problems:
        yield diagnostic(problem, Severity.ERROR)
    for problem in plan.warnings:
        yield diagnostic(problem, Severity.WARNING)
    yield from _missing_consents(file, plan)


def _missing_consents(file: MigrationFile, plan: MigrationPlan) -> Iterator[Diagnostic]:
    if not plan.unconsented:
        return
    changes = {
        h: f"`{t.declared}`: `{c.change.symbol} {c.text}`"
        for t in plan.tables
        for c in t.changes()
        for h in c.hazards
    }
    changes |= {h: f"`{t.declared}`: `{w.text}`" for t in plan.tables for w in t.rows for h in w.hazards}
    whole = _allow_line(file, (h.kind.value for h in plan.unconsented))
    place = file.allow_place or FilePosition(file.path)
    are_few = len(plan.unconsented) <= _MOST_SCOPED
    for hazard in plan.unconsented:
        allowed = plan.unconsented if are_few else (hazard,)
        scoped = _allow_line(file, (f"{h.kind.value} {h.scope}" for h in allowed))
        yield Diagnostic(
            MISSING_CONSENT,
            f"{changes[hazard]} is {hazard.kind.value}: {hazard.reason}",
            place,
            f"to allow it, write `{scoped}` in {file.path}, or `{whole}` for all changes of the file",
        )


def _allow_line(file: MigrationFile, more: Iterable[str]) -> str:
    """The file's ``allow`` with more consents in it, as it is to be written."""
    written = [a.kind if a.scope is None else f"{a.kind} {a.scope}" for a in file.allow[:_MOST_SHOWN]]
    items = [_yaml_item(item) for item in dict.fromkeys([*written, *more])]
    if len(file.allow) > _MOST_SHOWN:
        items.insert(_MOST_SHOWN, "…")
    return f"allow: [{', '.join(items)}]"


def _yaml_item(text: str) -> str:
    """A text as an item of a list in brackets, in quotes where YAML needs them."""
    return text if _PLAIN_ITEM.match(text) else "'" + text.replace("'", "''") + "'"


class ReplayedFile(Frozen):
    """A migration file and its declared tables, on the state after the migrations before it.

    :param targets: its declared tables, with recorded field ids where it is applied again.
    :param namespaces: all namespaces that are declared after it.
    :param entries: the entry of each target, by declared name.
    :param before: the tables before it, by the declared name after it.
    :param diagnostics: of the file itself; those of its plan are :meth:`plan_diagnostics`.
    :param broken: tables with errors in this file or an earlier one.
    """

    file: MigrationFile
    targets: tuple[TableTarget, ...] = ()
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    entries: Mapping[TableName, TableEntry] = field(default_factory=dict)
    before: Mapping[TableName, Table] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    broken: frozenset[TableName] = frozenset()

    @property
    def version(self) -> str:
        """The migration's version."""
        return self.file.version.text

    @property
    def consents(self) -> tuple[Consent, ...]:
        """The ``allow`` of the file."""
        return tuple(Consent(a.kind, a.scope) for a in self.file.allow)

    def migration_plan(self, tables: tuple[TablePlan, ...], context: PlanningContext) -> MigrationPlan:
        """The plan of the file, with plans of its tables."""
        file = self.file
        return MigrationPlan(
            version=self.version,
            description=migration_description(file),
            checksum=file.checksum if context.are_statements_read else "",
            tables=tables,
            namespaces=self.namespaces,
            fingerprint=file.fingerprint,
            time_zone=file.time_zone or DEFAULT_TIME_ZONE,
            lists=file.lists,
            extends=bool(file.whole_checksum),
        )

    def plan_diagnostics(self, plan: MigrationPlan) -> Iterator[Diagnostic]:
        """The problems, warnings and missing consents of the file's plan, with positions in the file."""
        return plan_diagnostics(self.file, self.entries, plan)


class PlannedFiles(PlannedMigrations):
    """The plans of migration files, with their inputs.

    :param sources: one for each plan.
    :param done: for each plan, the facts that the catalog already has as declared, by declared table.
    """

    sources: tuple[ReplayedFile, ...] = ()
    done: tuple[Mapping[TableName, tuple[Fact, ...]], ...] = ()

    @property
    def replay_diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of the files themselves."""
        return tuple(d for source in self.sources for d in source.diagnostics)

    def diagnostics(self, plans: Iterable[MigrationPlan]) -> tuple[Diagnostic, ...]:
        """The diagnostics of the files and of their plans, in display order.

        :param plans: one for each source, with the problems that were found after planning.
        """
        pairs = zip(self.sources, plans, strict=True)
        of_plans = (d for source, plan in pairs for d in source.plan_diagnostics(plan))
        return sorted_diagnostics((*self.replay_diagnostics, *of_plans))


def replay_file(
    state: DeclaredState,
    file: MigrationFile,
    broken: frozenset[TableName],
    actual: Mapping[TableName, Table | None],
    context: PlanningContext,
    work: ReplayWork | None = None,
) -> ReplayedFile:
    """Replay a file on the declared state before it.

    :param broken: tables with errors in earlier files.
    :param actual: the current tables, by their name in the catalog.
    :param work: see :func:`~icemigrate.files.replay.replay_migration.replay_migration`.
    :raises ConflictError: the migration was rolled back, and cannot be applied again.
    """
    known_file, reserved = _without_reserved(file, context.reserved)
    replayed = replay_migration(state, known_file, broken, work)
    targets = replayed.wanted
    redo = context.redos.get(file.version.text)
    if redo is not None:
        # `check` never redoes a version, and starts without this module and its imports.
        from icemigrate.planning.redo import redo_targets

        targets = redo_targets(replayed, known_file, redo, state, actual, context)
    previous = ((t.name, state.tables.get(t.formerly)) for t in targets if t.formerly is not None)
    return ReplayedFile(
        file,
        targets,
        replayed.namespaces,
        replayed.entries,
        {name: table for name, table in previous if table is not None},
        (
            *reserved,
            *replayed.diagnostics,
            *_unsupported_purges(replayed),
            *_hidden_tables(replayed, state),
        ),
        replayed.broken,
    )


def sorted_diagnostics(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Each diagnostic once, in display order."""
    return tuple(sorted(dict.fromkeys(found), key=sort_key))


def migration_description(file: AnyFile) -> str:
    """The description in the file, or else the words of its name."""
    return file.description or file.name.replace("_", " ")


def mentioned_tables(files: Iterable[MigrationFile], base: DeclaredState) -> frozenset[TableName]:
    """Declared names of all tables that the files can change: the tables that a plan reads
    from the catalog.
    """
    names: set[TableName] = set()
    for file in files:
        for entry in file.tables:
            if entry.match is not None:
                names |= base.tables.keys()  # a pattern can fit any table that is declared by then
            for text in (entry.name, None if entry.renamed_from is UNSET else entry.renamed_from):
                if text is not None:
                    names |= _parsed(text)
    return frozenset(names)


def exchanged_names(file: MigrationFile) -> frozenset[TableName]:
    """Declared names that one table gives up and another one gets, both by a rename in the file."""
    given_up, taken = set[TableName](), set[TableName]()
    for entry in file.tables:
        if entry.renamed_from is not UNSET and entry.name is not None:
            given_up |= _parsed(entry.renamed_from)
            taken |= _parsed(entry.name)
    return frozenset(given_up & taken)


def reused_names(files: Iterable[MigrationFile], base: DeclaredState) -> frozenset[TableName]:
    """Declared names under which the files can create a table where another table had the name before."""
    entries = [entry for file in files for entry in file.tables]
    freed = set(base.former)
    for entry in entries:
        if entry.renamed_from is not UNSET and entry.renamed_from is not None:
            freed |= _parsed(entry.renamed_from)
        if entry.drop and entry.name is not None:
            freed |= _parsed(entry.name)
        elif entry.drop:
            freed |= base.tables.keys()
    created = (e.name for e in entries if e.name is not None and (e.columns or e.adopt) and not e.drop)
    return frozenset(name for text in created for name in _parsed(text) if name in freed)


def _parsed(text: str) -> set[TableName]:
    try:
        return {TableName.parse(text)}
    except BadName:
        return set()  # replay reports it


def _without_reserved(
    file: MigrationFile, names: ReservedNames
) -> tuple[MigrationFile, tuple[Diagnostic, ...]]:
    """The file without the entries of reserved tables, and a diagnostic for each name of such a table."""
    checked = [(entry, tuple(_reserved_names_in(entry, names))) for entry in file.tables]
    diagnostics = tuple(diagnostic for _, of_entry in checked for diagnostic in of_entry)
    if not diagnostics:
        return file, ()
    return replace(file, tables=tuple(entry for entry, of_entry in checked if not of_entry)), diagnostics


def _reserved_names_in(entry: TableEntry, names: ReservedNames) -> Iterator[Diagnostic]:
    mentioned: tuple[tuple[str | None, KeyPath], ...] = (
        (entry.name, ("name",)),
        (None if entry.renamed_from is UNSET else entry.renamed_from, ("renamed_from",)),
    )
    for text, subject in mentioned:
        for name in () if text is None else _parsed(text):
            reason = names.reason(name)
            if reason is not None:
                yield Diagnostic(
                    "reserved-table",
                    f"`{text}` {reason}: it belongs to icemigrate, and no migration may change it",
                    entry.place_of(subject),
                    "name another table; `history:` in the project file sets where the history is",
                )


def _hidden_tables(replayed: ReplayedMigration, state: DeclaredState) -> Iterator[Diagnostic]:
    """New names of tables that Spark takes for the metadata of another declared table."""
    new = [t for t in replayed.wanted if t.table is not None and t.formerly != t.name]
    if not new:
        return
    gone = {t.formerly for t in replayed.wanted if t.formerly is not None}
    names = {*(state.tables.keys() - gone), *(t.name for t in replayed.wanted if t.table is not None)}
    inner_names, reported = metadata_names(names), set[TableName]()
    for target in new:
        above = table_above(target.name)
        outer, inner = (above, target.name) if above in names else (target.name, inner_names.get(target.name))
        if inner is not None and inner not in reported:
            reported.add(inner)
            yield Diagnostic(
                "metadata-table-name",
                f"`{inner}` is read as metadata of the table `{outer}`, so both cannot exist",
                replayed.entries[target.name].place_of(("name",)),
                "choose another name",
            )


def _unsupported_purges(replayed: ReplayedMigration) -> Iterator[Diagnostic]:
    for name, purges in replayed.purges.items():
        for purge in purges:
            path = format_path(purge.path)
            yield Diagnostic(
                "purge-unsupported",
                f"`{path}` of `{name}` cannot be purged: erasing values from data files is not supported yet",
                replayed.entries[name].place_of(("drop_columns", path)),
                "remove `purge`: the column is dropped, and its values stay in the data files",
            )
