"""From a plan to the changed world: the only place that changes it."""

from __future__ import annotations

from icemigrate.executor.faults import Failed, Interrupted, Undone
from icemigrate.executor.means import Operator, Ways, directly, operator
from icemigrate.executor.recovery import Inverse
from icemigrate.executor.run import apply

__all__ = [
    "Failed",
    "Interrupted",
    "Inverse",
    "Operator",
    "Undone",
    "Ways",
    "apply",
    "directly",
    "operator",
]
