"""Values brought back from a snapshot that keeps them: what is asked, and what is written on a branch."""

from __future__ import annotations

from collections.abc import Iterator

from icemigrate.frozen import Frozen
from icemigrate.model.marks import REFILL_BRANCH
from icemigrate.model.names import Path, TableName
from icemigrate.sql.branches import branch_sql, create_branch_sql, publish_branch_sql
from icemigrate.sql.literals import string_sql
from icemigrate.sql.names import path_sql, table_sql

_ROW_ID = "_row_id"


class Refilling(Frozen):
    """The statements of one refill.

    :param version: a tag or the id of a snapshot.
    :param fields: how each field is called now, and how there.
    :param keys: the identifier fields by which rows are matched, called likewise; none for row ids.
    """

    catalog: str
    table: TableName
    version: str
    fields: tuple[tuple[Path, Path], ...]
    keys: tuple[tuple[Path, Path], ...] = ()

    def statements(self) -> Iterator[str]:
        """What is done: a branch, the values, the publication."""
        yield create_branch_sql(self.catalog, self.table, REFILL_BRANCH)
        yield from self._merges()
        yield publish_branch_sql(self.catalog, self.table, REFILL_BRANCH)

    def kept(self) -> str:
        """Asks how many rows there have a value, and how many rows of different keys these are."""
        keys = ", ".join(f"k{i}" for i in range(len(self._keys)))
        return f"SELECT count(*), count(DISTINCT {keys}) FROM {self._source}"

    def matched(self) -> str:
        """Asks how many pairs of a row there and one on the branch there are, of how many different rows
        there; then field by field, how many of these lack the value."""
        keys = ", ".join(f"b.k{i}" for i in range(len(self._keys)))
        lacking = [f"count_if({self._lacks(i)})" for i in range(len(self.fields))]
        columns = ", ".join(["count(*)", f"count(DISTINCT {keys})", *lacking])
        return f"SELECT {columns} FROM {self._branch_now} t JOIN {self._source} b ON {self._on}"

    def filled(self) -> str:
        """Asks how many rows the branch has, and field by field, how many have a value."""
        columns = ", ".join(["count(*)", *(f"count({path_sql(now)})" for now, _ in self.fields)])
        return f"SELECT {columns} FROM {self._branch_now}"

    def _merges(self) -> Iterator[str]:
        # A statement for each struct: an assignment below one that is null would make it another value.
        parents = dict.fromkeys(now[:-1] for now, _ in self.fields)
        for parent in parents:
            which = [i for i, (now, _) in enumerate(self.fields) if now[:-1] == parent]
            sets = ", ".join(
                f"t.{now} = coalesce(t.{now}, b.v{i})" for i in which for now in [path_sql(self.fields[i][0])]
            )
            yield (
                f"MERGE INTO {branch_sql(self.catalog, self.table, REFILL_BRANCH)} t\n"
                f"USING {self._source} b\n"
                f"ON {self._on}\n"
                f"WHEN MATCHED AND ({' OR '.join(map(self._lacks, which))})\n"
                f"THEN UPDATE SET {sets}"
            )

    @property
    def _name(self) -> str:
        return table_sql(self.catalog, self.table)

    @property
    def _branch_now(self) -> str:
        return f"{self._name} VERSION AS OF {string_sql(REFILL_BRANCH)}"

    @property
    def _keys(self) -> tuple[tuple[Path, Path], ...]:
        return self.keys or (((_ROW_ID,), (_ROW_ID,)),)

    @property
    def _source(self) -> str:
        keys = [f"{path_sql(then)} AS k{i}" for i, (_, then) in enumerate(self._keys)]
        values = [f"{path_sql(then)} AS v{i}" for i, (_, then) in enumerate(self.fields)]
        some = " OR ".join(f"{path_sql(then)} IS NOT NULL" for _, then in self.fields)
        columns = ", ".join((*keys, *values))
        return f"(SELECT {columns} FROM {self._name} VERSION AS OF {version_sql(self.version)} WHERE {some})"

    @property
    def _on(self) -> str:
        return " AND ".join(f"t.{path_sql(now)} = b.k{i}" for i, (now, _) in enumerate(self._keys))

    def _lacks(self, at: int) -> str:
        now, _ = self.fields[at]
        lacks = f"(t.{path_sql(now)} IS NULL AND b.v{at} IS NOT NULL"
        return f"{lacks} AND t.{path_sql(now[:-1])} IS NOT NULL)" if now[:-1] else f"{lacks})"


def version_sql(version: str) -> str:
    """A tag, or the id of a snapshot, behind ``VERSION AS OF``."""
    return version if version.isdigit() else string_sql(version)
