"""The reference project on real Iceberg tables: applied, queried and taken back, on the embedded default.

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
from demo.stage import BrokenPromise, icemigrate, load_quotes, load_trades, say, show
from icemigrate.errors import IcemigrateError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo"


def play(folder: Path) -> None:
    """Play the whole demo in a folder, which is made anew and becomes the working directory.

    :raises SystemExit: a command failed; with its exit code.
    :raises BrokenPromise: a promise was not kept.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "migrations", folder / "migrations")
    os.chdir(folder)
    _forward()
    way_back.play(folder / "migrations")
    _next(folder)


def _forward() -> None:
    say("Every file is checked, without a catalog.")
    icemigrate("check")
    say("The first migration. `apply` shows its plan first, as `plan` would; Spark starts once.")
    icemigrate("apply", "--to", "0001", "--auto-approve")
    _load(datetime(2026, 3, 2))
    say("A column is added, others are renamed. No row is rewritten.")
    icemigrate("apply", "--to", "0003", "--auto-approve")
    _load(datetime(2026, 3, 3))
    _travel()
    say("The rest: wider ids, a dropped column, a finer partition, a retention.")
    icemigrate("apply", "--auto-approve")
    _load(datetime(2026, 3, 4))
    _afterwards()
    icemigrate("status")


def _next(folder: Path) -> None:
    say(f"The tables and the files are in {folder}. To go on by hand:")
    print(f"   . {ROOT}/.venv/bin/activate && cd {folder}")
    print("   icemigrate new 'your own idea'    and then: check, plan, apply, rollback", flush=True)


def _load(day: datetime) -> None:
    load_trades(day, 2000)
    load_quotes(day, 4000)


def _travel() -> None:
    say("Every migration is a tag: the same rows with the schema of then, and of now.")
    show(
        "SELECT symbol, count(*) AS trades, sum(volume) AS volume FROM local.market_data.trades "
        "VERSION AS OF 'icemigrate-0002' GROUP BY symbol ORDER BY symbol"
    )
    show(
        "SELECT symbol, count(*) AS trades, sum(quantity) AS quantity FROM local.market_data.trades "
        "GROUP BY symbol ORDER BY symbol"
    )


def _afterwards() -> None:
    say("The dropped column is gone from the table, and still there under the tag before it.")
    show(
        "SELECT qualifiers, count(*) AS trades FROM local.market_data.trades "
        "VERSION AS OF 'icemigrate-0004' GROUP BY qualifiers ORDER BY qualifiers"
    )
    show(
        "SELECT partition.exchange_date, count(*) AS partitions, sum(record_count) AS rows "
        "FROM local.market_data.trades.partitions GROUP BY 1 ORDER BY 1"
    )


def main(folder: Path = FOLDER) -> str | None:
    """Play the demo, and say what went wrong, if anything did."""
    try:
        play(folder)
    except BrokenPromise as broken:
        return f"✗ {broken}"
    except IcemigrateError as error:
        return f"{error.message}\n{error.hint or ''}"
    return None


if __name__ == "__main__":
    sys.exit(main())
