"""Refill of columns with retained values of a tagged snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    DeferredStatement,
    Reversal,
    SqlStatement,
    Statement,
    TablePair,
)
from icemigrate.changes.statement_shapes import always_reversible
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import FieldPath, format_path
from icemigrate.iceberg.ref_names import OLDER_REFILL_BRANCH, refill_branch_name
from icemigrate.iceberg.table import Table
from icemigrate.spark_sql.refill_statements import RefillStatements


class RefillField(Frozen):
    """A field to refill.

    :param path: its current path.
    :param then: its path in the snapshot with its values; empty until that snapshot is known.
    :param defaulted: its field id, if files without the field read as its initial default.
    """

    path: FieldPath
    then: FieldPath = ()
    defaulted: int | None = None


class RefillColumns(Change):
    """Give rows without a value the value that they had in an earlier snapshot.

    A row has no value if it reads null.  With an initial default, a row has no value if it was not written
    while the field existed, which its row lineage shows.

    An undo that restores a dropped column plans it, not :meth:`detect`.

    :param version: a tag or a snapshot id; empty if it is searched for when the step runs.
    :param keys: the identifier fields that match rows; none to match rows by row id.
    :param among: the snapshots to search, which are known to have retained values; the newest first.
    :param project: the project of the refill; empty in plans of older releases, whose branch has no project.
    """

    kind: ClassVar[str] = "refill_columns"
    phase: ClassVar[ChangePhase] = ChangePhase.ROWS
    symbol: ClassVar[str] = "+"

    version: str
    fields: tuple[RefillField, ...]
    keys: tuple[RefillField, ...] = ()
    among: tuple[str, ...] = ()
    project: str = ""

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The same table: only rows change."""
        return table

    @property
    def by_lineage(self) -> bool:
        """Whether the refill reads row lineage."""
        return any(f.defaulted is not None for f in self.fields)

    @property
    def by_row_id(self) -> bool:
        """Whether rows are matched by row ids, or may be, until the version is known."""
        return not self.keys

    def refill_sql(self, catalog: str) -> RefillStatements:
        """The statements and queries of the refill, with the branch as plans name it."""
        fields = tuple((f.path, f.then) for f in self.fields)
        keys = tuple((f.path, f.then) for f in self.keys)
        defaulted = {i: f.defaulted for i, f in enumerate(self.fields) if f.defaulted is not None}
        branch = refill_branch_name(self.project) if self.project else OLDER_REFILL_BRANCH
        return RefillStatements(catalog, self.table, self.version, fields, keys, defaulted, branch=branch)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """Statements that create a branch, write the values and publish them."""
        if not self.version:
            return (DeferredStatement(self.describe()),)
        return tuple(map(SqlStatement, self.refill_sql(catalog).statements()))

    def reversal(self, before: Table) -> Reversal:
        return always_reversible("only rows without a value get one")

    def describe(self) -> str:
        names = ", ".join(format_path(f.path) for f in self.fields)
        if not self.version:
            return f"restore values of {names} that files do not contain, from a snapshot that contains them"
        keys = ", ".join(format_path(f.path) for f in self.keys)
        by = f"identifier {keys}" if keys else "row id"
        return f"restore values of {names} from {self.version}, matching rows by {by}"
