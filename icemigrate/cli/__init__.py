"""The command line: arguments → use case → renderer → exit code; one file per command."""

from __future__ import annotations

from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    :param args: without the program's name; those of the process where it is ``None``.
    :returns: the exit code, always one of :class:`~icemigrate.errors.ExitCode`.
    """
    from icemigrate.cli.group import icemigrate
    from icemigrate.cli.outcome import run

    return run(icemigrate, args)
