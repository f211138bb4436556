"""The three sides of a table made into one target; see :mod:`icemigrate.merge.tables`."""

from __future__ import annotations

from icemigrate.merge.adopted import adopted
from icemigrate.merge.facts import UNKNOWN_BASE, Conflict, Fact
from icemigrate.merge.fields import align
from icemigrate.merge.notes import done_notes, grouped
from icemigrate.merge.rebind import ordered_like, rebind, rebind_by_path
from icemigrate.merge.tables import Merged, merge, spec_key
from icemigrate.merge.touched import TouchedFact, shared, touched

__all__ = [
    "UNKNOWN_BASE",
    "Conflict",
    "Fact",
    "Merged",
    "TouchedFact",
    "adopted",
    "align",
    "done_notes",
    "grouped",
    "merge",
    "ordered_like",
    "rebind",
    "rebind_by_path",
    "shared",
    "spec_key",
    "touched",
]
