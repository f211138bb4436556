"""Values that were rewritten away come back from a tag that keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from icemigrate.changes.base import Change, Deferred, Pair, Phase, Reversal, Sql, Statement
from icemigrate.changes.statements import reversible
from icemigrate.frozen import Frozen
from icemigrate.model.marks import OLDER_REFILL_BRANCH, refill_branch_name
from icemigrate.model.names import Path, format_path
from icemigrate.model.table import Table
from icemigrate.sql.refilling import Refilling


class Refilled(Frozen):
    """A field that gets values back.

    :param path: how it is called now.
    :param then: how it is called in the version that keeps its values; empty as long as that is not known.
    :param defaulted: its field id, where its initial default is read in files that do not hold it.
    """

    path: Path
    then: Path = ()
    defaulted: int | None = None


class RefillColumns(Change):
    """Rows without a value get the one that they had in an earlier version.

    A row has none where it reads null; where an initial default stands in, when it was not written since then
    while the field was there, which its row lineage tells.

    Found when a dropped column comes back, not by :meth:`detect`.

    :param version: a tag or the id of a snapshot; empty where it is looked for when it runs.
    :param keys: the identifier fields by which rows are matched; none for row ids.
    :param among: where the version is looked for, those that are known to keep values; the newest first.
    :param project: whose refill it is; empty in plans of releases that left it out of the branch's name.
    """

    kind: ClassVar[str] = "refill_columns"
    phase: ClassVar[Phase] = Phase.ROWS
    symbol: ClassVar[str] = "+"

    version: str
    fields: tuple[Refilled, ...]
    keys: tuple[Refilled, ...] = ()
    among: tuple[str, ...] = ()
    project: str = ""

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    def apply(self, table: Table) -> Table:
        """The table as it is: nothing but rows changes."""
        return table

    @property
    def by_lineage(self) -> bool:
        """Whether rows are asked when they were written."""
        return any(f.defaulted is not None for f in self.fields)

    @property
    def by_row_id(self) -> bool:
        """Whether rows are matched by row ids; as long as the version is not known, they may be."""
        return not self.keys

    def refilling(self, catalog: str) -> Refilling:
        """Its statements and questions, the branch named as plans name it."""
        fields = tuple((f.path, f.then) for f in self.fields)
        keys = tuple((f.path, f.then) for f in self.keys)
        defaulted = {i: f.defaulted for i, f in enumerate(self.fields) if f.defaulted is not None}
        branch = refill_branch_name(self.project) if self.project else OLDER_REFILL_BRANCH
        return Refilling(catalog, self.table, self.version, fields, keys, defaulted, branch=branch)

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """A branch, the values, the publication."""
        if not self.version:
            return (Deferred(self.describe()),)
        return tuple(map(Sql, self.refilling(catalog).statements()))

    def reversal(self, before: Table) -> Reversal:
        """Nothing that was there is lost."""
        return reversible("only rows without a value get one")

    def describe(self) -> str:
        """Which fields, from where, and by what rows are matched."""
        names = ", ".join(format_path(f.path) for f in self.fields)
        if not self.version:
            return f"bring values of {names} back where files do not hold them, from the version that does"
        keys = ", ".join(format_path(f.path) for f in self.keys)
        by = f"identifier {keys}" if keys else "row id"
        return f"bring values of {names} back from {self.version}, rows matched by {by}"
