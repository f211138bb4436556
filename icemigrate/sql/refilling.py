"""Values brought back from a snapshot that keeps them: what is asked, and what is written on a branch.

Rows lack a value where they read null.  Where an initial default stands in they never do.  Then a row lacks
the value that it had when it was not written while the field was there since: that is told by the row itself
(specification, "Row Lineage", format version 3, as defaults are), and carried over by who writes files anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.frozen import Frozen, field
from icemigrate.model.absence import Absence
from icemigrate.model.marks import OLDER_REFILL_BRANCH
from icemigrate.model.names import Path, TableName
from icemigrate.sql.branches import branch_sql, create_branch_sql, publish_branch_sql
from icemigrate.sql.literals import string_sql
from icemigrate.sql.names import path_sql, table_sql

# Neither this nor the number of a row's last change is qualified: an alias may be the name of a column too,
# and then Spark looks for a field of that.
_ROW_ID = "_row_id"
_MAIN = "main"


class Refilling(Frozen):
    """The statements of one refill.

    :param version: a tag or the id of a snapshot.
    :param fields: how each field is called now, and how there.
    :param keys: the identifier fields by which rows are matched, called likewise; none for row ids.
    :param defaulted: by their place in ``fields``, the ids of those whose initial default stands in.
    :param absences: by the same, when they were not there; ``None`` as long as that is not known, and words
        stand in the statements for it.
    :param branch: on which the values are written.
    """

    catalog: str
    table: TableName
    version: str
    fields: tuple[tuple[Path, Path], ...]
    keys: tuple[tuple[Path, Path], ...] = ()
    defaulted: Mapping[int, int] = field(default_factory=dict)
    absences: Mapping[int, Absence] | None = None
    branch: str = OLDER_REFILL_BRANCH

    def statements(self) -> Iterator[str]:
        """What is done: a branch, the values, the publication."""
        yield create_branch_sql(self.catalog, self.table, self.branch)
        yield from self.merges()
        yield publish_branch_sql(self.catalog, self.table, self.branch)

    def kept(self) -> str:
        """Asks how many rows there have a value, and how many rows of different keys these are.

        A null has to come back too where a default would be read instead, so that every row counts there.
        """
        keys = ", ".join(f"k{i}" for i in range(len(self._keys)))
        return f"SELECT count(*), count(DISTINCT {keys}) FROM {self._source}"

    def matched(self) -> str:
        """Asks how many pairs of a row there and one on the branch there are, of how many different rows
        there; then field by field, how many of these lack the value; and of those with a default, how many
        have another one."""
        keys = ", ".join(f"b.k{i}" for i in range(len(self._keys)))
        lacking = [f"count_if({self._lacks(i, is_told=False)})" for i in range(len(self.fields))]
        others = [f"count_if({self._differs(i)})" for i in self.defaulted]
        columns = ", ".join(["count(*)", f"count(DISTINCT {keys})", *lacking, *others])
        return f"SELECT {columns} FROM {self._pairs}"

    def filled(self) -> str:
        """Asks how many rows the branch has, and field by field, how many have a value."""
        columns = ", ".join(["count(*)", *(f"count({path_sql(now)})" for now, _ in self.fields)])
        return f"SELECT {columns} FROM {self._branch_now}"

    def look(self) -> str:
        """Shows the values where they are kept."""
        columns = ", ".join(path_sql(then) for _, then in (*self.keys, *self.fields))
        return f"SELECT {columns} FROM {self._name} VERSION AS OF {version_sql(self.version)}"

    def merges(self) -> Iterator[str]:
        """Writes the values."""
        # A statement for each struct: an assignment below one that is null would make it another value.
        parents = dict.fromkeys(now[:-1] for now, _ in self.fields)
        for parent in parents:
            which = [i for i, (now, _) in enumerate(self.fields) if now[:-1] == parent]
            sets = ", ".join(map(self._set, which))
            yield (
                f"MERGE INTO {branch_sql(self.catalog, self.table, self.branch)} t\n"
                f"USING {self._told_source} b\n"
                f"ON {self._on}\n"
                f"WHEN MATCHED AND ({' OR '.join(self._lacks(i) for i in which)})\n"
                f"THEN UPDATE SET {sets}"
            )

    def _set(self, at: int) -> str:
        now = f"t.{path_sql(self.fields[at][0])}"
        if at in self.defaulted:
            return f"{now} = CASE WHEN {self._lacks(at)} THEN b.v{at} ELSE {now} END"
        return f"{now} = coalesce({now}, b.v{at})"

    @property
    def _name(self) -> str:
        return table_sql(self.catalog, self.table)

    @property
    def _branch_now(self) -> str:
        return f"{self._name} VERSION AS OF {string_sql(self.branch)}"

    @property
    def _keys(self) -> tuple[tuple[Path, Path], ...]:
        return self.keys or (((_ROW_ID,), (_ROW_ID,)),)

    @property
    def _source(self) -> str:
        keys = [f"{path_sql(then)} AS k{i}" for i, (_, then) in enumerate(self._keys)]
        values = [f"{path_sql(then)} AS v{i}" for i, (_, then) in enumerate(self.fields)]
        some = " OR ".join(f"{path_sql(then)} IS NOT NULL" for _, then in self.fields)
        where = "" if self.defaulted else f" WHERE {some}"
        columns = ", ".join((*keys, *values))
        return f"(SELECT {columns} FROM {self._name} VERSION AS OF {version_sql(self.version)}{where})"

    @property
    def _told_source(self) -> str:
        """The source with what the rows of now tell.

        They are asked on main: what an earlier ``MERGE`` has written on the branch was written just now.
        """
        if not self.defaulted:
            return self._source
        keys = [f"{path_sql(now)} AS k{i}" for i, (now, _) in enumerate(self._keys)]
        told = [f"NOT {self._written(i)} AS l{i}" for i in self.defaulted]
        now = f"(SELECT {', '.join([*keys, *told])} FROM {self._name} VERSION AS OF {string_sql(_MAIN)})"
        on = " AND ".join(f"b.k{i} = n.k{i}" for i in range(len(keys)))
        flags = ", ".join(f"n.l{i}" for i in self.defaulted)
        return f"(SELECT b.*, {flags} FROM {self._source} b JOIN {now} n ON {on})"

    @property
    def _pairs(self) -> str:
        return f"{self._branch_now} t JOIN {self._source} b ON {self._on}"

    def _written(self, at: int) -> str:
        """Whether a row was written while the field was there, behind the version that keeps its values."""
        absence = None if self.absences is None else self.absences[at]
        if absence is None:
            return f"{{the row was written while {path_sql(self.fields[at][0])} was there}}"
        # A row without a number of its own was there before rows had any: nothing tells when it was written.
        number = "_last_updated_sequence_number"
        parts = [f"{number} IS NULL"]
        for first, last in absence.there:
            parts.append(f"{number} >= {first}" + ("" if last is None else f" AND {number} <= {last}"))
        return f"({' OR '.join(parts)})"

    @property
    def _on(self) -> str:
        if not self.keys:
            return f"{_ROW_ID} = b.k0"
        return " AND ".join(f"t.{path_sql(now)} = b.k{i}" for i, (now, _) in enumerate(self.keys))

    def _lacks(self, at: int, is_told: bool = True) -> str:
        """Whether a row lacks the value.

        :param is_told: whether the source has told when the row was written.
        """
        now, _ = self.fields[at]
        lacks = f"t.{path_sql(now)} IS NULL AND b.v{at} IS NOT NULL"
        if at in self.defaulted:
            lacks = f"{f'b.l{at}' if is_told else f'NOT {self._written(at)}'} AND {self._differs(at)}"
        return f"({lacks} AND t.{path_sql(now[:-1])} IS NOT NULL)" if now[:-1] else f"({lacks})"

    def _differs(self, at: int) -> str:
        return f"NOT (t.{path_sql(self.fields[at][0])} <=> b.v{at})"


def version_sql(version: str) -> str:
    """A tag, or the id of a snapshot, behind ``VERSION AS OF``."""
    return version if version.isdigit() else string_sql(version)
