"""Metadata files that Spark and PyIceberg wrote, kept under ``tests/data/metadata``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icemigrate.catalog.metadata_files import decode_metadata

FOLDER = Path(__file__).parents[1] / "data" / "metadata"
FILES: dict[str, Path] = {path.name.split(".")[0]: path for path in sorted(FOLDER.iterdir())}
VIEW = "spark-view"
SAMPLES: tuple[str, ...] = tuple(name for name in FILES if name != VIEW)


def sample(name: str) -> Any:
    """A fresh copy of a file's JSON."""
    return decode_metadata(FILES[name].read_bytes())
