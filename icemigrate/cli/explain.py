"""``icemigrate explain``."""

from __future__ import annotations

import click

from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write_stream


@click.command("explain")
@click.argument("word")
@global_options
def command(word: str) -> None:
    """Explain an identifier and what to do; for a rule, with a bad and a good example.

    WORD is the id or the name of a rule (`IM104`, `drop`), an identifier in square brackets after a message
    (`no-promotion`), or the kind of an error in JSON (`StalePlan`).
    """
    from icemigrate.commands.explain import explain

    write_stream(explain(word))
