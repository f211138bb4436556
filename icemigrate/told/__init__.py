"""What every identifier in square brackets means, and what to do about it: one text each.

Rules of ``check`` with an id such as ``IM104`` have pages of their own, see :mod:`icemigrate.checks`.  An
identifier is permanent: one that is given up is never given another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

from icemigrate.told.over_time import OVER_TIME
from icemigrate.told.reading import READING
from icemigrate.told.saying import SAYING
from icemigrate.told.tables import TABLES

PARTS: Mapping[str, Mapping[str, str]] = {
    "Reading files": READING,
    "What files say": SAYING,
    "What a table may be": TABLES,
    "Files, history and catalog over time": OVER_TIME,
}
"""The texts by what they are about."""

TOLD: Mapping[str, str] = {word: text for part in PARTS.values() for word, text in part.items()}
"""All identifiers."""
