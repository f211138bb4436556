"""Partition values of a column that Iceberg wrote as null while the column was dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.frozen import Frozen, field
from icemigrate.model.counting import count


class Hidden(Frozen):
    """Files whose value of a partition field is not recorded anywhere.

    :param reads_null: whether the column itself reads null (``identity``); else only filters miss the rows.
    """

    files: int
    rows: int
    reads_null: bool


class PartitionLoss(Frozen):
    """What manifests have lost of one column, and what the commit that restores the column can find again.

    :param files: data files whose values the commit restores.
    :param rows: their rows.
    :param hidden: by the name of the partition field, what it cannot restore.
    :param unreadable: paths of files in which the column reads null although it has values.
    :param readable: paths of files for which manifests give its value, whether the files hold it or not.
    """

    files: int = 0
    rows: int = 0
    hidden: Mapping[str, Hidden] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    readable: frozenset[str] = frozenset()

    def notes(self, column: str) -> Iterator[str]:
        """What a plan says of it.

        :param column: the column's path as text.
        """
        if self.files:
            yield (
                f"manifests written while {column} was dropped have null for its partition values in "
                f"{count(self.files, 'file')} ({count(self.rows, 'row')}): the commit writes these manifests "
                "again with the right values"
            )
        for name, hidden in self.hidden.items():
            effect = f"{column} reads null there" if hidden.reads_null else f"filters on {column} miss them"
            yield (
                f"values of partition field `{name}` that are not recorded anywhere: "
                f"{count(hidden.files, 'file')} ({count(hidden.rows, 'row')}); {effect}"
            )
