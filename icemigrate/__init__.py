"""icemigrate: versioned, reviewed and reversible migrations for Apache Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icemigrate.api import Project

__all__ = ["Project", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The Python API, imported when it is asked for: the command line comes through here too."""
    if name == "Project":
        from icemigrate.api import Project

        return Project
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
