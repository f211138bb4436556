"""The command line: arguments → use case → renderer → exit code; one file per command."""

from __future__ import annotations

import gc
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    :param args: without the program's name; those of the process where it is ``None``.
    :returns: the exit code, always one of :class:`~icemigrate.errors.ExitCode`.
    """
    from icemigrate.cli.group import icemigrate
    from icemigrate.cli.outcome import run

    # A plan of a thousand tables holds millions of values and hardly a cycle: looking for garbage as often as
    # Python does by default, and once more at the end of the process, costs a fifth of the time.
    gc.set_threshold(20_000, 50, 1000)
    try:
        return run(icemigrate, args)
    finally:
        gc.freeze()
