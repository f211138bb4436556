"""Recorded tables, each compared with the table that the catalog has now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icemigrate.catalog.capabilities import server_managed_predicate
from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import MetadataError, UsageError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.iceberg.names import BadName, TableName
from icemigrate.iceberg.table import Table
from icemigrate.planning.drift.comparable_tables import ServerManaged
from icemigrate.planning.drift.differing_facts import DifferingFact, find_differing_facts


class ComparedTable(Frozen):
    """A recorded table, and what is found of it.

    :param there: the table that the history means, wherever it is now; ``None`` where it is gone.
    :param stranger: another table that has its name.
    :param unreadable: why its metadata cannot be read, and what to do; nothing else is known then.
    """

    base: Table
    there: Table | None
    stranger: Table | None
    facts: tuple[DifferingFact, ...] = ()
    unreadable: str | None = None

    @property
    def is_recreated(self) -> bool:
        """Whether the recorded table is gone, and another one has its name."""
        return self.there is None and self.stranger is not None

    @property
    def is_renamed(self) -> bool:
        """Whether it has another name in the catalog than it is declared under; see
        :func:`compare_recorded_tables`."""
        return self.there is not None and self.there.name != self.base.name


def compare_recorded_tables(
    session: EnvironmentSession, history: History, tables: Iterable[str] = ()
) -> tuple[ComparedTable, ...]:
    """The recorded tables with their current states.

    Their names are those in the catalog on both sides, so that a rename is a difference.

    :raises UsageError: no such table is recorded.
    """
    bases = [history.state.tables[name] for name in _chosen(history, tables)]
    physical = {base.name: session.names.table(base.name) for base in bases}
    loaded = load_readable_tables(session.catalog, physical.values())
    actual, unreadable = dict(loaded.tables), loaded.unreadable
    readable = [base for base in bases if physical[base.name] not in unreadable]
    if any(_is_missing_or_replaced(base, actual[physical[base.name]]) for base in readable):
        # Another client may have renamed it: it is searched by its uuid in all of the catalog.
        others = [name for name in session.catalog.tables() if name not in actual and name not in unreadable]
        actual |= load_readable_tables(session.catalog, others).tables
    machines = server_managed_predicate(session.catalog.capabilities)
    return tuple(
        _compare_table(base, name, actual, machines)
        if (name := physical[base.name]) not in unreadable
        else ComparedTable(replace(base, name=name), None, None, unreadable=unreadable[name])
        for base in bases
    )


def require_readable(met: Iterable[ComparedTable]) -> None:
    """Stop where a table cannot be read: what is not known cannot be declared or restored.

    :raises MetadataError: naming the first such table.
    """
    for one in met:
        if one.unreadable is not None:
            raise MetadataError(one.unreadable)


def _compare_table(
    base: Table, name: TableName, actual: Mapping[TableName, Table | None], machines: ServerManaged
) -> ComparedTable:
    here = actual[name]
    base = replace(base, name=name)
    if not _is_missing_or_replaced(base, here):
        assert here is not None
        return ComparedTable(base, here, None, find_differing_facts(base, here, machines))
    moved = next((t for t in actual.values() if t and base.uuid and t.uuid == base.uuid), None)
    facts = () if moved is None else find_differing_facts(base, moved, machines)
    return ComparedTable(base, moved, here, facts)


def _is_missing_or_replaced(base: Table, here: Table | None) -> bool:
    return here is None or (None not in (base.uuid, here.uuid) and base.uuid != here.uuid)


def _chosen(history: History, tables: Iterable[str]) -> list[TableName]:
    known = history.state.tables
    if not (texts := list(tables)):
        return sorted(known)
    chosen = set()
    for text in texts:
        try:
            name = TableName.parse(text)
        except BadName as error:
            raise UsageError(str(error)) from error
        if name not in known:
            hint = did_you_mean(text, map(str, known)) or "`icemigrate status` lists the tables"
            raise UsageError(f"the history has no table `{text}`", hint)
        chosen.add(name)
    return sorted(chosen)
