"""Replays one migration over the declared state, and returns the table of each entry. Pure.

All errors are collected; a table whose entry has one is left out of the result and listed in
:attr:`ReplayedMigration.broken`, so that later migrations report no errors that follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from icemigrate.diagnostics import Diagnostic, did_you_mean, renew_hints
from icemigrate.files.parse.similar_names import similar_name
from icemigrate.files.read.migration_file import UNSET, MigrationFile, NamespaceEntry, TableEntry
from icemigrate.files.replay.entry_diagnostics import EntryDiagnostics
from icemigrate.files.replay.replay_names import FieldPurge
from icemigrate.files.replay.replay_table import ReplayedTable, replay_table
from icemigrate.files.replay.replay_work import (
    ReplayWork,
    too_much_work,
    work_of_entry,
    work_of_new_fields,
    work_of_state,
)
from icemigrate.files.replay.taken_view_names import find_taken_view_names
from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.declared_sides import DeclaredState, TableTarget
from icemigrate.iceberg.names import BadName, TableName, parse_path
from icemigrate.iceberg.table import Table


class ReplayedMigration(Frozen):
    """The result of replaying one migration.

    :param wanted: the table of each entry without errors, in the order of the file; tables of a pattern by
        name.
    :param namespaces: all namespaces that are declared after the migration.
    :param entries: the entry of each table, by its name in ``wanted``.
    :param purges: fields whose values are to be erased, by the same name.
    :param broken: names of tables with errors in this or an earlier migration, for the replay of the next
        one.
    """

    wanted: tuple[TableTarget, ...]
    namespaces: frozenset[tuple[str, ...]]
    diagnostics: tuple[Diagnostic, ...] = ()
    entries: Mapping[TableName, TableEntry] = field(default_factory=dict)
    purges: Mapping[TableName, tuple[FieldPurge, ...]] = field(default_factory=dict)
    broken: frozenset[TableName] = frozenset()


def replay_migration(
    state: DeclaredState,
    migration: MigrationFile,
    broken: frozenset[TableName] = frozenset(),
    work: ReplayWork | None = None,
) -> ReplayedMigration:
    """Replay a migration over a state.

    :param broken: tables with errors in an earlier migration; they get no diagnostics.
    :param work: counts the work, and ends the replay where it is exceeded; without a limit by default.
    """
    renew_hints()
    return _MigrationReplay(state, migration, broken, work or ReplayWork.unlimited()).replay()


class _Task(Frozen):
    """An entry and the one table that it is about."""

    entry: TableEntry
    name: TableName
    formerly: TableName | None
    entry_diagnostics: EntryDiagnostics


class _MigrationReplay:
    def __init__(
        self,
        state: DeclaredState,
        migration: MigrationFile,
        broken: frozenset[TableName],
        work: ReplayWork,
    ) -> None:
        self.work = work
        self.state = state
        self.migration = migration
        self.broken_earlier = broken
        self.broken = set(broken)
        self.diagnostics: list[Diagnostic] = []
        self.leaving: dict[TableName, _Task] = {}
        self.waiting = set[TableName]()

    def replay(self) -> ReplayedMigration:
        self._check_consents()
        self.work.take(work_of_state(self.state))
        tasks = self._in_rename_order(self._once(self._tasks()))
        if self.work.is_exceeded:
            self.diagnostics.append(too_much_work(self.migration.place))
            tasks = []
        results: dict[TableName, ReplayedTable] = {}
        entries: dict[TableName, TableEntry] = {}
        for task in tasks:
            result = self._replay_task(task)
            if self.work.is_exceeded:
                self.diagnostics.append(too_much_work(task.entry.place))
                break
            self.diagnostics.extend(task.entry_diagnostics.found)
            names = {task.name} | ({task.formerly} if task.formerly else set())
            if result is None or task.entry_diagnostics.broken or names & self.broken:
                self.broken |= names
            else:
                results[task.name] = result
                entries[task.name] = task.entry
        self._refuse_taken_view_names(results, {task.name: task for task in tasks})
        wanted = tuple(result.wanted for result in results.values())
        return ReplayedMigration(
            wanted,
            self._namespaces(wanted),
            tuple(dict.fromkeys(self.diagnostics)),
            entries,
            {name: result.purges for name, result in results.items() if result.purges},
            frozenset(self.broken),
        )

    # which tables

    def _tasks(self) -> Iterator[_Task]:
        for entry in self.migration.tables:
            if self.work.is_exceeded:
                return
            if entry.match is not None:
                self.work.take(len(self.state.tables))
                yield from self._matched(entry)
                continue
            assert entry.name is not None, "an entry has a name or a pattern"
            entry_diagnostics = EntryDiagnostics(entry, entry.name)
            name = entry_diagnostics.name(entry.name, ("name",))
            formerly = None
            if entry.renamed_from is not UNSET:
                formerly = entry_diagnostics.name(entry.renamed_from, ("renamed_from",))
            if name is None or entry_diagnostics.broken:
                self.diagnostics.extend(entry_diagnostics.found)
            else:
                yield _Task(entry, name, formerly, entry_diagnostics)

    def _matched(self, entry: TableEntry) -> Iterator[_Task]:
        """One task for each declared table that fits."""
        assert entry.match is not None
        fitting = sorted(filter(entry.fits, self.state.tables))
        if not fitting and not any(map(entry.fits, self.broken)):
            entry_diagnostics = EntryDiagnostics(replace(entry, match=None), entry.match)
            hint = did_you_mean(entry.match, (str(n) for n in self.state.tables))
            entry_diagnostics.error(
                "no-match",
                ("match",),
                f"no table declared before this migration matches `{entry.match}`",
                hint or "the pattern must match the whole name, including the namespace: `bronze.*`",
            )
            self.diagnostics.extend(entry_diagnostics.found)
        for name in fitting:
            yield _Task(entry, name, None, EntryDiagnostics(entry, str(name)))

    def _once(self, tasks: Iterable[_Task]) -> list[_Task]:
        """The tasks without those about a table that another task is about."""
        kept: dict[TableName, _Task] = {}
        for task in tasks:
            other = kept.setdefault(task.name, task)
            if other is not task:
                self._clash(task, other, f"`{task.name}` occurs twice in this file")
                continue
            if task.formerly is not None:
                first = self.leaving.setdefault(task.formerly, task)
                if first is not task:
                    self._clash(task, first, f"`{task.formerly}` is renamed twice in this file")
        for task in [t for t in kept.values() if t.entry.match is not None and t.name in self.leaving]:
            self._clash(
                kept.pop(task.name), self.leaving[task.name], f"`{task.name}` occurs twice in this file"
            )
        return list(kept.values())

    def _in_rename_order(self, tasks: list[_Task]) -> list[_Task]:
        """A table that gives a name up comes before the one that takes it; otherwise as in the file.

        Of tables that exchange their names, one comes last and waits under another name.
        """
        names = {task.name for task in tasks}
        ordered: dict[TableName, _Task] = {}
        for first in tasks:
            line: dict[TableName, _Task] = {}
            task: _Task | None = first
            while task is not None and task.name not in ordered and task.name not in line:
                line[task.name] = task
                leaving = self.leaving.get(task.name)
                is_next = leaving is not None and leaving is not task and leaving.name in names
                task = leaving if is_next else None
            if task is not None and task.name in line:
                self.waiting.add(task.name)
            ordered.update(reversed(line.items()))
        return list(ordered.values())

    def _clash(self, task: _Task, other: _Task, what: str) -> None:
        message = f"{what}: here and at {other.entry.place}"
        plain = EntryDiagnostics(replace(task.entry, match=None), str(task.name))
        plain.error(
            "duplicate-table", (), message, "write everything about a table in one entry, or in two files"
        )
        self.diagnostics.extend(plain.found)
        self.broken |= {task.name} | ({task.formerly} if task.formerly else set())

    def _refuse_taken_view_names(
        self, results: dict[TableName, ReplayedTable], tasks: Mapping[TableName, _Task]
    ) -> None:
        """Report names that two objects would have, and leave their entries out of the results."""
        targets = [result.wanted for result in results.values()]
        for taken in find_taken_view_names(self.state.tables, targets):
            task = tasks[taken.table]
            entry_diagnostics = EntryDiagnostics(task.entry, str(task.name))
            entry_diagnostics.error("view-name-taken", taken.subject, taken.message, taken.hint)
            self.diagnostics.extend(entry_diagnostics.found)
            self.broken |= {task.name} | ({task.formerly} if task.formerly else set())
            results.pop(task.name, None)

    # one table

    def _replay_task(self, task: _Task) -> ReplayedTable | None:
        # An error of another entry of this file hides none of this one: both are about the state before it.
        if task.name in self.broken_earlier or task.formerly in self.broken_earlier:
            return None
        before = self._before(task)
        if before is None and (task.formerly is not None or not self._may_create(task)):
            return None
        self.work.take(work_of_entry(task.entry, before))
        if self.work.is_exceeded:
            return None
        version = self.migration.version.text
        result = replay_table(task.entry, task.name, before, task.entry_diagnostics, version)
        if result.wanted.table is not None:
            self.work.take(work_of_new_fields(result.wanted.table))
        zone, waits = self.migration.time_zone, task.name in self.waiting
        return replace(result, wanted=replace(result.wanted, time_zone=zone, waits=waits))

    def _before(self, task: _Task) -> Table | None:
        """The declared table; ``None`` without one, which is reported where the entry needs it."""
        tables = self.state.tables
        if task.formerly is None:
            # A table that is renamed away in this file leaves its name to a new one.
            return None if task.name in self.leaving else tables.get(task.name)
        subject = ("renamed_from",)
        if task.formerly == task.name:
            task.entry_diagnostics.error(
                "rename-to-itself", subject, f"`{task.name}` is renamed to its own name"
            )
            return None
        before = tables.get(task.formerly)
        if before is None:
            renamed = task.name in tables
            hint = (
                f"`{task.name}` is declared: write the old name in `renamed_from` and the new one in `name`; "
                "or was it renamed before?"
                if renamed
                else self._nearest(task.formerly)
            )
            message = f"there is no declared table `{task.formerly}` to rename"
            task.entry_diagnostics.error("unknown-table", subject, message, hint)
            return None
        if task.name in tables and task.name not in self.leaving:
            message = f"`{task.formerly}` cannot be renamed to `{task.name}`: that table already exists"
            task.entry_diagnostics.error(
                "name-in-use", subject, message, "rename that table too, or drop it in an earlier migration"
            )
            return None
        return before

    def _may_create(self, task: _Task) -> bool:
        """Whether the first mention of a table is one that can create it."""
        entry, name = task.entry, task.name
        # An adopted table may have no column that a file can declare.
        if entry.drop or not (entry.columns or entry.adopt):
            message = f"there is no declared table `{name}`"
            message += " to drop" if entry.drop else ", and without `columns` none can be created"
            task.entry_diagnostics.error("unknown-table", ("name",), message, self._nearest(name))
            return False
        near = similar_name(name, self.state.tables)
        if near is not None and near not in self.leaving:
            task.entry_diagnostics.warn(
                "near-name",
                ("name",),
                f"`{name}` is a new table with a name similar to `{near}`",
                f"write `{near}` if you mean that table",
            )
        return True

    def _nearest(self, name: TableName) -> str | None:
        return did_you_mean(str(name), (str(n) for n in self.state.tables))

    def _check_consents(self) -> None:
        for consent in self.migration.allow:
            try:
                parse_path(consent.scope or "any")
            except BadName as e:
                self.diagnostics.append(Diagnostic("bad-name", f"`allow`: {e}", consent.place))

    # namespaces

    def _namespaces(self, wanted: tuple[TableTarget, ...]) -> frozenset[tuple[str, ...]]:
        # The tables before the migration are in the state.
        inhabited = {w.name.namespace for w in wanted if w.table is not None}
        declared = {
            p for entry in self.migration.namespaces if (p := self._namespace_path(entry)) is not None
        }
        return self.state.namespaces | declared | inhabited

    def _namespace_path(self, entry: NamespaceEntry) -> tuple[str, ...] | None:
        try:
            return parse_path(entry.name)
        except BadName as e:
            self.diagnostics.append(Diagnostic("bad-name", str(e), entry.place))
            return None
