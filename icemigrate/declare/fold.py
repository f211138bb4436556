"""A migration folded over the declared state: what it makes of each table it mentions.

Pure.  Every mistake is collected; a table whose entry has one is left out of the result and named in
:attr:`Folded.broken`, so that the next migrations are not blamed for what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from icemigrate.declare.complaints import Complaints
from icemigrate.declare.fold_names import Purge
from icemigrate.declare.fold_table import FoldedTable, fold_table
from icemigrate.declare.migration import UNSET, MigrationFile, NamespaceEntry, TableEntry
from icemigrate.declare.near import near_name
from icemigrate.diagnostics import Diagnostic, did_you_mean, renew_hints
from icemigrate.frozen import Frozen, field, replace
from icemigrate.model.names import BadName, TableName, parse_path
from icemigrate.model.sides import State, Wanted
from icemigrate.model.table import Table


class Folded(Frozen):
    """What a migration comes to.

    :param wanted: one for each table that the migration mentions and has no mistake about, in the order
        of the file; a pattern's tables by name.
    :param namespaces: all namespaces that are declared after it.
    :param entries: the entry that each wanted table comes from, by its name in ``wanted``.
    :param purges: fields whose values are to be erased, by the same name.
    :param broken: names of tables about which something is wrong here or was before; to be handed to
        the fold of the next migration.
    """

    wanted: tuple[Wanted, ...]
    namespaces: frozenset[tuple[str, ...]]
    diagnostics: tuple[Diagnostic, ...] = ()
    entries: Mapping[TableName, TableEntry] = field(default_factory=dict)
    purges: Mapping[TableName, tuple[Purge, ...]] = field(default_factory=dict)
    broken: frozenset[TableName] = frozenset()


def fold(state: State, migration: MigrationFile, broken: frozenset[TableName] = frozenset()) -> Folded:
    """Fold a migration over a state.

    :param broken: tables that an earlier migration was wrong about; nothing is said about them.
    """
    renew_hints()
    return _Fold(state, migration, broken).fold()


class _Task(Frozen):
    """An entry and the one table that it is about."""

    entry: TableEntry
    name: TableName
    formerly: TableName | None
    complaints: Complaints


class _Fold:
    def __init__(self, state: State, migration: MigrationFile, broken: frozenset[TableName]) -> None:
        self.state = state
        self.migration = migration
        self.broken = set(broken)
        self.diagnostics: list[Diagnostic] = []
        self.leaving: dict[TableName, _Task] = {}

    def fold(self) -> Folded:
        tasks = self._once(self._tasks())
        results: dict[TableName, FoldedTable] = {}
        entries: dict[TableName, TableEntry] = {}
        for task in tasks:
            result = self._fold_one(task)
            self.diagnostics.extend(task.complaints.found)
            if result is None or task.complaints.broken:
                self.broken |= {task.name} | ({task.formerly} if task.formerly else set())
            else:
                results[task.name] = result
                entries[task.name] = task.entry
        wanted = tuple(result.wanted for result in results.values())
        return Folded(
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
            if entry.match is not None:
                yield from self._matched(entry)
                continue
            assert entry.name is not None, "an entry has a name or a pattern"
            complaints = Complaints(entry, entry.name)
            name = complaints.name(entry.name, ("name",))
            formerly = None
            if entry.renamed_from is not UNSET:
                formerly = complaints.name(entry.renamed_from, ("renamed_from",))
            if name is None or complaints.broken:
                self.diagnostics.extend(complaints.found)
            else:
                yield _Task(entry, name, formerly, complaints)

    def _matched(self, entry: TableEntry) -> Iterator[_Task]:
        """One task for each declared table that fits."""
        assert entry.match is not None
        fitting = sorted(filter(entry.fits, self.state.tables))
        if not fitting and not any(map(entry.fits, self.broken)):
            complaints = Complaints(replace(entry, match=None), entry.match)
            hint = did_you_mean(entry.match, (str(n) for n in self.state.tables))
            complaints.error(
                "no-match",
                ("match",),
                f"no table that is declared before this migration fits `{entry.match}`",
                hint or "the whole name has to fit, namespace included: `bronze.*`",
            )
            self.diagnostics.extend(complaints.found)
        for name in fitting:
            yield _Task(entry, name, None, Complaints(entry, str(name)))

    def _once(self, tasks: Iterable[_Task]) -> list[_Task]:
        """The tasks without those about a table that another one is about (the fold, rule 7)."""
        kept: dict[TableName, _Task] = {}
        for task in tasks:
            other = kept.setdefault(task.name, task)
            if other is not task:
                self._clash(task, other, f"`{task.name}` stands twice in this file")
                continue
            if task.formerly is not None:
                first = self.leaving.setdefault(task.formerly, task)
                if first is not task:
                    self._clash(task, first, f"`{task.formerly}` is renamed twice in this file")
        for task in [t for t in kept.values() if t.entry.match is not None and t.name in self.leaving]:
            self._clash(
                kept.pop(task.name), self.leaving[task.name], f"`{task.name}` stands twice in this file"
            )
        return list(kept.values())

    def _clash(self, task: _Task, other: _Task, what: str) -> None:
        message = f"{what}: here and at {other.entry.place}"
        plain = Complaints(replace(task.entry, match=None), str(task.name))
        plain.error(
            "duplicate-table", (), message, "write everything about a table in one entry, or in two files"
        )
        self.diagnostics.extend(plain.found)
        self.broken |= {task.name} | ({task.formerly} if task.formerly else set())

    # one table

    def _fold_one(self, task: _Task) -> FoldedTable | None:
        if task.name in self.broken or task.formerly in self.broken:
            return None
        before = self._before(task)
        if before is None and (task.formerly is not None or not self._may_create(task)):
            return None
        return fold_table(task.entry, task.name, before, task.complaints)

    def _before(self, task: _Task) -> Table | None:
        """The table so far; ``None`` where there is none, after a complaint where there should be one."""
        tables = self.state.tables
        if task.formerly is None:
            # A table that is renamed away in this file leaves its name to a new one.
            return None if task.name in self.leaving else tables.get(task.name)
        subject = ("renamed_from",)
        if task.formerly == task.name:
            task.complaints.error(
                "rename-to-itself", subject, f"`{task.name}` is renamed to the name that it has"
            )
            return None
        before = tables.get(task.formerly)
        if before is None:
            renamed = task.name in tables
            hint = (
                f"`{task.name}` is declared: the old name stands in `renamed_from`, the new one in `name`; "
                "or was it renamed before?"
                if renamed
                else self._nearest(task.formerly)
            )
            message = f"there is no declared table `{task.formerly}` to rename"
            task.complaints.error("unknown-table", subject, message, hint)
            return None
        if task.name in tables and task.name not in self.leaving:
            message = f"`{task.formerly}` cannot be renamed to `{task.name}`: there is such a table already"
            task.complaints.error(
                "name-in-use", subject, message, "rename that one too, or drop it in a migration before"
            )
            return None
        return before

    def _may_create(self, task: _Task) -> bool:
        """Whether the first mention of a table is one that can create it."""
        entry, name = task.entry, task.name
        # A table that is adopted may have no column that a file could say.
        if entry.drop or not (entry.columns or entry.adopt):
            message = f"there is no declared table `{name}`"
            message += " to drop" if entry.drop else ", and without `columns` none can be created"
            task.complaints.error("unknown-table", ("name",), message, self._nearest(name))
            return False
        near = near_name(name, self.state.tables)
        if near is not None and near not in self.leaving:
            task.complaints.warn(
                "near-name",
                ("name",),
                f"`{name}` is a new table, with a name very near to `{near}`",
                f"write `{near}` if that one is meant",
            )
        return True

    def _nearest(self, name: TableName) -> str | None:
        return did_you_mean(str(name), (str(n) for n in self.state.tables))

    # namespaces

    def _namespaces(self, wanted: tuple[Wanted, ...]) -> frozenset[tuple[str, ...]]:
        gone = {w.formerly for w in wanted if w.formerly is not None}
        there = {w.name for w in wanted if w.table is not None}
        inhabited = {n.namespace for n in ({*self.state.tables} - gone) | there}
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
