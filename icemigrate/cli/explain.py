"""``icemigrate explain``."""

from __future__ import annotations

import click

from icemigrate.cli.context import global_options, write


@click.command("explain")
@click.argument("rule")
@global_options
def command(rule: str) -> None:
    """Show the page of a rule: why, bad, good, what to do instead.

    RULE is an id such as `IM104`, or a name such as `drop`.
    """
    from icemigrate.app.explaining import explain

    write(explain(rule))
