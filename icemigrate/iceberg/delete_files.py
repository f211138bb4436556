"""The deleted rows of data files, as far as delete files show them without being opened.

Specification, "Scan Planning" and "Delete Formats":

- A deletion vector (format version 3) belongs to one data file; its record count is the number of rows that
  it deletes, and position deletes of that file are ignored.
- A position delete file of one data file names it.  Several of one data file may name the same row twice.
- A position delete file of several data files, and every equality delete file, does not show how many rows of
  which data file it deletes: it may be any number.

Partitions are not compared, so a delete file may be counted for more data files than it applies to.  That
makes a count uncertain, and never wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import accumulate
from math import inf

from icemigrate.frozen import Frozen


class DeleteKind(Enum):
    """How a delete file identifies the rows that it deletes."""

    POSITIONS = "positions"
    VECTOR = "vector"
    EQUALITY = "equality"


class DeleteFile(Frozen):
    """A live delete file from a manifest.

    :param records: its record count; of a deletion vector its cardinality.
    :param sequence: its data sequence number; ``None`` where it is unknown.
    :param data_file: the one data file whose rows it deletes; ``None`` where it may be several.
    """

    kind: DeleteKind
    records: int
    sequence: int | None = None
    data_file: str | None = None


class DeletedRows(Frozen):
    """The number of deleted rows of a data file.

    :param rows: rows that are certainly deleted.
    :param unsure: rows that may be deleted as well.
    """

    rows: int = 0
    unsure: int = 0


NONE_DELETED = DeletedRows()


class DataFileRows(Frozen):
    """The rows of a data file.

    :param count: all rows, deleted ones included.
    :param sequence: the file's data sequence number; ``None`` where it is unknown.
    """

    count: int
    sequence: int | None = None


def deleted_rows(files: Mapping[str, DataFileRows], deletes: Iterable[DeleteFile]) -> dict[str, DeletedRows]:
    """The number of deleted rows of each data file; files without any are left out.

    :param files: the live data files of a snapshot, by path.
    :param deletes: the live delete files of the same snapshot.
    """
    vectors: dict[str, int] = {}
    positions: dict[str, list[int]] = {}
    scattered: list[DeleteFile] = []
    for delete in deletes:
        if delete.kind is DeleteKind.EQUALITY or delete.data_file is None:
            scattered.append(delete)
        elif delete.kind is DeleteKind.VECTOR:
            vectors[delete.data_file] = vectors.get(delete.data_file, 0) + delete.records
        else:
            positions.setdefault(delete.data_file, []).append(delete.records)
    found = {}
    unnamed = _Unnamed.of(scattered)
    for path, rows in files.items() if vectors or positions or scattered else ():
        sure, unsure = vectors.get(path, 0), 0
        if path not in vectors and path in positions:
            sure = max(positions[path])
            unsure = sum(positions[path]) - sure
        sure = min(sure, rows.count)
        unsure = min(unsure + unnamed.most(rows, path in vectors), rows.count - sure)
        if sure or unsure:
            found[path] = DeletedRows(sure, unsure)
    return found


class _Unnamed(Frozen):
    """Delete files that name no data file: there may be thousands, and as many data files.

    :param equality: the highest sequence number of equality deletes.
    :param positions: the sequence numbers of position deletes, sorted.
    :param records: for each of these, the sum of its records and those of all later ones; 0 at the end.
    """

    equality: float
    positions: tuple[float, ...]
    records: tuple[int, ...]

    @classmethod
    def of(cls, deletes: Iterable[DeleteFile]) -> _Unnamed:
        # One without a sequence number may apply to any file.
        pairs = [(_LAST if d.sequence is None else d.sequence, d) for d in deletes]
        equality = max((number for number, d in pairs if d.kind is DeleteKind.EQUALITY), default=_FIRST)
        others = sorted((number, d.records) for number, d in pairs if d.kind is not DeleteKind.EQUALITY)
        sums = [*accumulate((records for _, records in reversed(others)), initial=0)]
        return cls(equality, tuple(number for number, _ in others), tuple(reversed(sums)))

    def most(self, rows: DataFileRows, has_vector: bool) -> int:
        """How many rows of a data file they may delete."""
        number = _FIRST if rows.sequence is None else rows.sequence
        if number < self.equality:
            return rows.count
        return 0 if has_vector else self.records[bisect_left(self.positions, number)]


_FIRST, _LAST = -inf, inf
