"""Which rows of data files are deleted, as far as delete files tell that without being opened.

Specification, "Scan Planning" and "Delete Formats":

- A deletion vector (format version 3) belongs to one data file; its record count says how many rows it
  deletes, and position deletes of that file are ignored.
- A position delete file that names its one data file says so as well.  Several of one data file may name the
  same row twice.
- A position delete file of several data files, and every equality delete file, does not say how many rows of
  which data file it deletes: it may be any number.

Partitions are not compared, so a delete file may be counted for more data files than it applies to.  It then
makes a count uncertain, and never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from icemigrate.frozen import Frozen


class DeleteKind(Enum):
    """How a delete file tells which rows it deletes."""

    POSITIONS = "positions"
    VECTOR = "vector"
    EQUALITY = "equality"


class DeleteFile(Frozen):
    """A live delete file, as a manifest has it.

    :param records: its record count; of a deletion vector its cardinality.
    :param sequence: its data sequence number; ``None`` where it is not known.
    :param data_file: the one data file whose rows it deletes; ``None`` where it may be several.
    """

    kind: DeleteKind
    records: int
    sequence: int | None = None
    data_file: str | None = None


class Deleted(Frozen):
    """How many rows of a data file are deleted.

    :param rows: those that surely are.
    :param unsure: how many more may be.
    """

    rows: int = 0
    unsure: int = 0


NONE_DELETED = Deleted()


class Rows(Frozen):
    """The rows of a data file.

    :param count: all of them, deleted ones included.
    :param sequence: the file's data sequence number; ``None`` where it is not known.
    """

    count: int
    sequence: int | None = None


def deleted_rows(files: Mapping[str, Rows], deletes: Iterable[DeleteFile]) -> dict[str, Deleted]:
    """How many rows of each data file are deleted; a file that loses none is left out.

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
    for path, rows in files.items() if vectors or positions or scattered else ():
        sure, unsure = vectors.get(path, 0), 0
        if path not in vectors and path in positions:
            sure = max(positions[path])
            unsure = sum(positions[path]) - sure
        sure = min(sure, rows.count)
        for delete in scattered:
            if delete.kind is DeleteKind.EQUALITY:
                unsure += rows.count if _applies(delete, rows) else 0
            elif path not in vectors:
                unsure += delete.records if _applies(delete, rows) else 0
        unsure = min(unsure, rows.count - sure)
        if sure or unsure:
            found[path] = Deleted(sure, unsure)
    return found


def _applies(delete: DeleteFile, rows: Rows) -> bool:
    if delete.sequence is None or rows.sequence is None:
        return True
    if delete.kind is DeleteKind.EQUALITY:
        return rows.sequence < delete.sequence
    return rows.sequence <= delete.sequence
