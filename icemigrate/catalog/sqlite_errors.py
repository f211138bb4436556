"""Errors of a SQLite catalog, as one message with what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from icemigrate.errors import CatalogError


@contextmanager
def convert_sqlite_errors(path: Path, action: str = "read") -> Iterator[None]:
    """Convert errors of the database file to messages.

    :param action: what the block does with the file: ``read`` or ``write``.
    :raises CatalogError: the file cannot be read or written.
    """
    try:
        yield
    except PermissionError as error:
        raise _not_allowed(path, action) from error
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise CatalogError(
                f"the catalog {path} is locked by another process",
                "wait until it has finished; `fuser FILE` shows which process it is",
            ) from error
        if path.is_dir():
            raise CatalogError(f"the catalog {path} is a folder, not a SQLite file") from error
        if "not a database" in text:
            raise CatalogError(
                f"the catalog {path} is not a SQLite file", "check the `uri` of the environment's catalog"
            ) from error
        if "unable to open" in text or "readonly" in text:
            raise _not_allowed(path, action) from error
        if "disk is full" in text:
            raise CatalogError(f"the disk of the catalog {path} is full", "free some space") from error
        verb = "read" if action == "read" else "written"
        raise CatalogError(
            f"the catalog {path} cannot be {verb}: {text}",
            "`sqlite3 FILE 'PRAGMA integrity_check'` shows the damage",
        ) from error


def _not_allowed(path: Path, action: str) -> CatalogError:
    needs = {"read": "planning needs the right to read", "write": "`apply` needs the right to write to"}
    return CatalogError(
        f"not allowed to {action} the catalog {path}", f"{needs[action]} the file and its folder"
    )
