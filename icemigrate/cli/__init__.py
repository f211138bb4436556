"""The command line: arguments → use case → renderer → exit code; one file per command."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

_INTERRUPTED = 130
"""``ExitCode.INTERRUPTED``, whose module may not be imported yet."""


def forget_working_directory() -> None:
    """Import no module from the working directory, which may be a repository with a ``yaml.py`` in it."""
    try:
        here = os.getcwd()  # noqa: PTH109 (`pathlib` is not imported to show `--help`)
    except OSError:
        here = ""
    sys.path[:] = [folder for folder in sys.path if folder not in ("", ".", here)]


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    :param args: without the program's name; those of the process where it is ``None``.
    :returns: the exit code, always one of :class:`~icemigrate.errors.ExitCode`.
    """
    if args is None:
        forget_working_directory()
    # A plan of a thousand tables holds millions of values and hardly a cycle: looking for garbage as often as
    # Python does by default, and once more at the end of the process, costs a fifth of the time.
    gc.set_threshold(20_000, 50, 1000)
    try:
        from icemigrate.cli.exit import run
        from icemigrate.cli.group import icemigrate

        return run(icemigrate, args)
    except KeyboardInterrupt:  # Ctrl-C while modules are imported; `run` handles it afterwards
        if sys.stderr is not None:
            sys.stderr.write("\nInterrupted.\n")
        return _INTERRUPTED
    finally:
        gc.freeze()
