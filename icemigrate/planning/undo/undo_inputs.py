"""Inputs of an undo: options, tables and namespaces of the catalog, and facts that cannot be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from icemigrate.changes.change import PlanProblem, Subject
from icemigrate.frozen import Frozen
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table, creator_of
from icemigrate.iceberg.undo_record import TableUndo

Tables = Mapping[TableName, Table | None]


class UndoEnvironment(Frozen):
    """Where the tables live.

    :param physical: a declared table name → the name in the environment's catalog.
    :param views: as in :class:`~icemigrate.planning.planning_context.PlanningContext`.
    """

    project: str
    catalog_name: str
    physical: Callable[[TableName], TableName] = lambda name: name
    views: frozenset[TableName] = frozenset()

    def physical_namespace(self, declared: tuple[str, ...]) -> tuple[str, ...]:
        """A declared namespace as the catalog calls it."""
        return self.physical(TableName(declared, "any")).namespace


def find_undo_table(undo: TableUndo, actual: Tables) -> Table | None:
    """The current table; for a dropped one, the table in the trash."""
    names = [undo.trash] if undo.trash is not None else []
    names += [t.name for t in (undo.actual_after, undo.actual_before) if t is not None]
    uuid = recorded_uuid(undo)
    for name in names:
        there = actual.get(name)
        if there is not None and (_is_made_by(undo, there) if uuid is None else there.uuid in (None, uuid)):
            return there
    if uuid is None:
        return None
    return next((t for t in actual.values() if t is not None and t.uuid == uuid), None)


def _is_made_by(undo: TableUndo, there: Table) -> bool:
    """Whether an interrupted migration created the table, which its marker shows."""
    if undo.actual_before is not None or undo.actual_after is None:
        return True
    mark = creator_of(undo.actual_after)
    return mark is None or creator_of(there) == mark


def recorded_uuid(undo: TableUndo) -> str | None:
    """The table's uuid, as far as the record has it."""
    tables = (undo.actual_after, undo.actual_before, undo.after, undo.before)
    return next((t.uuid for t in tables if t is not None and t.uuid is not None), None)


def current_declared_name(undo: TableUndo, state: DeclaredState) -> TableName | None:
    """The table's declared name now: a later migration may have renamed it."""
    name = undo.declared_after
    if name is None:
        return None
    uuid = recorded_uuid(undo)
    if uuid is not None:
        now = next((n for n, t in state.tables.items() if t.uuid == uuid), None)
        if now is not None:
            return now
    return name if name in state.tables else None


def candidate_names(
    undo: TableUndo, state: DeclaredState, physical: Callable[[TableName], TableName]
) -> Iterable[TableName]:
    """Names in the catalog that planning the undo reads."""
    names = [undo.trash] if undo.trash is not None else []
    names += [t.name for t in (undo.actual_before, undo.actual_after) if t is not None]
    declared = [undo.declared_before, undo.declared_after, current_declared_name(undo, state)]
    return dict.fromkeys([*names, *(physical(n) for n in declared if n is not None)])


Namespace = tuple[str, ...]


class NamespaceContents(Frozen):
    """The content of the catalog's namespaces, before anything is undone.

    :param there: all namespaces.
    :param tables: the tables directly inside those that may be dropped.
    """

    there: frozenset[Namespace] = frozenset()
    tables: Mapping[Namespace, frozenset[TableName]] = {}


def emptied_namespaces(
    made: Iterable[Namespace], contents: NamespaceContents, actual: Mapping[TableName, Table | None]
) -> Iterator[Namespace]:
    """The namespaces that a migration created and that are empty after the undo, the deepest first.

    Namespaces from before the migration are not in its record, so they are never dropped.

    :param actual: the tables after the undo; a name with ``None`` is free then.
    """
    there = set(contents.there)
    for namespace in sorted(made, key=len, reverse=True):
        before = contents.tables.get(namespace, frozenset())
        now = {table.name for table in actual.values() if table is not None}
        is_left = any(name.namespace == namespace for name in now) or any(
            actual.get(name, name) is not None for name in before
        )
        has_below = any(other[: len(namespace)] == namespace != other for other in there)
        if namespace in there and not is_left and not has_below:
            there.discard(namespace)
            yield namespace


