"""Which segments of a remote log a stream found, in lists that are numbered from 0.

The folder ``segments`` of the checkpoint has a file for each list, which Spark's own source of files has in
``sources/0``.  An offset of the stream is the number of a list.  A list is written before the offset that
names it, and never changes, so that a repeated batch has the same segments.  Names stay in the lists after
their segments are removed: a segment that a writer uploads twice is read once.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from icemigrate.errors import EngineError
from icemigrate.pipeline.stream_checkpoint import LISTS_FOLDER, unreadable_checkpoint, unwritable_checkpoint
from icemigrate.wal.storage_path import AnyPath, replace_file

_SUFFIX, _MERGED = ".json", ".merged.json"
_LISTS_PER_FILE = 50
"""So many lists are merged into one file."""
_ATTEMPTS = 5


class SegmentLists:
    """The lists of a checkpoint.

    :param checkpoint: of the stream, also where Spark has a copy of it.
    """

    def __init__(self, checkpoint: AnyPath) -> None:
        self._checkpoint, self._folder = checkpoint, checkpoint / LISTS_FOLDER

    def read(self) -> dict[int, list[str]]:
        """The names of the segments, by the number of the list.

        :raises EngineError: a list cannot be read.
        """
        try:
            for _ in range(_ATTEMPTS):
                try:
                    return self._read()
                except FileNotFoundError:
                    continue  # it was merged into another one meanwhile
            return self._read()
        except OSError as error:
            raise unreadable_checkpoint(self._checkpoint, error) from error
        except msgspec.DecodeError as error:
            raise unreadable_checkpoint(self._checkpoint, "a list of segments is damaged") from error

    def names_until(self, number: int) -> frozenset[str]:
        """The names in the lists up to a number.

        :raises EngineError: a list cannot be read.
        """
        return frozenset(name for one, names in self.read().items() if one <= number for name in names)

    def add(self, number: int, names: Iterable[str]) -> None:
        """Write a list.

        :param number: the one after the last.
        :raises EngineError: it cannot be written, or another process wrote it.
        """
        try:
            if any(_last_number(path) >= number for path in self._paths()):
                raise EngineError(
                    f"another process wrote list {number} of segments to the checkpoint {self._checkpoint}",
                    "drain a log with one process",
                )
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._folder / f"{number}{_SUFFIX}", msgspec.json.encode({number: list(names)}))
            if number % _LISTS_PER_FILE == _LISTS_PER_FILE - 1:
                self._merge(number)
        except OSError as error:
            raise unwritable_checkpoint(self._checkpoint, error) from error

    def _read(self) -> dict[int, list[str]]:
        found = dict[int, list[str]]()
        for path in self._paths():
            found |= msgspec.json.decode(path.read_bytes(), type=dict[int, list[str]])
        return found

    def _paths(self) -> list[AnyPath]:
        try:
            return [path for path in self._folder.iterdir() if path.name.endswith(_SUFFIX)]
        except FileNotFoundError:
            return []

    def _merge(self, number: int) -> None:
        merged = self._folder / f"{number}{_MERGED}"
        others = [path for path in self._paths() if path.name != merged.name]
        replace_file(merged, msgspec.json.encode(self._read()))
        for path in others:
            path.unlink(missing_ok=True)


def _last_number(path: AnyPath) -> int:
    """The number of the list in a file, or of the last one; -1 where the name is of no list."""
    number = path.name.partition(".")[0]
    return int(number) if number.isdigit() else -1
