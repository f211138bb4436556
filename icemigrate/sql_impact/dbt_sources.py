"""The sources of a dbt project: which table ``source('a', 'b')`` is, by the YAML files beside the models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from icemigrate.files.parse.source_text import SourceText, read_text
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import to_data
from icemigrate.sql_impact.dbt_project import PROJECT_FILE
from icemigrate.sql_impact.script import Parts
from icemigrate.system.file_reads import list_names_inside
from icemigrate.system.repository_boundary import is_inside


def read_dbt_sources(
    models: Iterable[str], top: Path, known: Mapping[tuple[str, str], Parts]
) -> dict[tuple[str, str], Parts]:
    """Parts of each source table's name, by the names of the source and its table; all in lower case.

    Unreadable files are left out: dbt reports them.

    :param models: paths of the models.
    :param known: sources in manifests, for those that no file declares, or a template names.
    :param top: the root of the repository; no file outside it is read.
    """
    folders = dict.fromkeys(parent for path in models for parent in _up(Path(path).absolute().parent, top))
    found = dict(known)
    for folder in folders:
        for name in _names(folder, top):
            if name.endswith((".yml", ".yaml")):
                found.update(_read(folder / name, top, known))
    return found


def _up(folder: Path, top: Path) -> Iterator[Path]:
    """A folder and its parents within its dbt project."""
    above = [one for one in (folder, *folder.parents) if is_inside(one, top)]
    last = next((at for at, one in enumerate(above) if PROJECT_FILE in _names(one, top)), 0)
    yield from above[: last + 1]


def _names(folder: Path, top: Path) -> list[str]:
    try:
        return list_names_inside(folder, top)
    except OSError:
        return []


def _read(
    file: Path, top: Path, known: Mapping[tuple[str, str], Parts]
) -> Iterator[tuple[tuple[str, str], Parts]]:
    read = read_text(file, top=top)
    if not isinstance(read, SourceText) or "sources:" not in read.text:
        return
    # The parser limits depth and aliases.
    node = parse_yaml(read).node
    content = None if node is None else to_data(node)
    for source in _dicts(content, "sources"):
        for table in _dicts(source, "tables"):
            name, its = str(source.get("name", "")).lower(), str(table.get("name", "")).lower()
            schema = str(source.get("schema") or name).lower()
            identifier = str(table.get("identifier") or its).lower()
            if "{{" in schema + identifier and (name, its) in known:
                continue
            # The value of a template is unknown.
            namespace = (name if "{{" in schema else schema).split(".")
            yield (name, its), (*namespace, identifier)


def _dicts(content: Any, key: str) -> Iterator[dict[str, Any]]:
    found = content.get(key) if isinstance(content, dict) else None
    yield from (one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict))
