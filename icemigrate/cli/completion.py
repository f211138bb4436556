"""``icemigrate completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from icemigrate.cli.option_types import OneOf
from icemigrate.cli.options import help_option
from icemigrate.cli.streams import write_stream


@click.command("completion")
@click.argument("shell", type=OneOf(["bash", "zsh", "fish"]))
@help_option
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a completion script for a shell.

    \b
    bash:  eval "$(icemigrate completion bash)"          in ~/.bashrc
    zsh:   eval "$(icemigrate completion zsh)"           in ~/.zshrc
    fish:  icemigrate completion fish | source           in ~/.config/fish/config.fish
    """
    # The script itself needs no shell to be written; Click's `source` asks bash for its version first.
    kind = get_completion_class(shell)
    assert kind is not None
    creator = kind(ctx.find_root().command, {}, "icemigrate", "_ICEMIGRATE_COMPLETE")
    write_stream(creator.source_template % creator.source_vars() + "\n")
