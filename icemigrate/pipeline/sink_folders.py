"""How the Parquet sink writes, publishes and removes files: in a local folder, or on a remote storage.

A local file is renamed.  An object has one name for its life, so it is copied, and the folder of the staged
ones is removed afterwards: a process that ends between both leaves files that readers pass over.
"""

from __future__ import annotations

import filecmp
import shutil
from contextlib import suppress
from pathlib import Path

from icemigrate.system.file_writes import create_durable, make_durable_folder, sync_folder
from icemigrate.wal.storage_path import AnyPath, StoragePath


def write_new(path: AnyPath, content: bytes) -> None:
    """Write a file whose name no other one has.

    :raises OSError: it cannot be written.
    """
    if isinstance(path, StoragePath):
        path.write_bytes(content)
    else:
        create_durable(path, content)


def publish_file(path: AnyPath, final: AnyPath, *, may_exist: bool) -> None:
    """Give a staged file its name; one with the same content stays, because a table may have adopted it.

    :param may_exist: whether an earlier attempt may have published a file of the name.
    :raises OSError: it cannot be written.
    """
    if isinstance(path, StoragePath):
        assert isinstance(final, StoragePath), "both are in one folder"
        if not may_exist or not _has_content(final, path.read_bytes()):
            path.copy(final)
        return
    assert isinstance(final, Path), "both are in one folder"
    make_durable_folder(final.parent)
    if final.is_file() and filecmp.cmp(path, final, shallow=False):
        path.unlink()
        return
    path.replace(final)
    sync_folder(final.parent)


def remove_staged(folder: AnyPath) -> None:
    """Remove the staged files of a batch, as far as that is possible: readers pass over them."""
    if isinstance(folder, StoragePath):
        with suppress(OSError):
            folder.remove_folder()
        return
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # another batch has files there
        folder.parent.rmdir()


def _has_content(path: StoragePath, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False
