"""``init`` and ``new``: the files that a project begins with, and the next one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icemigrate.commands.next_migration_file import next_name, schema_path, write_next_file
from icemigrate.errors import GitError, UsageError
from icemigrate.files.parse.source_text import shown_path
from icemigrate.files.write.scaffold import CI_FILES, init_files, new_text, write_new
from icemigrate.project import Project, safe_name
from icemigrate.project.project_reader import PROJECT_FILE_NAME, project_above
from icemigrate.system.repository_boundary import repository_top
from icemigrate.vcs.git import open_repository

_NAME = "icemigrate"
_WITHOUT_USER = re.compile(r"^(https?://)[^/@]*@")
"""A URL without the user and password that were typed for pip, which must not be committed."""


def init(folder: Path, ci: str | None = None, *, is_empty: bool = False) -> tuple[tuple[str, bool], ...]:
    """Create a project.  Existing files stay as they are.

    :param ci: ``github``, ``gitlab`` or ``none``; by default that of the Git remote.
    :param is_empty: whether the first migration is left out.
    :returns: each file, and whether it is new.
    :raises UsageError: there is a project file already, or the folder is inside a project.
    :raises IcemigrateError: a file cannot be written.
    """
    root = folder.absolute()
    if os.path.lexists(root / PROJECT_FILE_NAME):
        raise UsageError(
            f"`{shown_path(root / PROJECT_FILE_NAME)}` already exists",
            'go on with `icemigrate new "what it does"`',
        )
    existing = next(folder for folder in (root, *root.parents) if folder.is_dir())
    if (outer := project_above(root, existing)) is not None:
        raise UsageError(
            f"`{shown_path(root)}` is inside the project of `{shown_path(outer / PROJECT_FILE_NAME)}`",
            f"choose a folder outside `{shown_path(outer)}`",
        )
    top = repository_top(existing)
    files = init_files(
        safe_name(root),
        source=installed_source() or "",
        ci=ci or _code_host(existing, top),
        is_empty=is_empty,
    )
    missing = {name: text for name, text in files.items() if not os.path.lexists(root / name)}
    write_new(root, missing, top)
    return tuple((shown_path(root / name), name in missing) for name in files)


def _code_host(folder: Path, top: Path) -> str:
    """The code host of the Git remote `origin`, else ``none``; GitHub where there is no remote."""
    try:
        url = open_repository(folder, top).remote_url("origin")
    except GitError:
        url = None
    if url is None:
        return "github"
    # `https://user@host/path`, `ssh://git@host:22/path` or `git@host:path`
    host = url.rpartition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
    labels = re.split(r"[.-]", host)
    return next((name for name in CI_FILES if name in labels), "none")


def unread_ci_file(folder: Path) -> str | None:
    """The CI file of a project below the top of its repository: code hosts read it only at the top."""
    root = folder.absolute()
    if repository_top(root) == Path(os.path.realpath(root)):
        return None
    return next((shown_path(root / name) for name in CI_FILES.values() if os.path.lexists(root / name)), None)


def installed_source() -> str | None:
    """The requirement from which pip installed this icemigrate, as pip recorded it.

    ``None`` where it is of no use on another machine: a local folder, or a package index.
    (https://packaging.python.org/specifications/direct-url/)
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = json.loads(distribution(_NAME).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    return source_of(noted)


def source_of(noted: Mapping[str, Any]) -> str | None:
    """The requirement in a ``direct_url.json``; ``None`` without one."""
    url = _WITHOUT_USER.sub(r"\1", str(noted.get("url", "")))
    # A quote would end the text that it is written into; no address needs one.
    if (
        not url.startswith(("https://", "http://", "ssh://"))
        or any(c in url for c in "\"'\\ ")
        or not url.isprintable()
    ):
        return None
    vcs = noted.get("vcs_info")
    return f"{_NAME} @ {vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else f"{_NAME} @ {url}"


def new(project: Project, description: str) -> str:
    """Write the next numbered migration file, and add it to the lock file.

    :returns: its path, as the user would type it.
    :raises UsageError: the description has no character that a file name can have.
    :raises IcemigrateError: the folder or the file cannot be written.
    """
    name = next_name(project, description)
    return write_next_file(project, name, new_text(description, schema_path(project)))
