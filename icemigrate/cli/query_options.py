"""What ``table query`` and ``table sql`` share: where rows go, and in which format."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icemigrate.cli.invocation import InvocationOptions
from icemigrate.cli.option_types import OneOf
from icemigrate.cli.outputs import OutputTarget
from icemigrate.cli.streams import require_utf8_output, write_stream
from icemigrate.diagnostics import format_count

if TYPE_CHECKING:
    from icemigrate.table_data.query_tables import OpenQuery
    from icemigrate.table_data.table_session import TableSession

_Command = TypeVar("_Command", bound=Callable[..., Any])


def rows_options(command: _Command) -> _Command:
    """``--format``, ``-o`` and ``--explain``."""
    for option in (
        click.option(
            "--explain",
            is_flag=True,
            help="Run the query, and show no rows, but which reader reads each table and why, and how many "
            "files are skipped because of partitions and statistics.",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write the rows to a file; an existing file is replaced after all rows are written.",
        ),
        click.option(
            "--format",
            "row_format",
            type=OneOf(["table", "csv", "json", "parquet", "text"]),
            help="Format of the rows (default: the extension of FILE; without FILE `table`, which shows "
            "at most 1,000 rows). `text` is the same as `table`.",
        ),
    ):
        command = option(command)
    return command


class RowOutput:
    """Writes the rows of a query, or its explanation, as the options say."""

    def __init__(
        self, settings: InvocationOptions, row_format: str | None, output: Path | None, explain: bool
    ) -> None:
        """
        :raises UsageError: the format does not fit the output.
        """
        from icemigrate.commands.query_output import chosen_format
        from icemigrate.errors import UsageError

        # `text` is the name in the other commands, and in the variable that sets the format of all of them.
        row_format = "table" if row_format == "text" else row_format
        self._settings, self._output, self._explain = settings, output, explain
        if explain and (output is not None or row_format not in (None, "table", "json")):
            raise UsageError(
                "`--explain` shows no rows, so there is nothing to write to a file",
                "omit `-o`, and use the format table or json",
            )
        self._format = chosen_format(row_format, output)
        if self._format == "json" and output is None:
            settings.outputs = (OutputTarget("json"),)  # so that an error is a JSON document as well

    def __call__(self, session: TableSession, query: OpenQuery) -> None:
        """Write a query's rows, or its explanation.

        :raises IcemigrateError: the query fails, or the output cannot be written.
        """
        from icemigrate.commands import query_output
        from icemigrate.render.query_text import rows_text

        settings = self._settings
        if self._explain:
            settings.answer(query_output.explanation(session, query))
            return
        if self._format == "table":
            shown = query_output.shown_rows(query)
            text = rows_text(shown.names, shown.rows, shown.numeric, settings.style(sys.stdout))
            write_stream(text, is_rendered=True)
            counted = format_count(len(shown.rows), "row")
            more = "; there are more: `--format csv` shows all" if shown.has_more else ""
            settings.show_step(f"{counted}{more}")
            return
        # A terminal gets hidden characters as escapes, another program gets them as they are.
        rendered = not sys.stdout.isatty()
        if rendered:
            require_utf8_output()
        written = query_output.write_rows(
            query, self._format, self._output, lambda text: write_stream(text, is_rendered=rendered)
        )
        where = "" if self._output is None else f" in `{self._output}`"
        settings.show_step(f"{format_count(written, 'row')}{where}")
