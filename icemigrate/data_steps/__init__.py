"""Kinds of data step."""

from __future__ import annotations

from icemigrate.data_steps.backfill import Backfill
from icemigrate.data_steps.data_step_kind import TableDataStep
from icemigrate.data_steps.not_null_check import NotNullCheck
from icemigrate.data_steps.query_check import QueryCheck
from icemigrate.data_steps.retype import Retype
from icemigrate.data_steps.rewrite import Rewrite

__all__ = ["DATA_STEP_KINDS", "find_data_step_kind"]

DATA_STEP_KINDS: tuple[type[TableDataStep], ...] = (Retype, Backfill, QueryCheck, NotNullCheck, Rewrite)
"""Every kind.  Steps run by stage, and within a stage in the order of the file."""

_BY_NAME = {kind.kind: kind for kind in DATA_STEP_KINDS}


def find_data_step_kind(name: str) -> type[TableDataStep]:
    """The kind with a name.

    :raises KeyError: there is none, as in a plan that a newer release has written.
    """
    return _BY_NAME[name]
