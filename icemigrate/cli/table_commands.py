"""``icemigrate table``: the group of commands for one table."""

from __future__ import annotations

from typing import Any

import click

from icemigrate.cli.group import TABLE_COMMANDS, LazyGroup
from icemigrate.cli.options import global_options


@click.group("table", cls=LazyGroup, members=TABLE_COMMANDS, prefix="table ")
@global_options
def command(**_options: Any) -> None:
    """Read and change the rows, columns and snapshots of one table.

    NAME is the name that migration files use, such as `market_data.trades`.
    """
