"""A class-data archive for Spark's JVM, which shortens every start.

Without one, Spark's JVM spends most of its first seconds reading some ten thousand classes from jars. Java's
application class-data sharing (JEP 350) writes them into a file when a JVM ends, and later JVMs map that
file.

Creating it takes about half a minute of one processor, so it is done once, by a separate process at low
priority, after the command has ended.  The file's name is a digest of everything that it depends on (Java,
Spark, jars, flags), so an upgrade creates another one.  It is written to a temporary name and renamed, and
its size and its first and last bytes are recorded: Java ignores an archive of other jars, but crashes on one
that is truncated.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from icemigrate.frozen import Frozen
from icemigrate.spark.jars import JarLocations, cache_folder
from icemigrate.system.process import search_path

VARIABLE = "ICEMIGRATE_ARCHIVE"
"""``off``: no archive is used or made."""

_SAMPLE = 1 << 16
_KEEP_SECONDS = 90 * 86_400


class ClassArchive(Frozen):
    """The location of one archive in the user's cache; it need not exist."""

    path: Path

    @property
    def note(self) -> Path:
        """The file with the archive's expected size, and its first and last bytes."""
        return self.path.with_suffix(".json")

    @property
    def unsealed(self) -> Path:
        """The file that a JVM writes, before it is moved to its final name."""
        return self.path.with_suffix(".new")

    @property
    def lock(self) -> Path:
        """The file that a process locks while it makes the archive."""
        return self.path.with_suffix(".lock")

    @property
    def crash_report(self) -> Path:
        """Where Java writes about a JVM that broke down with the archive."""
        return self.path.with_suffix(".crash")

    def options(self) -> str:
        """The JVM's options to use it."""
        # Without `disable` Java would print a warning for an archive that does not fit; without an explicit
        # path, the report of a JVM that a damaged archive crashes would be written to the user's folder.
        return (
            f"-XX:SharedArchiveFile={self.path} -Xshare:auto -Xlog:disable -XX:ErrorFile={self.crash_report}"
        )

    def is_intact(self) -> bool:
        """Whether it exists and is complete, according to its size and its first and last bytes."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            return bool(note == _ends(self.path))
        except (OSError, ValueError):
            return False

    def seal(self, made: Path) -> None:
        """Move a new archive to its final name, and record its size; only in a block of :meth:`claim`."""
        note = json.dumps(_ends(made))
        made.replace(self.path)
        beside = self.note.with_suffix(".note")
        beside.write_text(note, encoding="utf-8")
        beside.replace(self.note)

    def discard(self) -> None:
        """Take it away, since a JVM did not start with it."""
        for path in (self.note, self.path, self.crash_report):
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def claim(self) -> Iterator[Path | None]:
        """A block in which no other process creates the archive.

        The system releases the lock of a process that was killed.

        :returns: where to write it; ``None`` if another process has the lock, the archive exists already, or
            the cache cannot be written.
        """
        with contextlib.ExitStack() as stack:
            made = None
            with contextlib.suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(self.lock.open("wb"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Under the lock, a file with this name is what a killed process left.
                self.unsealed.unlink(missing_ok=True)
                made = None if self.is_intact() else self.unsealed
            try:
                yield made
            finally:
                if made is not None:
                    made.unlink(missing_ok=True)


def _ends(path: Path) -> dict[str, object]:
    """Size, and a digest of the beginning and the end: a damaged file is cut short or half written."""
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_SAMPLE))
        file.seek(max(0, size - _SAMPLE))
        digest.update(file.read(_SAMPLE))
    return {"size": size, "ends": digest.hexdigest()}


def archive_for(
    java_home: Path, java_version: str, spark: str, jars: Sequence[Path], flags: str
) -> ClassArchive:
    """The archive of one combination of Java, Spark, jars and flags."""
    parts = [str(java_home), java_version, spark, flags]
    for jar in jars:
        stat = jar.stat()
        parts.append(f"{jar} {stat.st_size} {stat.st_mtime_ns}")
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    return ClassArchive(cache_folder() / f"spark-{key}.jsa")


def is_wanted() -> bool:
    """Whether archives are used on this machine."""
    return os.environ.get(VARIABLE, "") != "off"


def make_later(archive: ClassArchive, java_home: Path, located: JarLocations) -> None:
    """Start a process that creates the archive and outlives this one; it prints nothing."""
    order = json.dumps(
        {
            "path": str(archive.path),
            "jars": [str(jar) for jar in located.files],
            "on_class_path": located.on_class_path,
        }
    )
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", "icemigrate.spark.class_archive_creator", order],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # `-m` searches modules in the working directory first, which may be a repository.
            cwd="/",
            env=_environment(java_home),
        )


def _environment(java_home: Path) -> Mapping[str, str]:
    return {**os.environ, "PATH": search_path(), "JAVA_HOME": str(java_home), VARIABLE: "off"}


def remove_old_archives(keep: ClassArchive) -> None:
    """Remove archives that were not used for a season: each has about 170 MB."""
    for path in keep.path.parent.glob("spark-*.jsa"):
        with contextlib.suppress(OSError):
            if path != keep.path and time.time() - path.stat().st_atime > _KEEP_SECONDS:
                old = ClassArchive(path)
                old.discard()
                old.lock.unlink(missing_ok=True)
