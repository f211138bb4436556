"""Statements of a refill: queries of a retained snapshot, and writes to a branch.

Rows lack a value if they read null.  With an initial default they never do.  Then a row lacks its old value
if it was not written since while the field existed: the row itself shows that (specification, "Row Lineage",
format version 3, as for defaults), and clients that rewrite files carry it over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.field_absence import FieldAbsence
from icemigrate.iceberg.names import FieldPath, TableName
from icemigrate.iceberg.ref_names import OLDER_REFILL_BRANCH
from icemigrate.spark_sql.branch_statements import branch_sql, create_branch_sql, publish_branch_sql
from icemigrate.spark_sql.identifiers import path_sql, table_sql
from icemigrate.spark_sql.literals import string_sql

# Neither this nor the number of a row's last change is qualified: an alias may be the name of a column too,
# and then Spark looks for a field of that.
_ROW_ID = "_row_id"
_MAIN = "main"


class RefillStatements(Frozen):
    """The statements of one refill.

    :param version: a tag or the id of a snapshot.
    :param fields: current path of each field, and its path in the version.
    :param keys: the identifier fields by which rows are matched, in the same form; none for row ids.
    :param defaulted: by index in ``fields``, the ids of fields with an initial default.
    :param absences: by the same, when they did not exist; ``None`` until that is known; the statements have
        placeholders for it then.
    :param branch: the branch on which the values are written.
    """

    catalog: str
    table: TableName
    version: str
    fields: tuple[tuple[FieldPath, FieldPath], ...]
    keys: tuple[tuple[FieldPath, FieldPath], ...] = ()
    defaulted: Mapping[int, int] = field(default_factory=dict)
    absences: Mapping[int, FieldAbsence] | None = None
    branch: str = OLDER_REFILL_BRANCH

    def statements(self) -> Iterator[str]:
        """The statements of the refill: a branch, the values, the publication."""
        yield create_branch_sql(self.catalog, self.table, self.branch)
        yield from self.merges()
        yield publish_branch_sql(self.catalog, self.table, self.branch)

    def kept(self) -> str:
        """Counts the rows of the version with a value, and their different keys.

        A null is restored too where a default would be read instead, so that every row counts there.
        """
        keys = ", ".join(f"k{i}" for i in range(len(self._keys)))
        return f"SELECT count(*), count(DISTINCT {keys}) FROM {self._source}"

    def matched(self) -> str:
        """Counts the pairs of a row in the version and one on the branch, and the different rows of the
        version.

        Then, for each field, the pairs that lack the value; and for those with a default, the pairs with
        another one.
        """
        keys = ", ".join(f"b.k{i}" for i in range(len(self._keys)))
        lacking = [f"count_if({self._lacks(i, is_told=False)})" for i in range(len(self.fields))]
        others = [f"count_if({self._differs(i)})" for i in self.defaulted]
        columns = ", ".join(["count(*)", f"count(DISTINCT {keys})", *lacking, *others])
        return f"SELECT {columns} FROM {self._pairs}"

    def filled(self) -> str:
        """Counts the rows of the branch, and for each field, the rows with a value."""
        columns = ", ".join(["count(*)", *(f"count({path_sql(now)})" for now, _ in self.fields)])
        return f"SELECT {columns} FROM {self._branch_now}"

    def look(self) -> str:
        """Shows the retained values."""
        columns = ", ".join(path_sql(then) for _, then in (*self.keys, *self.fields))
        return f"SELECT {columns} FROM {self._name} VERSION AS OF {version_sql(self.version)}"

    def merges(self) -> Iterator[str]:
        """Writes the values."""
        # A statement for each struct: an assignment inside a null struct would create the struct.
        parents = dict.fromkeys(now[:-1] for now, _ in self.fields)
        for parent in parents:
            which = [i for i, (now, _) in enumerate(self.fields) if now[:-1] == parent]
            sets = ", ".join(map(self._set, which))
            yield (
                f"MERGE INTO {branch_sql(self.catalog, self.table, self.branch)} t\n"
                f"USING {self._source_with_lineage} b\n"
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
    def _keys(self) -> tuple[tuple[FieldPath, FieldPath], ...]:
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
    def _source_with_lineage(self) -> str:
        """The source with the row lineage of the current rows.

        It is queried on main: rows that an earlier ``MERGE`` wrote on the branch have a new lineage.
        """
        if not self.defaulted:
            return self._source
        keys = [f"{path_sql(now)} AS k{i}" for i, (now, _) in enumerate(self._keys)]
        lineage = [f"NOT {self._written(i)} AS l{i}" for i in self.defaulted]
        now = f"(SELECT {', '.join([*keys, *lineage])} FROM {self._name} VERSION AS OF {string_sql(_MAIN)})"
        on = " AND ".join(f"b.k{i} = n.k{i}" for i in range(len(keys)))
        flags = ", ".join(f"n.l{i}" for i in self.defaulted)
        return f"(SELECT b.*, {flags} FROM {self._source} b JOIN {now} n ON {on})"

    @property
    def _pairs(self) -> str:
        return f"{self._branch_now} t JOIN {self._source} b ON {self._on}"

    def _written(self, at: int) -> str:
        """Whether a row was written while the field existed, after the version that keeps its values."""
        absence = None if self.absences is None else self.absences[at]
        if absence is None:
            return f"{{the row was written while {path_sql(self.fields[at][0])} was there}}"
        # A row without its own number is older than row numbers: the time of its write is unknown.
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

        :param is_told: whether the source has the time of the row's write.
        """
        now, _ = self.fields[at]
        lacks = f"t.{path_sql(now)} IS NULL AND b.v{at} IS NOT NULL"
        if at in self.defaulted:
            lacks = f"{f'b.l{at}' if is_told else f'NOT {self._written(at)}'} AND {self._differs(at)}"
        return f"({lacks} AND t.{path_sql(now[:-1])} IS NOT NULL)" if now[:-1] else f"({lacks})"

    def _differs(self, at: int) -> str:
        return f"NOT (t.{path_sql(self.fields[at][0])} <=> b.v{at})"


def version_sql(version: str) -> str:
    """A tag, or the id of a snapshot, for ``VERSION AS OF``."""
    return version if version.isascii() and version.isdigit() else string_sql(version)
