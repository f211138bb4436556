"""The sources of a dbt project: which table ``source('a', 'b')`` is, by the YAML files beside the models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

_PROJECT_FILE = "dbt_project.yml"


def read_dbt_sources(models: Iterable[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The parts of the table, by the names of the source and of its table; all in lower case.

    What cannot be read is left out: it is dbt's to tell.

    :param models: paths of the models.
    """
    folders = dict.fromkeys(parent for path in models for parent in _up(Path(path).parent))
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for folder in folders:
        for file in sorted((*folder.glob("*.yml"), *folder.glob("*.yaml"))):
            found.update(_read(file))
    return found


def _up(folder: Path) -> Iterator[Path]:
    """A folder, and those above it within its dbt project."""
    above = [folder, *folder.parents]
    top = next((at for at, one in enumerate(above) if (one / _PROJECT_FILE).is_file()), 0)
    yield from above[: top + 1]


def _read(file: Path) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        content: Any = yaml.safe_load(text) if "sources:" in text else None
    except (OSError, ValueError, yaml.YAMLError):
        return
    for source in _dicts(content, "sources"):
        for table in _dicts(source, "tables"):
            name, its = str(source.get("name", "")).lower(), str(table.get("name", "")).lower()
            schema = str(source.get("schema") or name).lower()
            # One that a template puts in is not known here.
            namespace = (name if "{{" in schema else schema).split(".")
            yield (name, its), (*namespace, str(table.get("identifier") or its).lower())


def _dicts(content: Any, key: str) -> Iterator[dict[str, Any]]:
    found = content.get(key) if isinstance(content, dict) else None
    yield from (one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict))
