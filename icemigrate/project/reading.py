"""``icemigrate.yaml`` → :class:`Project`, or every mistake in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from icemigrate.declare.composing import parse
from icemigrate.declare.nodes import Mapping, Scalar
from icemigrate.declare.schema import load_schema
from icemigrate.declare.source import Source, read_source
from icemigrate.declare.validate import validate
from icemigrate.declare.values import duration, entries, items, mapping, text
from icemigrate.diagnostics import Diagnostic, has_errors, sort_key
from icemigrate.errors import UsageError, why
from icemigrate.files.boundary import OutsideRepository, repository_top, resolved, user_path
from icemigrate.frozen import Frozen
from icemigrate.project.environments import build_environment, embedded_environment
from icemigrate.project.impact import sql_files
from icemigrate.project.mistakes import project_mistakes
from icemigrate.project.rules import rule_mistakes, rule_settings
from icemigrate.project.values import Project

FILE_NAME = "icemigrate.yaml"
_OTHER_NAME = "icemigrate.yml"
DEFAULT_HISTORY = "icemigrate.history"


class ProjectRead(Frozen):
    """What became of a project file; ``project`` is ``None`` exactly when there is an error."""

    project: Project | None
    diagnostics: tuple[Diagnostic, ...]


def load_project(path: Path | None = None, directory: Path | None = None) -> ProjectRead:
    """Find and read the project file; without one, everything is as by default.

    :param path: the file, or the folder that holds it; it must exist.
    :param directory: where to look when no path is given; the working directory when omitted.
    :raises UsageError: when ``path`` does not exist.
    """
    if path is not None:
        _require_inside(path)
    if path is not None and path.is_dir():
        path, directory = None, path
    if path is None:
        directory = (directory or Path.cwd()).absolute()
        found = [directory / name for name in (FILE_NAME, _OTHER_NAME) if os.path.lexists(directory / name)]
        if not found:
            return ProjectRead(default_project(directory), ())
        path = found[0]
    elif not path.exists():
        raise UsageError(f"there is no project file `{path}`", "`icemigrate init` writes one")
    source = read_source(path, top=repository_top(path.absolute().parent))
    if isinstance(source, Diagnostic):
        return ProjectRead(None, (source,))
    return read_project(source, path.absolute().parent)


def _require_inside(path: Path) -> None:
    """Refuse a path in the repository of the working directory that leads out of it.

    :raises UsageError: it does.
    """
    absolute, top = user_path(path)
    if top is None:
        return
    try:
        resolved(absolute, top)
    except OutsideRepository as error:
        raise UsageError(f"`{path}` is not read: {why(error)}", "name the real path") from error


def default_project(root: Path) -> Project:
    """The project of a folder without a project file."""
    environment = embedded_environment(root)
    return Project(
        safe_name(root), root, root / "migrations", {environment.name: environment}, environment.name
    )


def safe_name(folder: Path) -> str:
    """A project's name from its folder: lower case, ``_`` for all but letters and digits, no digit first.

    ``Market Data (new)`` → ``market_data_new``; ``2026`` → ``p_2026``; a nameless folder → ``project``.
    """
    words = re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).strip("_")
    return f"p_{words}" if words[:1].isdigit() else words or "project"


def read_project(source: Source, root: Path) -> ProjectRead:
    """Read a project file's text; an empty file is a project with all defaults.

    :param root: the absolute folder that relative paths begin at.
    """
    parsed = parse(source)
    node = parsed.node
    if node is None:
        project = default_project(root) if parsed.readable else None
        return ProjectRead(project, parsed.diagnostics)
    wrong = (*parsed.diagnostics, *validate(node, load_schema("project")))
    if wrong:
        return ProjectRead(None, tuple(sorted(wrong, key=sort_key)))
    content = mapping(node)
    wrong = (*parsed.warnings, *project_mistakes(content), *rule_mistakes(content), *_outside(content, root))
    diagnostics = tuple(sorted(wrong, key=sort_key))
    if has_errors(diagnostics):
        return ProjectRead(None, diagnostics)
    return ProjectRead(_build(content, source.path, root), diagnostics)


def _outside(content: Mapping, root: Path) -> Iterator[Diagnostic]:
    """The folder of migrations, where it lies outside of the repository."""
    node = content.get("migrations")
    if not isinstance(node, Scalar):
        return
    try:
        resolved(root / node.text, repository_top(root))
    except OutsideRepository as error:
        message = f"the folder `{node.text}` is not read: {why(error)}"
        hint = "put the migrations into the repository of the project file"
        yield Diagnostic("outside-repository", message, node.place, hint)
    except OSError:
        return  # whoever opens it says what is wrong with it


def _build(content: Mapping, shown: str, root: Path) -> Project:
    fallback = default_project(root)
    nodes = {key.text: value for key, value in entries(content.get("environments"))}
    environments = {name: build_environment(name, mapping(value), root) for name, value in nodes.items()}
    written = {key.text: text(value) for key, value in content.entries if isinstance(value, Scalar)}
    chosen = written.get("default_environment")
    if chosen is None:
        known = tuple(environments or fallback.environments)
        chosen = "local" if "local" in known else known[0] if len(known) == 1 else None
    return Project(
        written.get("project", fallback.name),
        root,
        root / written.get("migrations", "migrations"),
        environments or fallback.environments,
        chosen,
        {
            key.text: tuple(text(item) for item in items(value))
            for key, value in entries(content.get("lists"))
        },
        written.get("history", DEFAULT_HISTORY),
        shown,
        nodes,
        rule_settings(content),
        _trash_max_age(content, fallback.trash_max_age),
        sql_files(content),
        frozenset(text(item) for item in items(content.get("public_variables"))),
    )


def _trash_max_age(content: Mapping, default: timedelta) -> timedelta:
    trash = content.get("trash")
    max_age = None if trash is None else mapping(trash).get("max_age")
    return default if max_age is None else duration(max_age)
