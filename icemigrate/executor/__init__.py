"""From a plan to the changed world: the only place that changes it."""

from __future__ import annotations

from icemigrate.executor.run import Interrupted, Operator, Recorder, apply, operator

__all__ = ["Interrupted", "Operator", "Recorder", "apply", "operator"]
