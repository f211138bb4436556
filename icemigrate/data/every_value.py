"""Columns that become required must have a value in every row that is there: asked before anything is done.

A null that stays is read wrongly (Spark takes it for 0), and a file that lacks a required field is read by
nobody; what it lacks reads as null while the field is optional, so one query finds both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from icemigrate.changes.base import Reversal, Reversible, Subject
from icemigrate.data.base import Ask, DataStatement, Ground, RowWork, Stage
from icemigrate.data.required import Filled, filled
from icemigrate.data.retype import Retype
from icemigrate.frozen import replace
from icemigrate.model.names import format_path
from icemigrate.model.schema import index
from icemigrate.model.table import Table
from icemigrate.sql.literals import string_sql
from icemigrate.sql.nulls import null_sql
from icemigrate.sql.types import spark_loads

_HINT = "fill it in every row by an earlier migration (`backfill`), or leave it optional"
_MISSING = "there are rows without a value of"


class EveryValue(RowWork):
    """One query for all of a table's columns that become required.

    :param columns: as the file calls them.
    :param conditions: for each, what holds of a row where it is null, in the names before the migration.
    """

    kind: ClassVar[str] = "every_value"

    columns: tuple[str, ...]
    conditions: tuple[str, ...]

    @property
    def stage(self) -> Stage:
        """Before anything is done."""
        return Stage.BEFORE

    @property
    def subject(self) -> Subject:
        """Where the first one becomes required, as long as nobody knows which of them rows lack."""
        return ("columns", self.columns[0], "required")

    def statements(self, rows: str) -> tuple[DataStatement, ...]:
        """The query."""
        if len(self.columns) == 1:
            query, gives = f"SELECT count(*) FROM {rows} WHERE {self.conditions[0]}", "0"
            return (Ask(query, gives, f"rows without a value of `{self.columns[0]}`", _HINT),)
        found = ", ".join(
            f"IF(count_if({condition}) > 0, {string_sql(column)}, NULL)"
            for column, condition in zip(self.columns, self.conditions, strict=True)
        )
        anywhere = " OR ".join(f"({condition})" for condition in self.conditions)
        query = f"SELECT coalesce(nullif(concat_ws(', ', {found}), ''), 'none') FROM {rows} WHERE {anywhere}"
        return (Ask(query, '"none"', _MISSING, _HINT, is_told=True),)

    def place_of(self, failure: str) -> Subject:
        """Where the first one becomes required that the answer names."""
        told = f", {failure.removeprefix(_MISSING).strip()}, "
        return ("columns", next((c for c in self.columns if f", {c}, " in told), self.columns[0]), "required")

    def reversal(self, ground: Ground) -> Reversal:
        """It changes nothing."""
        return Reversal(Reversible.YES, "it changes nothing")

    def describe(self) -> str:
        """What must hold."""
        return f"check before: every row has a value of {', '.join(self.columns)}"


def every_value(works: Sequence[RowWork], there: Table, after: Table) -> Iterator[EveryValue]:
    """The question, where a table has rows, and columns become required that the migration does not fill.

    Of a table that Spark cannot load nothing can be asked.

    :param there: the table as it is before the migration.
    :param after: as the migration leaves it.
    """
    if not there.has_rows or not spark_loads(there.schema):
        return
    before, own = index(there.schema), filled_by(works)
    made = {
        format_path(entry.path): null_sql(there.schema, field_id)
        for field_id, entry in index(after.schema).items()
        if entry.field.required
        and field_id in before
        and not before[field_id].field.required
        and not own.has(entry, before)
    }
    if made:
        yield EveryValue(tuple(made), tuple(made.values()))


def filled_by(works: Sequence[RowWork]) -> Filled:
    """What a migration fills by itself, see :mod:`icemigrate.data.required`."""
    found, retyped = filled(works), (work.path for work in works if isinstance(work, Retype))
    return replace(found, whole=found.whole.union(retyped))
