"""The sources of a dbt project: which table ``source('a', 'b')`` is, by the YAML files beside the models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from icemigrate.declare.composing import parse
from icemigrate.declare.nodes import to_data
from icemigrate.declare.source import Source, read_source
from icemigrate.files.boundary import is_inside
from icemigrate.files.reading import names_in

_PROJECT_FILE = "dbt_project.yml"


def read_dbt_sources(models: Iterable[str], top: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """The parts of the table, by the names of the source and of its table; all in lower case.

    What cannot be read is left out: it is dbt's to tell.

    :param models: paths of the models.
    :param top: the top of the repository, which no file is read outside of.
    """
    folders = dict.fromkeys(parent for path in models for parent in _up(Path(path).absolute().parent, top))
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for folder in folders:
        for name in _names(folder, top):
            if name.endswith((".yml", ".yaml")):
                found.update(_read(folder / name, top))
    return found


def _up(folder: Path, top: Path) -> Iterator[Path]:
    """A folder, and those above it within its dbt project."""
    above = [one for one in (folder, *folder.parents) if is_inside(one, top)]
    last = next((at for at, one in enumerate(above) if _PROJECT_FILE in _names(one, top)), 0)
    yield from above[: last + 1]


def _names(folder: Path, top: Path) -> list[str]:
    try:
        return names_in(folder, top)
    except OSError:
        return []


def _read(file: Path, top: Path) -> Iterator[tuple[tuple[str, str], tuple[str, ...]]]:
    read = read_source(file, top=top)
    if not isinstance(read, Source) or "sources:" not in read.text:
        return
    # Depth and aliases are bounded there.
    node = parse(read).node
    content = None if node is None else to_data(node)
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
