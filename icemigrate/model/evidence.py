"""What is known of a table's data files: the questions of an undo, and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.frozen import Frozen, field
from icemigrate.model.names import Path, format_path
from icemigrate.model.partition_loss import PartitionLoss
from icemigrate.model.table import Snapshot
from icemigrate.model.types import Type


class Questions(Frozen):
    """What is to be found out about one table.

    :param since: the snapshot that was current when the migration began, or where it changed rows, when it
        ended; ``None`` where there was none.
    :param nulls: fields into which nulls may have been written since.
    :param narrow: fields that became wider since, with the type that they had before.
    :param held: fields (each with all that is below it) whose values may still be in the files.
    :param snapshots: snapshots of which it is wanted whether they are still there.
    :param versions: tags, and ids of snapshots, that may keep values of :attr:`held` which the files of now
        do not hold any more; the best first.
    :param last_copies: by field of :attr:`held`, tags and ids of snapshots that are known to keep values
        which an earlier undo did not bring back; the newest first.
    :param back: those of :attr:`held` that the table has, and whose values are wanted back.
    :param rows_of: what the summaries of the migration's snapshots say, where it is wanted whether it
        published rows; then ``since`` is the snapshot that was current when it began.
    :param steps: whether it is wanted which migrations published rows since.
    :param columns: the columns that would come back, with their types: of them it is wanted which partition
        values the manifests have lost.
    """

    since: int | None
    nulls: frozenset[int] = frozenset()
    narrow: Mapping[int, Type] = field(default_factory=dict)
    held: Mapping[int, frozenset[int]] = field(default_factory=dict)
    snapshots: frozenset[int] = frozenset()
    versions: tuple[str, ...] = ()
    last_copies: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    back: frozenset[int] = frozenset()
    rows_of: str | None = None
    steps: bool = False
    columns: Mapping[int, Type] = field(default_factory=dict)


class Share(Frozen):
    """How many rows stand in files that hold values of a field.

    Rows that delete files surely remove are left out.

    :param held: rows of files that do.
    :param unknown: rows of files that do not say.
    :param total: rows of all live files.
    :param held_unsure: how many of ``held`` delete files may remove as well, which manifests do not tell.
    :param total_unsure: how many of ``total``.
    """

    held: int
    unknown: int
    total: int
    held_unsure: int = 0
    total_unsure: int = 0

    @property
    def held_at_least(self) -> int:
        """The rows that surely stand in files that hold values."""
        return self.held - self.held_unsure

    def __str__(self) -> str:
        if self.total == 0:
            return "the table has no rows"
        if self.unknown == self.total:
            return "unknown, since the manifests hold no metrics of it"
        held = f"at most {self.held}" if self.held_unsure else str(self.held)
        if self.total_unsure:
            text = f"{held} of at most {self.total} rows"
        else:
            text = f"{held} of {self.total} rows ({100 * self.held // self.total} %)"
        return f"{text}, unknown for {self.unknown}" if self.unknown else text


def told_shares(shares: Mapping[Path, Share]) -> Iterator[tuple[str, Share, tuple[Path, ...]]]:
    """What is said of fields by their path, those of one share together: a table may have hundreds of them.

    Gives the text, the share, and the fields that it is of.
    """
    alike: dict[Share, list[Path]] = {}
    for path, share in shares.items():
        alike.setdefault(share, []).append(path)
    for share, paths in alike.items():
        names = ", ".join(map(format_path, paths))
        yield f"values of {names} that are still in the files: {share}", share, tuple(paths)


class Sought(Frozen):
    """A field whose gaps are looked for, by the fields that have metrics of their own.

    :param leaves: itself, or those below it.
    :param around: those of the nearest field around it that may be null; none where each has to be there.
        Where a file lacks them all, what is around is read as null, and the field is not missed.
    """

    leaves: frozenset[int]
    around: frozenset[int] = frozenset()


class Gaps(Frozen):
    """How many rows of a snapshot have no value of a field.

    :param lacking: rows of files that cannot be read where it is required: they do not have it.
    :param nulls: nulls in files that do.
    :param unknown: rows of files that do not say; so it is with nulls that may be those of a field around it.
    :param silent: those of them whose files do not say whether they have it at all.
    :param files: how many files make up ``lacking``.
    :param example: where one of these lies.
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


class Kept(Frozen):
    """Where values of a field can be read that the files of now do not hold any more.

    :param version: a tag or the id of a snapshot, as ``VERSION AS OF`` takes it.
    :param path: how the field is called there.
    :param rows: how many rows of now may get their value back from there; never fewer than really can.
    :param snapshot_id: of that version; ``None`` where nobody asked.
    :param in_structs: whether it stands in structs alone, so that an assignment can name it.
    :param by_row_id: whether every row has its row id, there and now (format version 3).
    :param identifier: the identifier fields, the same there and now: id → how it is called there.
    """

    version: str
    path: Path
    rows: int
    snapshot_id: int | None = None
    in_structs: bool = True
    by_row_id: bool = False
    identifier: Mapping[int, Path] = field(default_factory=dict)

    @property
    def can_be_matched(self) -> bool:
        """Whether it can be told which row of then is which row of now."""
        return self.in_structs and (self.by_row_id or bool(self.identifier))


class Publication(Frozen):
    """Rows of a migration that are on the main branch.

    :param before: the snapshot on which they were written; ``None`` where it has expired.
    :param last: the last snapshot that is the migration's.
    """

    before: Snapshot | None
    last: Snapshot


class Evidence(Frozen):
    """The answers.

    Files count as added since where the snapshot of then does not hold them: rewritten ones too, since they
    were written under the newer schema.  Live files of the main branch and of every other branch count, but
    those on branches of icemigrate's own.

    :param files: live data files that were added since.
    :param rows: their rows.
    :param snapshots: how many snapshots the main branch got since; ``None`` where that of then has expired.
    :param nulls: by field, nulls that were written since; ``None`` where neither manifests nor rows tell.
    :param wide: by field that became wider, how many of the files were written when it was, or may have been;
        one that is not here was not asked about.
    :param held: by field, see :class:`Share`; of the main branch.
    :param there: which of the snapshots that were asked for are there.
    :param kept: by field, where rows whose files do not hold it any more may get their value back from.
    :param more_kept: by field, further versions that keep other values of it, the newest first.
    :param steps: what the summaries of the main branch's snapshots since say of the migrations that made
        them, ``""`` for everybody else's; ``None`` where it was not asked or cannot be told.
    :param published: the migration's rows on the main branch, where that was asked and there are any; all
        that counts as added since is younger than they are.
    """

    files: int = 0
    rows: int = 0
    snapshots: int | None = 0
    nulls: Mapping[int, int | None] = field(default_factory=dict)
    wide: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[int, Share] = field(default_factory=dict)
    there: frozenset[int] = frozenset()
    kept: Mapping[int, Kept] = field(default_factory=dict)
    more_kept: Mapping[int, tuple[Kept, ...]] = field(default_factory=dict)
    published: Publication | None = None
    steps: tuple[str, ...] | None = None
    partition_losses: Mapping[int, PartitionLoss] = field(default_factory=dict)
