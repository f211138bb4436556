"""The kinds of data step: one file each, and the one list of them."""

from __future__ import annotations

from icemigrate.data.backfill import Backfill
from icemigrate.data.base import RowWork
from icemigrate.data.check import Check
from icemigrate.data.every_value import EveryValue
from icemigrate.data.retype import Retype
from icemigrate.data.rewrite import Rewrite

__all__ = ["KINDS", "kind_named"]

KINDS: tuple[type[RowWork], ...] = (Retype, Backfill, Check, EveryValue, Rewrite)
"""Every kind.  Steps run by their stage, and inside a stage in the order of the file."""

_BY_NAME = {kind.kind: kind for kind in KINDS}


def kind_named(name: str) -> type[RowWork]:
    """The kind of this name.

    :raises KeyError: there is none, as in a plan that a newer version has written.
    """
    return _BY_NAME[name]
