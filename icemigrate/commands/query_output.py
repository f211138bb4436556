"""The rows of a query to standard output or to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.commands.user_files import not_written, user_stream
from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.system.measured_activity import ROWS, measured_activity
from icemigrate.table_data.duckdb_session import statement_share
from icemigrate.table_data.query_explain import explain_query
from icemigrate.table_data.query_formats import TEXT_FORMATS, row_values, write_parquet
from icemigrate.table_data.query_tables import OpenQuery, QueryBatches

if TYPE_CHECKING:
    import pyarrow as pa

    from icemigrate.results.query_results import QueryExplanation
    from icemigrate.table_data.table_session import TableSession

FILE_FORMATS = ("csv", "json", "parquet")
"""Formats of rows in a file, each with its extension."""
MOST_SHOWN = 1_000
"""Rows that the format ``table`` shows: all of them are in memory, to align the columns."""


class ShownRows(Frozen):
    """Rows for people.

    :param numeric: for each column, whether it has numbers.
    :param has_more: whether the query has more rows than these.
    """

    names: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]
    has_more: bool


def chosen_format(name: str | None, output: Path | None) -> str:
    """The format of rows: the given one, or that of the file's extension.

    :raises UsageError: the format needs a file, the file's extension names no format, or another one.
    """
    if output is None:
        if name == "parquet":
            raise UsageError("the format `parquet` needs a file", "add `-o FILE.parquet`")
        return name or "table"
    if name == "table":
        raise UsageError(
            f"the format `table` is for the terminal, not for `{output}`", "use csv, json or parquet"
        )
    extension = output.suffix.lower().removeprefix(".")
    named = extension if extension in FILE_FORMATS else None
    if name is None and named is None:
        raise UsageError(
            f"the name `{output}` does not say in which format to write the rows",
            "end it in `.csv`, `.json` or `.parquet`, or add `--format`",
        )
    if name is not None and named not in (None, name):
        raise UsageError(
            f"the format `{name}` contradicts the extension of `{output}`",
            f"write `--format {named}`, or end the name in `.{name}`",
        )
    return name or named or "csv"


def shown_rows(query: OpenQuery) -> ShownRows:
    """The first rows of a query, for people."""
    import pyarrow as pa

    batches = query.batches()
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        rows += row_values(batch)
        if len(rows) > MOST_SHOWN:
            break
    numeric = tuple(
        pa.types.is_integer(one.type) or pa.types.is_floating(one.type) or pa.types.is_decimal(one.type)
        for one in batches.schema
    )
    return ShownRows(tuple(batches.schema.names), numeric, tuple(rows[:MOST_SHOWN]), len(rows) > MOST_SHOWN)


def write_rows(query: OpenQuery, name: str, output: Path | None, write: Callable[[str], None]) -> int:
    """Write all rows of a query in a format for programs.

    :param output: replaced when all rows are there; ``None`` for ``write``.
    :returns: the number of rows.
    :raises IcemigrateError: the file cannot be written, or the query fails.
    """
    with measured_activity("Reading rows", ROWS, None, lambda: statement_share(query.connection)) as add:
        return _written(_Counted(query.batches(), add), name, output, write)


def _written(rows: _Counted, name: str, output: Path | None, write: Callable[[str], None]) -> int:
    if output is None:
        for part in TEXT_FORMATS[name](rows):
            write(part.decode("utf-8"))
        return rows.count
    try:
        with user_stream(output) as stream:
            if name == "parquet":
                write_parquet(rows, stream)
            else:
                stream.writelines(TEXT_FORMATS[name](rows))
    except OSError as error:
        raise not_written(output, error) from error
    return rows.count


class _Counted:
    """Batches whose rows are counted as they are read.

    :param add: takes the number of rows of each batch.
    :ivar count: how many rows were read so far.
    """

    def __init__(self, batches: QueryBatches, add: Callable[[int], None]) -> None:
        self.schema, self.count, self._batches, self._add = batches.schema, 0, batches, add

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.count += batch.num_rows
            self._add(batch.num_rows)
            yield batch


def explanation(session: TableSession, query: OpenQuery) -> QueryExplanation:
    """What a query reads; it is run for that."""
    return explain_query(session, query)
