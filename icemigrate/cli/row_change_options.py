"""Options that the commands which write rows share, and the note before Spark starts."""

from __future__ import annotations

from collections.abc import Callable

import click

from icemigrate.cli.invocation import InvocationOptions
from icemigrate.cli.option_types import OneOf
from icemigrate.errors import UsageError


def _require_other_outputs(
    ctx: click.Context, _param: click.Parameter, data: tuple[str, ...]
) -> tuple[str, ...]:
    """The files of data, none of which is a file of ``--format``."""
    settings = ctx.ensure_object(InvocationOptions)
    files = [output.file for output in settings.outputs if output.file is not None]
    if files and not ctx.resilient_parsing:
        from icemigrate.table_data.input_files import require_no_input

        for file in files:
            try:
                require_no_input(file, data)
            except UsageError:
                # The error itself is not written there either.
                settings.outputs = tuple(output for output in settings.outputs if output.file != file)
                raise
    return data


data_option = click.option(
    "--data",
    callback=_require_other_outputs,
    metavar="FILE",
    required=True,
    multiple=True,
    help="A CSV, TSV, JSON lines, Parquet or Arrow file, also compressed (`.gz`, `.zst`); a pattern such as "
    "`'in/*.csv'`; or `-` for standard input. Repeatable.",
)
data_format_option = click.option(
    "--data-format",
    type=OneOf(["csv", "tsv", "json", "parquet", "arrow"]),
    help="The format of the data (default: by the name of each file).",
)


def _delimiter(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from icemigrate.table_data.input_files import parse_delimiter

    return parse_delimiter(value)


delimiter_option = click.option(
    "--delimiter",
    metavar="CHARACTER",
    callback=_delimiter,
    help="The character between the values of a CSV or TSV file, such as `';'` or `'|'`, or `tab` (default: "
    "a comma, in TSV files a tab). A file whose name shows no format is CSV then.",
)
where_option = click.option(
    "--where",
    metavar="CONDITION",
    required=True,
    help="The rows that change: a condition in DuckDB's SQL over the columns, such as `\"city = 'Oslo'\"`; "
    "`true` for all. Rows for which it is null stay.",
)


def spark_note(settings: InvocationOptions) -> Callable[[str], None]:
    """What shows on standard error why Spark starts."""

    def show(reason: str) -> None:
        settings.show_step(f"Starting Spark because {reason} …")

    return show
