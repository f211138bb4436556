"""Data step that rewrites files with an old partition spec into the current one."""

from __future__ import annotations

from typing import ClassVar

from icemigrate.changes.change import Reversal, Reversibility, Subject
from icemigrate.data_steps.data_step_kind import (
    DataStatement,
    DataStepContext,
    DataStepStage,
    FileRewrite,
    TableDataStep,
    with_lost_columns,
)
from icemigrate.iceberg.names import parse_path
from icemigrate.spark_sql.identifiers import path_sql, quote
from icemigrate.spark_sql.literals import string_sql

REWRITE_OPTIONS = {"rewrite-all": "true", "max-file-group-size-bytes": str(10 * 2**30)}
"""Options of ``rewrite_data_files``.  One commit writes one group, and an interrupted run loses one group."""


class Rewrite(TableDataStep):
    """Rewrite all files of older partition specs.

    Rows do not change.  It runs after all other changes of its table, with one commit per group of files; a
    later run finds the remaining files by their spec.

    :param is_sorted: whether the table has a sort order, in which the new files are written.
    :param ends: paths of dropped columns whose values the rewrite removes.
    """

    kind: ClassVar[str] = "rewrite"

    is_sorted: bool = False
    ends: tuple[str, ...] = ()

    @property
    def stage(self) -> DataStepStage:
        return DataStepStage.AFTER_PUBLICATION

    @property
    def subject(self) -> Subject:
        return ("rewrite",)

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """One ``CALL``; if some files have the current spec, its action rewrites only the others."""
        catalog, *name = parse_path(rows)
        table = string_sql(path_sql(tuple(name)))
        options = ", ".join(f"{string_sql(k)}, {string_sql(v)}" for k, v in REWRITE_OPTIONS.items())
        strategy = "sort" if self.is_sorted else "binpack"
        return (
            FileRewrite(
                f"CALL {quote(catalog)}.system.rewrite_data_files(table => {table}, "
                f"strategy => '{strategy}', options => map({options}))",
                self.is_sorted,
            ),
        )

    def reversal(self, context: DataStepContext) -> Reversal:
        """No value changes, but dropped columns can no longer be restored with their values."""
        reason = "rows do not change, and files of every partition spec can be read"
        return Reversal(Reversibility.YES, with_lost_columns(reason, self.ends))

    def describe(self) -> str:
        return "rewrite the files of old partition specs"
