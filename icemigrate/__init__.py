"""icemigrate: versioned, reviewed and reversible migrations for Apache Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icemigrate.api.iceberg_manager import IcebergManager
    from icemigrate.api.project import Project
    from icemigrate.planning.undo import UndoOptions

__all__ = ["IcebergManager", "Project", "UndoOptions", "__version__"]
__version__: str


def __getattr__(name: str) -> Any:
    """The Python API, imported when it is asked for: the command line comes through here too."""
    if name == "Project":
        from icemigrate.api.project import Project

        return Project
    if name == "IcebergManager":
        from icemigrate.api.iceberg_manager import IcebergManager

        return IcebergManager
    if name == "Options":
        from icemigrate.planning.undo import UndoOptions

        return UndoOptions
    if name == "__version__":
        from icemigrate.versions import ICEMIGRATE

        return ICEMIGRATE
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
