"""Whether whoever runs a command wants to see what it keeps to itself: tracebacks, and what Spark prints."""

from __future__ import annotations

import os

DEBUG_VARIABLE = "ICEMIGRATE_DEBUG"


def is_debugging() -> bool:
    """Whether the variable is set, to anything but 0."""
    return os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
