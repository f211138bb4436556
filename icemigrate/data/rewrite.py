"""Files that lie as the table was partitioned before are written again as it is partitioned now."""

from __future__ import annotations

from typing import ClassVar

from icemigrate.changes.base import Reversal, Reversible, Subject
from icemigrate.data.base import DataStatement, Ground, Rewriting, RowWork, Stage, with_ends
from icemigrate.model.names import parse_path
from icemigrate.sql.literals import string_sql
from icemigrate.sql.names import path_sql, quote

OPTIONS = {"rewrite-all": "true", "max-file-group-size-bytes": str(10 * 2**30)}
"""What ``rewrite_data_files`` is told.  A group is what one commit writes, and what a dead run loses."""


class Rewrite(RowWork):
    """The rewriting of all files of older partition specs.

    Rows stay equal.  It is done behind everything else of its table, in commits of a group of files each; a
    run that comes later finds what is left by the spec that each file bears.

    :param is_sorted: whether the table has a sort order, which the new files keep.
    :param ends: paths of dropped columns whose values are rewritten away with it.
    """

    kind: ClassVar[str] = "rewrite"

    is_sorted: bool = False
    ends: tuple[str, ...] = ()

    @property
    def stage(self) -> Stage:
        """On the table itself, when all else is done."""
        return Stage.SETTLED

    @property
    def subject(self) -> Subject:
        """Its key."""
        return ("rewrite",)

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """One ``CALL``; where files lie right already, its action runs over the others alone."""
        catalog, *name = parse_path(rows)
        table = string_sql(path_sql(tuple(name)))
        options = ", ".join(f"{string_sql(k)}, {string_sql(v)}" for k, v in OPTIONS.items())
        strategy = "sort" if self.is_sorted else "binpack"
        return (
            Rewriting(
                f"CALL {quote(catalog)}.system.rewrite_data_files(table => {table}, "
                f"strategy => '{strategy}', options => map({options}))",
                self.is_sorted,
            ),
        )

    def reversal(self, ground: Ground) -> Reversal:
        """No value changes; what was dropped before loses its way back."""
        reason = "the rows stay equal, and files are read whichever way they lie"
        return Reversal(Reversible.YES, with_ends(reason, self.ends))

    def describe(self) -> str:
        """What is rewritten."""
        return "rewrite the files that lie the old way"
