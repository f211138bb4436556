"""Believable market data: a random walk per symbol, the same on every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

_LISTED = (
    ("ACME", 1001, "XNYS", "182.40"),
    ("GLBX", 1002, "XNAS", "57.15"),
    ("INIT", 1003, "XLON", "911.00"),
    ("UMBR", 1004, "XETR", "23.88"),
)
_CURRENCIES = {"XNYS": "USD", "XNAS": "USD", "XLON": "GBP", "XETR": "EUR"}
_VENUES = ("LIT", "DARK", "AUCT")
_TICK = Decimal("0.01")


def trades(day: datetime, count: int) -> Iterator[dict[str, Any]]:
    """Trades of one day.

    :param day: midnight, UTC.
    :param count: how many.
    """
    chance = random.Random(f"trades {day}")
    prices = {symbol: Decimal(start) for symbol, _, _, start in _LISTED}
    for number, moment in enumerate(_moments(day, count, chance), start=1):
        symbol, company, exchange, _ = chance.choice(_LISTED)
        prices[symbol] = max(_TICK, prices[symbol] + _TICK * chance.randint(-5, 5))
        yield {
            "symbol": symbol,
            "company_id": company,
            "exchange": exchange,
            "exchange_timestamp": moment,
            "price": prices[symbol],
            "volume": 100 * chance.randint(1, 40),
            "qualifiers": chance.choice((0, 0, 0, 4, 16)),
            "venue": chance.choice(_VENUES),
            "buyer_id": chance.choice((None, f"B{chance.randint(1, 99):02d}")),
            "ingestion_timestamp": moment + timedelta(milliseconds=chance.randint(2, 90)),
            "sequence_number": number,
            "settlement_venue": chance.choice(("DTCC", "CREST", "CBF")),
            "currency": _CURRENCIES[exchange],
        }


def _moments(day: datetime, count: int, chance: random.Random) -> list[datetime]:
    opening = day + timedelta(hours=9)
    return sorted(opening + timedelta(milliseconds=chance.randint(0, 8 * 3_600_000)) for _ in range(count))