FactKey: TypeAlias = tuple[str, ...]
"""The key of a fact that stays as the migration left it, as ``("type", "7")``; see
:mod:`icemigrate.planning.undo.retained_facts`.
"""


class MissingEvidence(Exception):
    """A question about files was not answered: a bug in the caller."""


class UndoOptions(Frozen):
    """The user's options of an undo.

    :param partial: facts that cannot be undone stay, and the rest is undone.
    :param discard_new_data: rows written since a migration that changed rows are discarded.
    :param metadata_only: the rows of a migration that changed rows stay as they are.
    :param is_recovery: a failed run undoes its own changes: its new tables get a name in the trash that no
        other run uses, because the file may be applied again under the same version; and no column is
        restored without its values.
    :param taken_back: the summaries of snapshots that migrations wrote which the same plan undoes earlier:
        their rows do not count as rows that would be lost.
    :param refill: values that the files do not contain any more are written back from a tag; ``None``: only
        where an earlier run has begun that.
    """

    partial: bool = False
    discard_new_data: bool = False
    metadata_only: bool = False
    is_recovery: bool = False
    taken_back: frozenset[str] = frozenset()
    refill: bool | None = None


DEFAULT_UNDO_OPTIONS = UndoOptions()


class IrreversibleFact(Frozen):
    """A fact of the migration that cannot be undone.

    :param key: the fact that stays then.
    :param rule: permanent identifier.
    :param what: the fact, as a message names it.
    :param verdict: the impossible action, as it follows on :attr:`what`.
    :param why: the reason, in words that facts of one kind share.
    :param stays: the fact that stays, as a phrase.
    """

    key: FactKey
    rule: str
    subject: Subject
    what: str
    verdict: str
    why: str
    stays: str


class IrreversibleGroup(Frozen):
    """Facts that cannot be undone for one reason, reported together: a table may have hundreds of columns."""

    facts: tuple[IrreversibleFact, ...]

    @property
    def rule(self) -> str:
        """Permanent identifier."""
        return self.facts[0].rule

    @property
    def subject(self) -> Subject:
        """Where the first one is declared."""
        return self.facts[0].subject

    @property
    def message(self) -> str:
        """The reason."""
        first = self.facts[0]
        return f"{', '.join(f.what for f in self.facts)} {first.verdict}: {first.why}"

    @property
    def stays(self) -> str:
        """The facts that stay, as a phrase."""
        return ", ".join(f.stays for f in self.facts)


def group_by_reason(refusals: Iterable[IrreversibleFact]) -> tuple[IrreversibleGroup, ...]:
    """Irreversible facts, grouped by their text."""
    groups: dict[tuple[str, str, str], list[IrreversibleFact]] = {}
    for refusal in refusals:
        groups.setdefault((refusal.rule, refusal.verdict, refusal.why), []).append(refusal)
    return tuple(IrreversibleGroup(tuple(group)) for group in groups.values())


def both_declared_states(undo: TableUndo) -> tuple[Table, Table]:
    """The declared table before and after the migration; only for one that exists on both sides."""
    before, after = undo.before, undo.after
    assert before is not None, "it was declared before the migration"
    assert after is not None, "it is declared after the migration"
    return before, after


def moved_references(before: Table, after: Table) -> tuple[str, ...]:
    """The branches and tags that a migration pinned, and so may have moved."""
    return tuple(
        name
        for name, pin in after.pins.items()
        if pin.snapshot_id is not None and before.pins.get(name) != pin and name in before.refs
    )


def view_in_the_way(declared: TableName, name: TableName) -> PlanProblem:
    """The problem of a view under the name that a table needs again."""
    return PlanProblem(
        "view-exists",
        declared,
        ("name",),
        f"`{declared}` cannot be renamed back: `{name}` is now a view",
        "drop or rename the view, and roll back again; `--partial` undoes the rest",
    )
