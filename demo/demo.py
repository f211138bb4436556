"""A bad migration of real Iceberg tables taken back, mended and done again, on the embedded default.

Everything happens in the folder ``.demo`` next to this one, which is made anew; ``make demo`` runs it.
Each line that begins with ``$`` is a command that anyone can type there, and each that begins with ``✓`` a
promise that was checked: the demo fails where one is broken.
"""

from __future__ import annotations

import os
import shutil
import sys
from datetime import datetime
from pathlib import Path

from demo import way_back
from demo.stage import failure_of, icemigrate, load_trades, say

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo"
_DAYS = (datetime(2026, 3, 2), datetime(2026, 3, 3), datetime(2026, 3, 4))


def play(folder: Path) -> None:
    """Play the whole demo in a folder, which is made anew and becomes the working directory.

    :raises SystemExit: a command failed; with its exit code.
    :raises BrokenPromise: a promise was not kept.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "migrations", folder / "migrations")
    os.chdir(folder)
    _begin()
    way_back.play(folder / "migrations")
    _next(folder)


def _begin() -> None:
    say(
        "Tables of market data, made by the seven migrations of this repository.\n"
        "   Spark starts once; the first time it fetches Iceberg's jars, which takes a while."
    )
    icemigrate("apply", "--auto-approve", is_told=False)
    for day in _DAYS:
        load_trades(day, 2000)


def _next(folder: Path) -> None:
    say(f"The tables and the files are in {folder}. To go on by hand:")
    print(f"   . {ROOT}/.venv/bin/activate && cd {folder}")
    print("   icemigrate new 'your own idea'    and then: check, plan, apply, rollback", flush=True)


def main(folder: Path = FOLDER) -> str | None:
    """Play the demo, and say what went wrong, if anything did."""
    return failure_of(lambda: play(folder))


if __name__ == "__main__":
    sys.exit(main())
