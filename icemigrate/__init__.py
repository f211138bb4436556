"""icemigrate: versioned, reviewed and reversible migrations for Apache Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icemigrate.api import Project

__all__ = ["Project", "__version__"]
__version__: str


def __getattr__(name: str) -> Any:
    """The Python API, imported when it is asked for: the command line comes through here too."""
    if name == "Project":
        from icemigrate.api import Project

        return Project
    if name == "__version__":
        from icemigrate.versions import ICEMIGRATE

        return ICEMIGRATE
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
