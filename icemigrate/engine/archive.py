"""A class-data archive for Spark's JVM: what it loads and verifies at every start, kept ready to be mapped.

Started without one, Spark's JVM spends most of its first seconds reading some ten thousand classes out of
jars.  Java's application class-data sharing (JEP 350) writes them into a file when a JVM ends, and later JVMs
map that file.  Making it takes about half a minute of one processor, so it is done once, by a process of its
own at low priority, after the command that wanted it has ended.

The file's name is a digest of everything that it depends on (Java, Spark, jars, flags), so an upgrade makes
another one.  It is written beside its place and renamed, and a note of its size and of its ends is kept:
Java ignores an archive that was made for other jars, but is brought down by one that is cut short.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from icemigrate.frozen import Frozen
from icemigrate.programs import search_path

VARIABLE = "ICEMIGRATE_ARCHIVE"
"""``off``: no archive is used or made."""

_SAMPLE = 1 << 16
_LOCK_SECONDS = 900
_KEEP_SECONDS = 90 * 86_400


class Archive(Frozen):
    """One archive's place in the user's cache; it need not be there yet."""

    path: Path

    @property
    def note(self) -> Path:
        """The file that says what the archive must look like."""
        return self.path.with_suffix(".json")

    @property
    def lock(self) -> Path:
        """The file that is there while somebody makes the archive."""
        return self.path.with_suffix(".lock")

    @property
    def crash_report(self) -> Path:
        """Where Java writes about a JVM that broke down with the archive."""
        return self.path.with_suffix(".crash")

    def options(self) -> str:
        """What the JVM is given to use it."""
        # Without `disable` Java would print a warning where the archive does not fit; without a place of its
        # own, the report of a JVM that a damaged archive brings down would lie in the user's folder.
        return (
            f"-XX:SharedArchiveFile={self.path} -Xshare:auto -Xlog:disable -XX:ErrorFile={self.crash_report}"
        )

    def is_sound(self) -> bool:
        """Whether it is there and whole, as far as its size and its two ends tell."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            return bool(note == _ends(self.path))
        except (OSError, ValueError):
            return False

    def seal(self, made: Path) -> None:
        """Put an archive that was just made in its place, with its note."""
        note = json.dumps(_ends(made))
        made.replace(self.path)
        beside = self.note.with_suffix(f".{os.getpid()}")
        beside.write_text(note, encoding="utf-8")
        beside.replace(self.note)

    def discard(self) -> None:
        """Take it away, since a JVM did not start with it."""
        for path in (self.note, self.path, self.crash_report):
            path.unlink(missing_ok=True)

    def claim(self) -> bool:
        """Whether this process may make it; no other one may then, unless this one dies and time passes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            if time.time() - self.lock.stat().st_mtime > _LOCK_SECONDS:
                self.lock.unlink()
        try:
            self.lock.touch(exist_ok=False)
        except OSError:
            return False
        return True


def _ends(path: Path) -> dict[str, object]:
    """Size, and a digest of the beginning and the end: a damaged file is cut short or half written."""
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_SAMPLE))
        file.seek(max(0, size - _SAMPLE))
        digest.update(file.read(_SAMPLE))
    return {"size": size, "ends": digest.hexdigest()}


def archive_for(java_home: Path, java_version: str, spark: str, jars: Sequence[Path], flags: str) -> Archive:
    """The archive of one combination of Java, Spark, jars and flags."""
    parts = [str(java_home), java_version, spark, flags]
    for jar in jars:
        stat = jar.stat()
        parts.append(f"{jar} {stat.st_size} {stat.st_mtime_ns}")
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    return Archive(_folder() / f"spark-{key}.jsa")


def is_wanted() -> bool:
    """Whether archives are used on this machine."""
    return os.environ.get(VARIABLE, "") != "off"


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "icemigrate"


def make_later(archive: Archive, java_home: Path, jars: Sequence[Path]) -> None:
    """Have the archive made by a process that outlives this one; it prints nothing."""
    order = json.dumps(
        {"path": str(archive.path), "java": str(java_home), "jars": [str(jar) for jar in jars]}
    )
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", "icemigrate.engine.archive_maker", order],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # `-m` looks for modules in the working directory first, which may be a repository.
            cwd="/",
            env=_environment(java_home),
        )


def _environment(java_home: Path) -> Mapping[str, str]:
    return {**os.environ, "PATH": search_path(), "JAVA_HOME": str(java_home), VARIABLE: "off"}


def sweep(keep: Archive) -> None:
    """Take away archives that nobody has used for a season: each is some 170 MB."""
    for path in keep.path.parent.glob("spark-*.jsa"):
        with contextlib.suppress(OSError):
            if path != keep.path and time.time() - path.stat().st_atime > _KEEP_SECONDS:
                Archive(path).discard()
