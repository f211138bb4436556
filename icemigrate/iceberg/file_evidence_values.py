"""The questions of an undo about a table's data files, and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.partition_evolution import PartitionLoss
from icemigrate.iceberg.table import Snapshot
from icemigrate.iceberg.types import Type


class EvidenceQuery(Frozen):
    """The questions about one table.

    :param since: the snapshot that was current when the migration began, or, where it changed rows, when it
        ended; ``None`` without one.
    :param nulls: fields that may have got nulls since.
    :param earlier_types: of fields that were widened since.
    :param held: fields (each with its nested fields) whose values the files may still contain.
    :param snapshots: snapshots whose existence is in question.
    :param sources: tags and ids of snapshots that may keep values of :attr:`held` which the current files do
        not contain; the best first.
    :param last_copies: by field of :attr:`held`, tags and ids of snapshots with values that an earlier undo
        did not restore; the newest first.
    :param to_restore: members of :attr:`held` that the table has, and whose values are to be restored.
    :param rows_of: the value in the summaries of the migration's snapshots, to find out whether it published
        rows; then ``since`` is the snapshot that was current when it began.
    :param steps: whether to list the migrations that published rows since.
    :param columns: the columns that would be restored, with their types, to find partition values that
        manifests have lost.
    """

    since: int | None
    nulls: frozenset[int] = frozenset()
    earlier_types: Mapping[int, Type] = field(default_factory=dict)
    held: Mapping[int, frozenset[int]] = field(default_factory=dict)
    snapshots: frozenset[int] = frozenset()
    sources: tuple[str, ...] = ()
    last_copies: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    to_restore: frozenset[int] = frozenset()
    rows_of: str | None = None
    steps: bool = False
    columns: Mapping[int, Type] = field(default_factory=dict)


class ValueShare(Frozen):
    """How many rows are in files with values of a field.

    Rows that delete files certainly remove are left out.

    :param held: rows of files with values.
    :param unknown: rows of files without metrics.
    :param total: rows of all live files.
    :param held_unsure: rows of ``held`` that delete files may remove.
    :param total_unsure: rows of ``total`` that delete files may remove.
    """

    held: int
    unknown: int
    total: int
    held_unsure: int = 0
    total_unsure: int = 0

    @property
    def held_at_least(self) -> int:
        """The number of rows that are certainly in files with values."""
        return self.held - self.held_unsure

    def __str__(self) -> str:
        if self.total == 0:
            return "the table has no rows"
        if self.unknown == self.total:
            return "unknown, because the manifests have no metrics for it"
        held = f"at most {self.held}" if self.held_unsure else str(self.held)
        if self.total_unsure:
            text = f"{held} of at most {self.total} rows"
        else:
            text = f"{held} of {self.total} rows ({100 * self.held // self.total} %)"
        return f"{text}, unknown for {self.unknown}" if self.unknown else text


def describe_shares(
    shares: Mapping[FieldPath, ValueShare],
) -> Iterator[tuple[str, ValueShare, tuple[FieldPath, ...]]]:
    """Texts about shares of fields; fields with equal shares are grouped, because a table may have hundreds.

    Returns the text, the share, and its fields.
    """
    alike: dict[ValueShare, list[FieldPath]] = {}
    for path, share in shares.items():
        alike.setdefault(share, []).append(path)
    for share, paths in alike.items():
        names = ", ".join(map(format_path, paths))
        yield f"values of {names} that are still in the files: {share}", share, tuple(paths)


class FieldQuery(Frozen):
    """A field whose missing values are counted, by the fields that have metrics.

    :param leaves: itself, or its nested fields.
    :param around: those of the nearest optional parent; none where every parent is required. If a file lacks
        them all, the parent reads as null, and the field is not missing.
    """

    leaves: frozenset[int]
    around: frozenset[int] = frozenset()


class MissingValues(Frozen):
    """How many rows of a snapshot have no value of a field.

    :param lacking: rows of files without the field, which cannot be read where it is required.
    :param nulls: nulls in files with it.
    :param unknown: rows of files without metrics, and nulls that may be those of a parent.
    :param silent: rows of ``unknown`` whose files do not show whether they have the field.
    :param files: number of files in ``lacking``.
    :param example: the location of one of these.
    """

    lacking: int
    nulls: int
    unknown: int
    silent: int = 0
    files: int = 0
    example: str | None = None


class WiderFiles(Frozen):
    """The live files that a reader cannot read under a narrow type.

    :param files: how many were written under a wider type.
    :param unknown: how many may have been: their snapshots have expired.  ``None`` where no manifest could be
        read.
    :param widest: the widest type that the field ever had in a schema that the table still has, where that is
        wider.
    """

    files: int
    unknown: int | None
    widest: Type | None = None


class RetainedValues(Frozen):
    """A version with values of a field that the current files do not contain.

    :param version: a tag or the id of a snapshot, as ``VERSION AS OF`` takes it.
    :param path: the field's path there.
    :param rows: the number of current rows that may get their value back from there; an upper bound.
    :param snapshot_id: of that version; ``None`` where it was not requested.
    :param in_structs: whether the field is inside structs only, so that an assignment can name it.
    :param by_row_id: whether every row has its row id, there and now (format version 3).
    :param identifier: the identifier fields, equal there and now: id → path there.
    """

    version: str
    path: FieldPath
    rows: int
    snapshot_id: int | None = None
    in_structs: bool = True
    by_row_id: bool = False
    identifier: Mapping[int, FieldPath] = field(default_factory=dict)

    @property
    def can_be_matched(self) -> bool:
        """Whether rows of the earlier snapshot can be matched with current rows."""
        return self.in_structs and (self.by_row_id or bool(self.identifier))


class PublishedRows(Frozen):
    """Rows of a migration that are on the main branch.

    :param before: the snapshot on which they were written; ``None`` where it has expired.
    :param last: the last snapshot that is the migration's.
    """

    before: Snapshot | None
    last: Snapshot


class Evidence(Frozen):
    """The answers.

    Files count as added since if the earlier snapshot does not contain them: rewritten ones too, because they
    were written under the newer schema.  Live files of all branches count, except those of icemigrate.

    :param files: number of live data files that were added since.
    :param rows: number of their rows.
    :param snapshots: number of snapshots of the main branch since; ``None`` where the earlier one has
        expired.
    :param nulls: by field, number of nulls written since; ``None`` where neither manifests nor rows show it.
    :param wide: by widened field, number of files that were or may have been written with the wider type;
        other fields were not requested.
    :param held: by field, see :class:`ValueShare`; of the main branch.
    :param existing_snapshots: the requested snapshots that exist.
    :param kept: by field, the source of values for rows whose files do not contain it any more.
    :param more_kept: by field, further sources of other values of it, the newest first.
    :param steps: migrations in the summaries of the main branch's snapshots since, ``""`` for other clients;
        ``None`` where this was not requested or is unknown.
    :param published: the migration's rows on the main branch, if requested and if there are any; everything
        that counts as added since is newer.
    """

    files: int = 0
    rows: int = 0
    snapshots: int | None = 0
    nulls: Mapping[int, int | None] = field(default_factory=dict)
    wide: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[int, ValueShare] = field(default_factory=dict)
    existing_snapshots: frozenset[int] = frozenset()
    kept: Mapping[int, RetainedValues] = field(default_factory=dict)
    more_kept: Mapping[int, tuple[RetainedValues, ...]] = field(default_factory=dict)
    published: PublishedRows | None = None
    steps: tuple[str, ...] | None = None
    partition_losses: Mapping[int, PartitionLoss] = field(default_factory=dict)
