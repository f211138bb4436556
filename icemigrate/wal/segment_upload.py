"""Uploads the segments of a spool, which is a log in a local folder, to a log on a remote storage.

A remote storage appends to no file.  So a writer has its open segment in the spool, and a segment is uploaded
whole once it is sealed, and then removed from the spool.  A process that ends in between uploads it again,
under the same name, which readers have read once.
"""

from __future__ import annotations

import threading
from pathlib import Path

from icemigrate.wal.log_folder import (
    LogError,
    remove_segment,
    seal_abandoned,
    sealed_segments,
    upload_segment,
)
from icemigrate.wal.storage_path import StoragePath

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 60.0


class SegmentUpload:
    """A thread that uploads what is sealed in a spool; any number of processes can share the spool.

    What an earlier process left there is sealed and uploaded, too.

    :param spool: an existing folder.
    :param log: the folder of the remote log.
    """

    def __init__(self, spool: Path, log: StoragePath) -> None:
        self._spool, self._log = spool, log
        self._is_uploading = threading.Lock()
        self._work, self._is_stopped = threading.Event(), threading.Event()
        seal_abandoned(spool)
        self._work.set()
        self._thread = threading.Thread(target=self._run, name="icemigrate-wal-upload", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Upload what is sealed now, in the background; a failure is tried again."""
        self._work.set()

    def finish(self) -> None:
        """Upload what is sealed now, and wait for it.

        :raises LogError: a segment could not be read or written; it stays in the spool.
        """
        with self._is_uploading:
            for path in sealed_segments(self._spool):
                assert isinstance(path, Path)
                try:
                    content = path.read_bytes()
                except FileNotFoundError:
                    continue  # another writer that shares the spool uploaded it
                upload_segment(content, self._log / path.name)
                remove_segment(path)

    def stop(self) -> None:
        """End the thread."""
        self._is_stopped.set()
        self._work.set()

    def _run(self) -> None:
        wait_s = _FIRST_WAIT_SECONDS
        while True:
            self._work.wait()
            self._work.clear()
            if self._is_stopped.is_set():
                return
            try:
                self.finish()
            except (LogError, OSError):
                # The storage is away: the spool has the segments.
                self._work.wait(wait_s)
                self._work.set()
                wait_s = min(2 * wait_s, _LONGEST_WAIT_SECONDS)
            else:
                wait_s = _FIRST_WAIT_SECONDS
