"""What the history stores of an applied migration so that it can be undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icemigrate.frozen import Frozen, field, replace
from icemigrate.iceberg.declared_sides import DeclaredState, TableTarget
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table


class LastCopy(Frozen, rename="kebab"):
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


class TableUndo(Frozen, rename="kebab", omit_defaults=True):
    """One table of a migration, before and after it.

    :param declared_before: its declared name before; ``None`` where the migration was its first mention.
    :param declared_after: its declared name after; ``None`` where the migration dropped it.
    :param before: the recorded table before; ``None`` at a first mention.
    :param after: the declared table after, with the catalog's ids; ``None`` where it was dropped.
    :param actual_before: the complete table in the catalog before, under its name there; ``None`` where the
        migration created it.
    :param actual_after: the table as it was read back; ``None`` where it was dropped.
    :param trash: the name that a dropped table got in the catalog.
    :param rows_changed: whether an undo restores the rows: the migration changed or removed earlier values,
        or wrote files that prevent undoing a type.
    :param rows_open: whether it is not yet recorded if the changed rows were published: then the table's own
        snapshots show it.
    :param creates: the fields that the migration adds, by their id in :attr:`after`, each with all paths that
        it has while the migration runs.  Until a commit the ids are predicted ones.
    :param created: ids of the fields that commits of this migration have added, from the committed metadata;
        ``None`` without a recorded commit.
    :param is_tagged: whether each commit that adds a field also puts the migration's tag on the table.
    :param is_signed: whether each commit that adds a field names its run.
    :param is_unproved: whether it is unknown which fields the migration added, because the table's older
        metadata files are gone.
    :param last_copies: the sources of values that an undo did not restore.
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
    is_tagged: bool = field(default=False, name="tagged")
    is_signed: bool = field(default=False, name="signed")
    is_unproved: bool = field(default=False, name="unproved")
    last_copies: tuple[LastCopy, ...] = ()

    @property
    def declared(self) -> TableName:
        """Its declared name: the later one, unless it was dropped."""
        name = self.declared_after or self.declared_before
        assert name is not None, "a table of a migration is declared before it or after it"
        return name


class UndoRecord(Frozen, omit_defaults=True):
    """All tables of one applied migration, in the order of their changes.

    :param baseline: whether it was recorded without running, so that an undo changes no table either.
    :param namespaces: those that it created, by their names in the catalog; records of older releases have
        none.
    """

    version: str
    tables: tuple[TableUndo, ...]
    baseline: bool = False
    namespaces: tuple[tuple[str, ...], ...] = ()


def with_last_copies(record: UndoRecord, copies: Iterable[LastCopy]) -> UndoRecord:
    """The record with these values depending on snapshots, instead of the earlier ones."""
    copies = tuple(copies)
    tables = (
        replace(t, last_copies=tuple(c for c in copies if c.declared == t.declared)) for t in record.tables
    )
    return replace(record, tables=tuple(tables))


def last_copies_of(record: UndoRecord | None) -> tuple[LastCopy, ...]:
    """All values of a migration that depend on snapshots."""
    return () if record is None else tuple(c for t in record.tables for c in t.last_copies)


def merged_copies(found: Iterable[LastCopy], known: Iterable[LastCopy]) -> tuple[LastCopy, ...]:
    """New and recorded copies; one in both keeps its recorded age limit."""
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


def declared_record(version: str, wanted: Iterable[TableTarget], state: DeclaredState) -> UndoRecord:
    """The changes of a migration in the declared state, without regard to the catalog.

    :param state: the declared state before it.
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


def restores_values(record: UndoRecord) -> bool:
    """Whether an undo restores a table, rows or columns, which clients and retention can remove meanwhile."""
    return not record.baseline and any(
        undo.trash is not None or undo.rows_changed or _field_ids(undo.before) - _field_ids(undo.after)
        for undo in record.tables
    )


def _field_ids(table: Table | None) -> set[int]:
    return set() if table is None else {field.id for _, field in table.schema.walk()}
