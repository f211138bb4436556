"""An object storage without a server: a local folder in which files have no folders, and appear whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

from icemigrate.wal import storage_path
from icemigrate.wal.storage_path import StoragePath

_CHANGES = ("open_output_stream", "delete_file", "copy_file", "create_dir", "delete_dir", "move")


class ObjectStorage:
    """The file system of a bucket.

    :ivar before_change: called before each call that changes a file.
    :ivar is_away: whether the server does not answer.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = pyarrow.fs.SubTreeFileSystem(str(folder), pyarrow.fs.LocalFileSystem())
        self.before_change: Callable[[], None] = lambda: None
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        if self.is_away:
            raise OSError("AWS Error NETWORK_CONNECTION during HeadObject operation: no route; Details: …")
        if name not in _CHANGES:
            return getattr(self._files, name)
        self.before_change()

        def call(*paths: str, **options: Any) -> Any:
            for path in paths:
                (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            return getattr(self._files, name)(*paths, **options)

        return call


def use_storage(monkeypatch: pytest.MonkeyPatch, folder: Path) -> ObjectStorage:
    """Let every URL be a file below a folder."""
    made = ObjectStorage(folder)
    monkeypatch.setattr(storage_path, "file_system", lambda root, _settings: (made, root.partition("://")[2]))
    return made


def bucket(name: str = "log") -> StoragePath:
    """A folder of a bucket."""
    return StoragePath(f"s3://telemetry/{name}")
