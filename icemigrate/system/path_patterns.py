"""The files of a repository that a path, a folder or a pattern matches; links are not followed."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from icemigrate.system.repository_boundary import resolve_inside

_MAGIC = re.compile(r"[*?\[]")
_ANY_FOLDERS = "**"
_LONGEST = 1_000
"""Characters of a pattern. The work for each file grows with them."""


def find_matching_files(
    root: Path, pattern: str, top: Path, skipped: frozenset[str] = frozenset()
) -> list[Path]:
    """The files that a pattern matches, and those inside matched folders, sorted.

    ``*``, ``?`` and ``[…]`` match within one name, ``**`` matches any number of folders.  Hidden names match
    only a pattern that begins with a dot itself.  A link to a folder is followed only where the pattern names
    it before its first wildcard, so a loop of links ends.

    :param root: the folder to which the pattern is relative.
    :param top: the root of the repository.
    :param skipped: names of folders that are not searched.
    :raises OutsideRepository: the pattern begins outside the repository, or a link in it leads there.
    :raises OSError: the pattern is too long, or a folder cannot be listed.
    """
    if len(pattern) > _LONGEST:
        raise OSError(errno.ENAMETOOLONG, f"the pattern has more than {_LONGEST:,} characters")
    parts = Path(pattern).parts
    plain = next((at for at, part in enumerate(parts) if _MAGIC.search(part)), len(parts))
    start = Path(os.path.normpath(Path(root, *parts[:plain])))
    real = resolve_inside(start, top)
    wanted = parts[plain:]
    if not wanted and not real.is_dir():
        return [start] if real.is_file() else []
    return sorted(start / name for name in _below(real, skipped) if _fits(Path(name).parts, wanted))


def _below(folder: Path, skipped: frozenset[str]) -> Iterator[str]:
    """The files inside a folder, by their relative path."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in skipped and not name.startswith(".")]
        for name in names:
            yield os.path.relpath(os.path.join(parent, name), folder)  # noqa: PTH118 (a third of the time)


def _fits(name: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a pattern matches a file, or one of its parents.

    All positions in the pattern that a part of the name can match are followed at once, so the work is
    limited by the product of both lengths.
    """
    if not pattern:
        return not name[-1].startswith(".")
    places = _closed({0}, pattern)
    for at, part in enumerate(name):
        places = _closed(
            {
                place if pattern[place] == _ANY_FOLDERS else place + 1
                for place in places
                if place < len(pattern) and _fits_part(part, pattern[place])
            },
            pattern,
        )
        if len(pattern) in places:
            # Files inside a matched folder match too, except hidden ones.
            return not any(rest.startswith(".") for rest in name[at + 1 :])
    return False


def _closed(places: set[int], pattern: Sequence[str]) -> set[int]:
    """The positions, and those after each ``**``, which also matches no folder."""
    left = list(places)
    while left:
        place = left.pop()
        if place < len(pattern) and pattern[place] == _ANY_FOLDERS and place + 1 not in places:
            places.add(place + 1)
            left.append(place + 1)
    return places


def _fits_part(part: str, pattern: str) -> bool:
    if part.startswith(".") and not pattern.startswith("."):
        return False
    return pattern == _ANY_FOLDERS or fnmatchcase(part, pattern)
