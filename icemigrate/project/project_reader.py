"""``icemigrate.yaml`` → :class:`Project`, or every mistake in it."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from icemigrate.diagnostics import Diagnostic, has_errors, sort_key
from icemigrate.errors import IcemigrateError, Mistakes, UsageError, os_error_reason
from icemigrate.files.parse.json_schemas import load_schema
from icemigrate.files.parse.schema_validation import validate_node
from icemigrate.files.parse.source_text import SourceText, read_source, shown_path
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlScalar
from icemigrate.files.read.node_values import (
    as_mapping,
    list_items,
    mapping_entries,
    read_duration,
    scalar_text,
)
from icemigrate.frozen import Frozen
from icemigrate.project.environments import build_environment, embedded_environment
from icemigrate.project.impact_settings import sql_files
from icemigrate.project.list_settings import list_mistakes, project_lists, with_file_values
from icemigrate.project.pipeline_settings import pipeline_mistakes, pipeline_settings
from icemigrate.project.project_checks import project_mistakes
from icemigrate.project.project_values import Project
from icemigrate.project.rule_settings import rule_mistakes, rule_settings
from icemigrate.system.repository_boundary import (
    GIT_FOLDER,
    OutsideRepository,
    repository_top,
    resolve_inside,
    user_path,
)

PROJECT_FILE_NAME = "icemigrate.yaml"
_OTHER_NAME = "icemigrate.yml"
DEFAULT_HISTORY = "icemigrate.history"


class ProjectReadResult(Frozen):
    """The result of reading a project file; ``project`` is ``None`` exactly when there is an error."""

    project: Project | None
    diagnostics: tuple[Diagnostic, ...]


def load_project(path: Path | None = None, directory: Path | None = None) -> ProjectReadResult:
    """Find and read the project file; without one, all settings have their defaults.

    :param path: the file, or the folder that holds it; it must exist.
    :param directory: where to look when no path is given, and then in the folders above it; the working
        directory when omitted.
    :raises UsageError: when ``path`` does not exist.
    """
    if path is not None:
        _require_inside(path)
    if path is not None and path.absolute().parts[1:2] in (("dev",), ("proc",)):
        # A project is a folder: its migrations and its catalog are beside its file.
        raise UsageError(
            f"`{path}` is not a project file", "pass the path of a project file or of its folder"
        )
    if path is not None and path.is_dir():
        path, directory = None, path
    if path is None:
        directory = (directory or project_folder(Path.cwd())).absolute()
        found = [
            directory / name for name in (PROJECT_FILE_NAME, _OTHER_NAME) if os.path.lexists(directory / name)
        ]
        if not found:
            return ProjectReadResult(default_project(directory), ())
        path = found[0]
    elif not path.exists():
        raise UsageError(f"there is no project file `{path}`", "`icemigrate init` writes one")
    source = read_source(path, top=repository_top(path.absolute().parent))
    if isinstance(source, Diagnostic):
        return ProjectReadResult(None, (source,))
    read = read_project(source, path.absolute().parent)
    if read.project is None:
        return read
    lists, wrong = with_file_values(read.project.lists, read.project.root)
    if wrong:
        return ProjectReadResult(None, tuple(sorted((*read.diagnostics, *wrong), key=sort_key)))
    return ProjectReadResult(dataclasses.replace(read.project, lists=lists), read.diagnostics)


_MARKERS = ("migrations/icemigrate.lock", ".icemigrate/catalog.db")
"""Files that show the folder of a project without a project file."""


def open_project(path: Path | None = None) -> Project:
    """Open the project of a file or a folder; by default of the working directory.

    :raises UsageError: there is no such file.
    :raises Mistakes: the project file has errors.
    """
    found = load_project(path)
    if found.project is None:
        raise Mistakes(found.diagnostics)
    return found.project


def require_project(project: Project) -> None:
    """Refuse a folder that belongs to no project, so that no command takes it for an empty one.

    :raises IcemigrateError: there is neither a project file nor a migrations folder nor an embedded catalog.
    """
    # A project file without any key is one, too.
    names = (PROJECT_FILE_NAME, _OTHER_NAME, *_MARKERS)
    has_marker = any(os.path.lexists(project.root / name) for name in names)
    if project.file is None and not has_marker and not os.path.lexists(project.migrations_dir):
        is_here = project.root == Path.cwd()
        where = "this folder or a folder above it" if is_here else f"`{shown_path(project.root)}`"
        raise IcemigrateError(
            f"there is no icemigrate project in {where}",
            "run `icemigrate init` to create one, or pass its folder with `--project`",
        )


def project_folder(folder: Path) -> Path:
    """The folder of the project that a folder belongs to; the folder itself where it belongs to none.

    That is the nearest one upwards that holds a project file, else the nearest one with other files of a
    project.  The search ends at the top of the repository.  Outside of a repository it ends below the first
    folder of another user, as Git's does: anyone can write a file into `/tmp`.
    """
    here = folder.absolute()
    candidates = [here, *_folders_above(here)]
    for names in ((PROJECT_FILE_NAME, _OTHER_NAME), _MARKERS):
        for candidate in candidates:
            if any(os.path.lexists(candidate / name) for name in names):
                return candidate
    return here


def project_above(folder: Path, existing: Path) -> Path | None:
    """The folder of the project that contains a new one; ``None`` outside of projects.

    :param existing: the nearest folder, upwards from ``folder``, that exists.
    """
    candidates = [existing, *_folders_above(existing)]
    return next(
        (
            one
            for one in candidates
            if one != folder and any(os.path.lexists(one / n) for n in (PROJECT_FILE_NAME, _OTHER_NAME))
        ),
        None,
    )


def _folders_above(here: Path) -> Iterator[Path]:
    top = repository_top(here)
    is_repository = os.path.lexists(top / GIT_FOLDER)
    owner = here.stat().st_uid
    for folder in here.parents:
        if is_repository and not Path(os.path.realpath(folder)).is_relative_to(top):
            return
        is_shared = bool(folder.stat().st_mode & stat.S_IWOTH)
        if not is_repository and (is_shared or folder.stat().st_uid != owner):
            return
        yield folder


def _require_inside(path: Path) -> None:
    """Refuse a path in the repository of the working directory that leads out of it.

    :raises UsageError: it does.
    """
    absolute, top = user_path(path)
    if top is None:
        return
    try:
        resolve_inside(absolute, top)
    except OutsideRepository as error:
        raise UsageError(f"`{path}` is not read: {os_error_reason(error)}", "pass the real path") from error


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


def read_project(source: SourceText, root: Path) -> ProjectReadResult:
    """Read a project file's text; an empty file is a project with all defaults.

    :param root: the absolute folder to which paths are relative.
    """
    parsed = parse_yaml(source)
    node = parsed.node
    if node is None:
        project = default_project(root) if parsed.readable else None
        return ProjectReadResult(project, parsed.diagnostics)
    wrong = (*parsed.diagnostics, *validate_node(node, load_schema("project")))
    if wrong:
        return ProjectReadResult(None, tuple(sorted(wrong, key=sort_key)))
    content = as_mapping(node)
    wrong = (
        *parsed.warnings,
        *project_mistakes(content),
        *rule_mistakes(content),
        *pipeline_mistakes(content),
        *list_mistakes(content),
        *_outside(content, root),
    )
    diagnostics = tuple(sorted(wrong, key=sort_key))
    if has_errors(diagnostics):
        return ProjectReadResult(None, diagnostics)
    return ProjectReadResult(_build(content, source.path, root), diagnostics)


def _outside(content: YamlMapping, root: Path) -> Iterator[Diagnostic]:
    """The error of a migrations folder outside the repository."""
    node = content.get("migrations")
    if not isinstance(node, YamlScalar):
        return
    try:
        resolve_inside(root / node.text, repository_top(root))
    except OutsideRepository as error:
        message = f"the folder `{node.text}` is not read: {os_error_reason(error)}"
        hint = "put the migrations into the repository of the project file"
        yield Diagnostic("outside-repository", message, node.place, hint)
    except OSError:
        return  # the code that opens it reports the error


def _build(content: YamlMapping, shown: str, root: Path) -> Project:
    fallback = default_project(root)
    nodes = {key.text: value for key, value in mapping_entries(content.get("environments"))}
    environments = {name: build_environment(name, as_mapping(value), root) for name, value in nodes.items()}
    written = {
        key.text: scalar_text(value) for key, value in content.entries if isinstance(value, YamlScalar)
    }
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
        project_lists(content),
        written.get("history", DEFAULT_HISTORY),
        shown,
        nodes,
        rule_settings(content),
        _trash_max_age(content, fallback.trash_max_age),
        sql_files(content),
        frozenset(scalar_text(item) for item in list_items(content.get("public_variables"))),
        pipeline=pipeline_settings(content, root),
    )


def _trash_max_age(content: YamlMapping, default: timedelta) -> timedelta:
    trash = content.get("trash")
    max_age = None if trash is None else as_mapping(trash).get("max_age")
    return default if max_age is None else read_duration(max_age)
