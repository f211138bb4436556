"""A column, or a field of a struct, becomes one of a type that Iceberg cannot promote its own to: filled,
asked about, and swapped.

The new column stands under a temporary name while its rows are written.  When they are published, the old
one is dropped and the new one takes its name and its place; so it is a new field, and the old one comes back
under its own field id when the migration is undone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import ClassVar

from icemigrate.changes.base import Harm, Problem, Reversal, Reversible, Sql, Subject
from icemigrate.changes.fields import default_text
from icemigrate.data.base import Ask, DataStatement, Ground, RowWork, Stage, strange_word, with_ends
from icemigrate.frozen import replace
from icemigrate.model.names import Path, parse_path
from icemigrate.model.types import Primitive
from icemigrate.model.writers import Whom
from icemigrate.sql.defaults import default_sql
from icemigrate.sql.names import path_sql

TEMPORARY = "__icemigrate"
"""What is put behind a column's name while the new one is filled.

It leaves the project out: only the project that owns a table changes it, and a column that an interrupted
run has left is known by its field id."""


class Retype(RowWork):
    """One ``UPDATE``, and the question whether a value was lost.

    :param column: as it is called before and after, dotted where it is a field of a struct.
    :param using: the expression that gives the new values.
    :param to: the new type, as people write it.
    :param field_id: of the old column.
    :param keeps: whether the new column comes back with values that were written to it before a rollback:
        they stay where the old column has none.
    :param reads: the initial default of the old column, as SQL; empty where it has none.  A row that was
        written when the column was gone reads it, and never null.
    """

    kind: ClassVar[str] = "retype"

    column: str
    using: str
    to: str
    field_id: int
    keeps: bool = False
    reads: str = ""

    @property
    def path(self) -> Path:
        """The column, or the field of a struct."""
        return parse_path(self.column)

    @property
    def temporary(self) -> Path:
        """What the new one is called while it is filled."""
        *above, name = self.path
        return (*above, f"{name}{TEMPORARY}")

    @property
    def stage(self) -> Stage:
        """It writes."""
        return Stage.WRITE

    @property
    def subject(self) -> Subject:
        """Its key."""
        return ("retype", self.column)

    def parts(self) -> Iterator[tuple[Subject, RowWork]]:
        """What gives the values."""
        yield (*self.subject, "using"), self

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """The ``UPDATE`` and the question."""
        return self._statements(rows)

    def late(self, rows: str, required: Collection[Path]) -> tuple[DataStatement, ...]:
        """The same for rows that have no value of the new column."""
        return self._statements(rows, f"{path_sql(self.temporary)} IS NULL")

    def _statements(self, rows: str, *conditions: str) -> tuple[DataStatement, ...]:
        old, new, above = path_sql(self.path), path_sql(self.temporary), self.path[:-1]
        # To set a field of a struct that is null would make a struct of it.
        which = [*conditions, *([f"{path_sql(above)} IS NOT NULL"] if above else [])]
        if self.keeps:
            has_own = f"{old} IS NOT NULL" + (f" AND NOT ({old} <=> {self.reads})" if self.reads else "")
            which.append(f"({has_own} OR {new} IS NULL)")
        where = f" WHERE {' AND '.join(which)}" if which else ""
        lost = f"SELECT count(*) FROM {rows} WHERE {old} IS NOT NULL AND {new} IS NULL"
        return (
            Sql(f"UPDATE {rows} SET {new} = {self.using}{where}"),
            Ask(lost, "0", f"values of {self.column} that became null"),
        )

    def fitted(self, ground: Ground) -> Retype:
        """It keeps values where its column is one that comes back."""
        if not ground.is_back(self.temporary):
            return self
        old = ground.table.schema.find(self.path)
        default = None if old is None else old.initial_default
        reads = "" if old is None or default is None else default_sql(default, old.type)
        return replace(self, keeps=True, reads=reads)

    def problems(self, ground: Ground) -> Iterator[Problem]:
        """A type that no value is of."""
        new = ground.table.schema.find(self.temporary)
        if new is not None and new.type == Primitive("unknown"):
            yield Problem(
                "retype-unknown",
                ground.declared,
                self.subject,
                f"a column of type `unknown` has nulls alone, so `{self.column}` would lose its values",
                f"name `{self.column}` in `drop_columns` and in `columns` to have it anew, without values",
            )

    def doubts(self, ground: Ground) -> Iterator[Problem]:
        """What is a word by itself."""
        return strange_word(self.using, (*self.subject, "using"), ground)

    @property
    def harms(self) -> tuple[Harm, ...]:
        """Whoever writes the table gives values of the old column."""
        was = f"gives `{self.column}` as it was"
        return (Harm(Whom.ALL, f"{was}, which is another column then, of type {self.to}"),)

    def reversal(self, ground: Ground) -> Reversal:
        """The old column comes back; what is written after it has no value of its own there."""
        old = ground.table.schema.find(self.path)
        default = None if old is None else old.initial_default
        read = "lack it" if default is None else f"read its default {default_text(default)} there"
        reason = f"the old column comes back; rows that are written after it {read}"
        return Reversal(Reversible.YES, with_ends(reason, ground.gone))

    def describe(self) -> str:
        """The column, its new type, and where the values come from."""
        text = f"retype {self.column} to {self.to} using {' '.join(self.using.split())}"
        if not self.keeps:
            return text
        none = "read its default or null" if self.reads else "was null"
        return f"{text}; where it {none} as it was, what was written to it as {self.to} stays"
