"""The three sides of a table made into one target; see :mod:`icemigrate.merge.tables`."""

from __future__ import annotations

from icemigrate.merge.facts import Conflict, Fact
from icemigrate.merge.rebind import rebind, rebind_by_path
from icemigrate.merge.tables import Merged, merge, spec_key

__all__ = [
    "Conflict",
    "Fact",
    "Merged",
    "merge",
    "rebind",
    "rebind_by_path",
    "spec_key",
]
