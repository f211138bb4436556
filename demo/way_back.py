"""What the demo shows: a bad migration, rows that arrive under it, the way back, and the mended file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from demo.stage import Rows, ask, icemigrate, load_trades, promise, say, show

_FILE = "0008_record_the_currency.yaml"
_BAD = """\
description: Record the currency, and drop the price, which the quotes have too
allow: [destructive market_data.trades.price]
because: nobody seemed to read it
tables:
  - name: market_data.trades
    columns: [{name: currency, type: string, description: What the price is in}]
    drop_columns: [price]
"""
_MENDED = """\
description: Record the currency
tables:
  - name: market_data.trades
    columns: [{name: currency, type: string, description: What the price is in}]
"""
_NEW_DAY = datetime(2026, 3, 5)
_NEW_ROWS = 2000
_TRADES = "local.market_data.trades"
_BY_DAY = (
    "SELECT date(exchange_timestamp) AS day, count(*) AS trades, count(price) AS with_price, {column} "
    f"FROM {_TRADES} GROUP BY day ORDER BY day"
)
_EACH = (
    f"SELECT exchange_timestamp, sequence_number, symbol, {{column}} FROM {_TRADES} "
    "WHERE {column} IS NOT NULL ORDER BY exchange_timestamp, sequence_number"
)
_PRICES = _EACH.format(column="price")
_CURRENCIES = _EACH.format(column="currency")


def play(migrations: Path) -> None:
    """Play it.

    :param migrations: the folder of the demo's own migration files.
    :raises SystemExit: a command failed; with its exit code.
    :raises BrokenPromise: a promise was not kept.
    """
    prices = ask(_PRICES)
    _go_wrong(migrations / _FILE)
    currencies = ask(_CURRENCIES)
    _go_back(prices)
    _redo(migrations / _FILE, prices, currencies)


def _go_wrong(file: Path) -> None:
    say("Now a migration that is a mistake: it adds a column, and drops one that is still needed, the price.")
    _write(file, _BAD)
    icemigrate("apply", "--auto-approve")
    say("Trades go on arriving. They have a currency, and no price.")
    load_trades(_NEW_DAY, _NEW_ROWS)
    promise("the price is gone: the table has no such column any more", "price" not in _columns())


def _go_back(prices: Rows) -> None:
    say(
        "The mistake is noticed. `rollback` shows its own plan first: what comes back, and what goes.\n"
        "   It takes back the columns only. No row is lost: neither the old ones nor the new ones."
    )
    icemigrate("rollback", "--auto-approve")
    show(_BY_DAY.format(column="sum(price * quantity) AS turnover"))
    promise(f"all {len(prices)} prices are back, each as it was", ask(_PRICES) == prices)
    promise(
        f"the {_NEW_ROWS} trades that came without a price are still there",
        _trades() == len(prices) + _NEW_ROWS,
    )
    say("The version is held now: the next `apply` leaves it alone, until somebody asks for it by name.")
    icemigrate("apply", "--auto-approve")
    promise("the price is still there", "price" in _columns())


def _redo(file: Path, prices: Rows, currencies: Rows) -> None:
    say("The same file, mended: the price stays this time.")
    _write(file, _MENDED)
    icemigrate("apply", "--redo", "0008", "--auto-approve")
    say("The currency has come back under its own field id, with what was written to it before the rollback.")
    show(_BY_DAY.format(column="count(currency) AS with_currency"))
    promise(f"all {_NEW_ROWS} currencies are back, each as it was", ask(_CURRENCIES) == currencies)
    promise(f"and the {len(prices)} prices have stayed", ask(_PRICES) == prices)


def _trades() -> int:
    [(count,)] = ask(f"SELECT count(*) FROM {_TRADES}")
    return int(count)


def _columns() -> set[str]:
    return {name for (name,) in ask(f"SHOW COLUMNS IN {_TRADES}")}


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    print(f"\n$ cat migrations/{file.name}\n{text}", end="", flush=True)
