"""The data steps of a table entry as typed values, before replay."""

from __future__ import annotations

from icemigrate.frozen import Frozen


class BackfillEntry(Frozen):
    """One item of ``backfill``.

    :param sets: column → SQL expression, in the order of the file.
    """

    sets: tuple[tuple[str, str], ...]
    where: str | None = None


class RetypeEntry(Frozen):
    """One key of ``retype``: the column, the type it gets, and the expression that gives the values."""

    column: str
    to: str
    using: str


class CheckEntry(Frozen):
    """One item of ``checks``.

    :param gives: the expected result of the query, as JSON: a value, or a list of rows.
    """

    query: str
    is_after: bool
    gives: str = "[]"
    name: str | None = None
