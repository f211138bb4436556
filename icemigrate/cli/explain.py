"""``icemigrate explain``."""

from __future__ import annotations

import click

from icemigrate.cli.options import global_options
from icemigrate.cli.streams import write


@click.command("explain")
@click.argument("word")
@global_options
def command(word: str) -> None:
    """Say what an identifier means and what to do; of a rule why, bad, good, and what to do instead.

    WORD is the id or the name of a rule (`IM104`, `drop`), what else stands in square brackets behind a
    message (`no-promotion`), or the kind of an error in JSON (`StalePlan`).
    """
    from icemigrate.app.explaining import explain

    write(explain(word))
