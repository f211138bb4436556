"""What is kept of an applied migration so that it can be undone, also when the catalog has forgotten it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icemigrate.frozen import Frozen, field, replace
from icemigrate.model.names import TableName
from icemigrate.model.sides import State, Wanted
from icemigrate.model.table import Table


class LastCopy(Frozen):
    """Values of dropped columns that only an earlier snapshot of the table still has.

    The columns are back, and rows lack these values until a refill brings them back.  Until then the snapshot
    must stay: its tag neither moves nor expires.

    :param declared: the table as the undo record knows it (:attr:`TableUndo.declared`).
    :param version: the tag that keeps the snapshot, or the snapshot's id where no tag does.
    :param fields: ids of the columns.
    :param max_ref_age_ms: the age limit that the tag had before the values depended on it.
    """

    declared: TableName
    version: str
    snapshot_id: int
    fields: tuple[int, ...]
    max_ref_age_ms: int | None = None


class TableUndo(Frozen):
    """One table of a migration, before and after it.

    :param declared_before: its declared name before; ``None`` where the migration was its first mention.
    :param declared_after: its declared name after; ``None`` where the migration dropped it.
    :param before: as declared before (what the history recorded then); ``None`` at a first mention.
    :param after: as declared after, with the ids that the catalog gave; ``None`` where it was dropped.
    :param actual_before: as it was in the catalog, everything that its metadata says, under its name there;
        ``None`` where the migration made it.
    :param actual_after: as it was read back; ``None`` where it was dropped.
    :param trash: the name that a dropped table was given in the catalog.
    :param rows_changed: whether the rows go back with the migration: it changed or removed values that were
        there before, or wrote files that keep a type from going back.
    :param rows_open: whether nobody has recorded yet if the changed rows were published: then the table's own
        snapshots tell.
    :param creates: the fields that the migration adds, by their id in :attr:`after`, each with all paths that
        it has while the migration runs.  Until a commit has landed the ids are those that the plan foresaw.
    :param created: ids of the fields that commits of this migration have added, as the committed metadata
        has them; ``None`` where no commit is recorded.
    :param is_tagged: whether each commit that adds a field also puts the migration's tag on the table.
    :param is_unproved: whether it is unknown which fields the migration added, since the table's older
        metadata files are gone.
    :param last_copies: where values are that an undo did not bring back.
    """

    declared_before: TableName | None
    declared_after: TableName | None
    before: Table | None
    after: Table | None
    actual_before: Table | None
    actual_after: Table | None
    trash: TableName | None = None
    rows_changed: bool = False
    rows_open: bool = False
    creates: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    created: frozenset[int] | None = None
    is_tagged: bool = False
    is_unproved: bool = False
    last_copies: tuple[LastCopy, ...] = ()

    @property
    def declared(self) -> TableName:
        """The name under which people know it: the later one, unless it was dropped."""
        name = self.declared_after or self.declared_before
        assert name is not None, "a table of a migration is declared before it or after it"
        return name


class UndoRecord(Frozen):
    """All tables of one applied migration, in the order in which they were done.

    :param baseline: it was recorded as done already, so undoing it touches no table either.
    :param namespaces: those that it made, by their names in the catalog; an older icemigrate noted none.
    """

    version: str
    tables: tuple[TableUndo, ...]
    baseline: bool = False
    namespaces: tuple[tuple[str, ...], ...] = ()


def with_last_copies(record: UndoRecord, copies: Iterable[LastCopy]) -> UndoRecord:
    """The record with these values depending on snapshots, in place of those that did before."""
    copies = tuple(copies)
    tables = (
        replace(t, last_copies=tuple(c for c in copies if c.declared == t.declared)) for t in record.tables
    )
    return replace(record, tables=tuple(tables))


def last_copies_of(record: UndoRecord | None) -> tuple[LastCopy, ...]:
    """All values of a migration that depend on snapshots."""
    return () if record is None else tuple(c for t in record.tables for c in t.last_copies)


def merged_copies(found: Iterable[LastCopy], known: Iterable[LastCopy]) -> tuple[LastCopy, ...]:
    """Newly found copies and those that are known; one that is both keeps the age limit that is known."""
    copies = {(c.declared, c.version, c.snapshot_id): c for c in known}
    new: list[LastCopy] = []
    for copy in found:
        key = copy.declared, copy.version, copy.snapshot_id
        if key in copies:
            fields = tuple(dict.fromkeys((*copies[key].fields, *copy.fields)))
            copies[key] = replace(copies[key], fields=fields)
        else:
            new.append(copy)
    return (*new, *copies.values())


def declared_record(version: str, wanted: Iterable[Wanted], state: State) -> UndoRecord:
    """What a migration makes of what is declared; nobody has looked into the catalog.

    :param state: as declared before it.
    """
    tables = (
        TableUndo(
            declared_before=w.formerly,
            declared_after=w.name if w.table is not None else None,
            before=state.tables.get(w.formerly) if w.formerly else None,
            after=w.table,
            actual_before=None,
            actual_after=None,
        )
        for w in wanted
    )
    return UndoRecord(version, tuple(tables))
