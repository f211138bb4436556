"""The project file of dbt: the variables that templates use, and the folder of what dbt writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icemigrate.files.parse.source_text import SourceText, read_text
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import to_data
from icemigrate.frozen import Frozen
from icemigrate.sql_impact.jinja_values import Items, Value, Variables, variable_key
from icemigrate.sql_impact.sql_source import SqlFragment
from icemigrate.system.repository_boundary import is_inside

PROJECT_FILE = "dbt_project.yml"
_MOST_PARTS = 1_000
_MOST_CHARACTERS = 10_000
"""How large the value of a variable may be, which is copied wherever it is used; a larger one is unknown."""


class DbtProject(Frozen):
    """A dbt project.

    :param variables: by :func:`~.jinja_values.variable_key`.
    :param target: the folder that dbt writes to, relative to the project.
    """

    folder: Path
    name: str
    variables: Variables
    target: str


class DbtProjects:
    """The dbt projects of a repository, each read once.

    :param top: the root of the repository; no file outside it is read.
    """

    def __init__(self, top: Path) -> None:
        self.top = top
        self._by_folder: dict[Path, DbtProject | None] = {}

    def around(self, file: Path) -> DbtProject | None:
        """The project that a file belongs to."""
        folder = file.absolute().parent
        passed = []
        found = None
        for one in (folder, *folder.parents):
            if one in self._by_folder:
                found = self._by_folder[one]
                break
            passed.append(one)
            if not is_inside(one, self.top):
                break
            if (one / PROJECT_FILE).is_file():
                found = _read(one, self.top)
                break
        self._by_folder |= dict.fromkeys(passed, found)
        return found


def _read(folder: Path, top: Path) -> DbtProject:
    """The project of a folder; dbt reports a file that cannot be read."""
    read = read_text(folder / PROJECT_FILE, top=top)
    node = parse_yaml(read).node if isinstance(read, SourceText) else None
    content = None if node is None else to_data(node)
    data = content if isinstance(content, dict) else {}
    name, given, target = str(data.get("name") or ""), data.get("vars"), data.get("target-path")
    variables: dict[str, Any] = {}
    if isinstance(given, dict):
        # The variables of the package itself are read before those of the whole project.
        own = given.get(name)
        variables = {**given, **(own if isinstance(own, dict) else {})}
    return DbtProject(folder, name, dict(_values(variables)), str(target or "target"))


def _values(variables: Mapping[Any, Any]) -> Iterator[tuple[str, Value]]:
    for name, data in variables.items():
        parts = list(_parts(data))
        if len(parts) < _MOST_PARTS and sum(len(str(part)) for part in parts) < _MOST_CHARACTERS:
            yield variable_key(str(name)), _value(data)


def _parts(data: Any) -> Iterator[Any]:
    waiting = [data]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        at = waiting.pop()
        if isinstance(at, dict):
            waiting += [*at.keys(), *at.values()]
        elif isinstance(at, list):
            waiting += at
        yield "" if isinstance(at, (dict, list)) else at


def _value(data: Any) -> Value:
    if isinstance(data, dict):
        return Items(tuple(map(_value, data.values())), tuple(map(_value, data)))
    if isinstance(data, list):
        return Items(tuple(map(_value, data)))
    text = "" if data is None else str(data)
    # A template in the value of a variable is text, which dbt does not render.
    return SqlFragment(text, [0] * len(text))
