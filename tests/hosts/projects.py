"""Repositories for the tests of what runs at code hosts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIRST = """\
description: Create the orders
tables:
  - name: shop.orders
    description: One row for each order
    columns: [{name: id, type: long, required: true}, {name: note, type: string}]
"""
SECOND = """\
description: Drop the note
tables: [{name: shop.orders, drop_columns: [note]}]
"""
_GIT = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")


def git(folder: Path, *args: str) -> None:
    """Run git, as nobody in particular."""
    subprocess.run(["git", *_GIT, *args], cwd=folder, check=True)


def commit(folder: Path, message: str) -> None:
    """Commit all that is there."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)


def programs(folder: Path) -> Path:
    """A folder that holds the command of this environment and its Python, as installing puts them there."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "icemigrate"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m icemigrate.cli "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return folder
