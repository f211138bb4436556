"""``init`` and ``new``: the files that a project begins with, and the next one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icemigrate.app.next_file import next_name, put, schema_path
from icemigrate.declare.scaffold import init_files, new_text, write_new
from icemigrate.declare.source import shown_path
from icemigrate.errors import UsageError
from icemigrate.files.boundary import repository_top
from icemigrate.project import Project, safe_name
from icemigrate.project.reading import FILE_NAME

_NAME = "icemigrate"
_WITHOUT_USER = re.compile(r"^(https?://)[^/@]*@")
"""A password that somebody typed for pip is not to be committed."""


def init(folder: Path) -> tuple[tuple[str, bool], ...]:
    """Begin a project.  Files that are there already are left as they are.

    :returns: each file, and whether it is new.
    :raises UsageError: there is a project file already.
    :raises IcemigrateError: a file cannot be written.
    """
    root = folder.absolute()
    if os.path.lexists(root / FILE_NAME):
        raise UsageError(
            f"`{shown_path(root / FILE_NAME)}` is there already", 'go on with `icemigrate new "what it does"`'
        )
    files = init_files(safe_name(root), source=installed_source())
    missing = {name: text for name, text in files.items() if not os.path.lexists(root / name)}
    write_new(root, missing, repository_top(root))
    return tuple((shown_path(root / name), name in missing) for name in files)


def installed_source() -> str | None:
    """What pip would install this very icemigrate from, as pip itself noted when it did.

    ``None`` where that says nothing to another machine: a folder here, or some package index.
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
    """A requirement for what stands in a ``direct_url.json``; ``None`` for none."""
    url = _WITHOUT_USER.sub(r"\1", str(noted.get("url", "")))
    # A quote would end the text that it is written into; no address needs one.
    if not url.startswith(("https://", "http://", "ssh://")) or any(c in url for c in "\"'\\ "):
        return None
    vcs = noted.get("vcs_info")
    return f"{_NAME} @ {vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else f"{_NAME} @ {url}"


def new(project: Project, description: str) -> str:
    """Write the next numbered migration file, and note it in the lock file.

    :returns: its path, as the user would type it.
    :raises UsageError: the description gives no name for a file.
    :raises IcemigrateError: the folder or the file cannot be written.
    """
    name = next_name(project, description)
    return put(project, name, new_text(description, schema_path(project)))
