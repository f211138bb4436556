"""The checkpoint of a stream on a remote storage, which Spark gets as a local copy.

Spark writes which segments a batch has before the batch runs, and that it is complete afterwards.  The copy
is saved before a batch changes a table, so that a repeated batch has the same segments.  What the storage has
decides: a batch whose completion is not saved is repeated.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from icemigrate.errors import EngineError
from icemigrate.pipeline.stream_checkpoint import source_folder, unreadable_checkpoint, unwritable_checkpoint
from icemigrate.wal.storage_path import AnyPath, StoragePath


class StreamCheckpoint:
    """A checkpoint that Spark writes itself.

    :ivar folder: that Spark gets.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self) -> None:
        """Save what Spark has written."""

    def close(self) -> None:
        """Remove the copy."""


class CheckpointCopy(StreamCheckpoint):
    """A local copy of a checkpoint on a remote storage.

    :param sources: how many sources the stream has.
    :raises EngineError: the checkpoint cannot be read.
    """

    def __init__(self, remote: StoragePath, sources: int = 1) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="icemigrate-checkpoint-")))
        # In the order in which they are saved: a batch begins when its offset is saved.
        self._folders = (*map(source_folder, range(sources)), "commits", "offsets")
        self._remote, self._saved, self._lock = remote, set[str](), Lock()
        try:
            for name in self._remote_names():
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes((remote / name).read_bytes())
                self._saved.add(name)
        except OSError as error:
            self.close()
            raise unreadable_checkpoint(remote, error) from error

    def save(self) -> None:
        """Write new files to the storage, and remove those that Spark removed.

        :raises EngineError: it cannot be written, or another process wrote it.
        """
        with self._lock:
            names = self._local_names()
            new = [name for name in names if name not in self._saved]
            if not new:
                return
            try:
                self._require_own(new)
                for name in new:
                    (self._remote / name).write_bytes((self.folder / name).read_bytes())
                    self._saved.add(name)
                for name in self._saved.difference(names):
                    (self._remote / name).unlink(missing_ok=True)
                    self._saved.remove(name)
            except OSError as error:
                raise unwritable_checkpoint(self._remote, error) from error

    def close(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _require_own(self, new: list[str]) -> None:
        """Refuse to continue a checkpoint that another process continued meanwhile."""
        if not any(name.startswith("offsets/") for name in new):
            return
        if taken := set(new).intersection(self._remote_names()):
            raise EngineError(
                f"another process wrote `{min(taken)}` to the checkpoint {self._remote}",
                "drain a log with one process",
            )

    def _remote_names(self) -> list[str]:
        return _names(self._remote, self._folders)

    def _local_names(self) -> list[str]:
        return _names(self.folder, self._folders)


def _names(checkpoint: AnyPath, folders: Sequence[str]) -> list[str]:
    """The files of Spark in folders of a checkpoint, in the order in which they are saved.

    They are listed in the reverse order: with an offset, there is what was written before it.
    """
    found = list[str]()
    for folder in reversed(("", *folders)):
        prefix = f"{folder}/" if folder else ""
        try:
            names = sorted(path.name for path in (checkpoint / folder if folder else checkpoint).iterdir())
        except FileNotFoundError:
            continue
        # Hidden files are parts and checksums of Hadoop's local file system.
        found[:0] = [prefix + name for name in names if _is_of_spark(folder, name)]
    return found


def _is_of_spark(folder: str, name: str) -> bool:
    return name.removesuffix(".compact").isdigit() if folder else name == "metadata"


def stream_checkpoint(checkpoint: AnyPath, sources: int = 1) -> StreamCheckpoint:
    """The folder that Spark gets for a checkpoint.

    :param sources: how many sources the stream has.
    :raises EngineError: a remote one cannot be read.
    """
    if isinstance(checkpoint, Path):
        return StreamCheckpoint(checkpoint)
    return CheckpointCopy(checkpoint, sources)
