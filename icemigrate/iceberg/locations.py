"""The locations of tables' files, and tables that share a folder; pure.

A tool that lists a table's folder and deletes files that the table does not use also deletes the files of
other tables there.  So a table's folder is exclusive only while no other table is at it, in it or above it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName

_PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
"""Properties that move files of a table elsewhere (Iceberg's documentation, "Write properties")."""
_S3 = re.compile(r"s3[an]?://")
_FILE = re.compile(r"file:/+")


class TableLocations(Frozen):
    """Where one table keeps files.

    :param location: the table's own folder, the one that is searched for orphans.
    :param all: that one, those of its properties, and what its metadata names outside of them.
    :param files: of metadata and manifest lists that the table was or is read from.
    :param is_guessed: whether only the path of its metadata file is known.
    """

    name: TableName
    location: str
    all: frozenset[str]
    files: frozenset[str]
    is_guessed: bool = False


def table_locations(
    name: TableName, metadata: Mapping[str, Any], metadata_location: str | None
) -> TableLocations:
    """The locations in a metadata file.

    A table that was moved or renamed has files in its former folder, which its older metadata files and its
    manifest lists show.

    :param metadata: JSON of the file.
    :param metadata_location: of the file itself.
    """
    properties = metadata.get("properties") or {}
    own = [metadata["location"], *(properties[key] for key in _PATHS if properties.get(key))]
    roots = {normalize_location(path) for path in own}
    named = [metadata_location]
    named += [entry.get("metadata-file") for entry in metadata.get("metadata-log") or ()]
    named += [snapshot.get("manifest-list") for snapshot in metadata.get("snapshots") or ()]
    files = frozenset(normalize_location(file) for file in named if file)
    folders = {file.rpartition("/")[0] for file in files}
    strays = {folder for folder in folders if not any(_holds(root, folder) for root in roots)}
    return TableLocations(name, normalize_location(metadata["location"]), frozenset(roots | strays), files)


def unreadable_locations(name: TableName, metadata_location: str) -> TableLocations:
    """The places of a table whose metadata file cannot be read, as far as the file's path shows them.

    Writers put metadata files into the folder ``metadata`` of the table's location, unless a property says
    otherwise.
    """
    file = normalize_location(metadata_location)
    folder = file.rpartition("/")[0]
    location = folder.removesuffix("/metadata")
    return TableLocations(name, location, frozenset({location}), frozenset({file}), is_guessed=True)


class NearbyTables:
    """The tables of a catalog, by which those that can share files with one are found without a look at each.

    :param tables: all of them.
    """

    def __init__(self, tables: Iterable[TableLocations]) -> None:
        self._tables = tuple(tables)
        self._by_name = {table.name: table for table in self._tables}
        # A slash at the end: in this order, the folders below one follow it.
        self._places = sorted((f"{p}/", n) for n, table in enumerate(self._tables) for p in table.all)
        self._by_file = dict[str, list[int]]()
        for number, table in enumerate(self._tables):
            for file in table.files:
                self._by_file.setdefault(file, []).append(number)

    def of(self, name: TableName) -> TableLocations | None:
        """The locations of a table."""
        return self._by_name.get(name)

    def near(self, table: TableLocations) -> Iterator[TableLocations]:
        """The tables that name a file of a table, or a folder at, in or above one of its folders."""
        found = {number for file in table.files for number in self._by_file.get(file, ())}
        for folder in table.all:
            found.update(self._below(f"{folder}/"))
            parts = folder.split("/")
            for count in range(1, len(parts)):
                found.update(self._at("/".join(parts[:count]) + "/"))
        yield from (self._tables[number] for number in sorted(found))

    def _below(self, folder: str) -> Iterator[int]:
        """The tables with a folder that is this one, or in it."""
        at = bisect_left(self._places, (folder, -1))
        while at < len(self._places) and self._places[at][0].startswith(folder):
            yield self._places[at][1]
            at += 1

    def _at(self, folder: str) -> Iterator[int]:
        """The tables with a folder that is this one."""
        at = bisect_left(self._places, (folder, -1))
        while at < len(self._places) and self._places[at][0] == folder:
            yield self._places[at][1]
            at += 1


def shared_with(table: TableLocations, others: Iterable[TableLocations]) -> Iterator[str]:
    """Other tables at, in or above the table's folder, each as a phrase."""
    for other in others:
        if other.name == table.name:
            continue
        for place in sorted(other.all):
            if place == table.location:
                yield f"`{other.name}` stores files in the same folder"
            elif _holds(table.location, place):
                yield f"`{other.name}` stores files below it, in {place}"
            elif _holds(place, table.location):
                yield f"it is below {place}, where `{other.name}` stores files"


def copies_of(table: TableLocations, others: Iterable[TableLocations]) -> Iterator[str]:
    """Other tables that began with the same metadata, as ``register_table`` creates them, each as a phrase.

    Their older snapshots have the same data files, so another table may need a file that one table does not.
    """
    for other in others:
        if other.name == table.name:
            continue
        if other.files & table.files:
            yield f"`{other.name}` started as a copy of the same table"
        elif other.is_guessed and any(_holds(p, q) or _holds(q, p) for p in table.all for q in other.all):
            # A copy keeps the location of its original, so its metadata files are there too.
            yield f"`{other.name}`, which cannot be read, has its metadata in the same folder"


def normalize_location(path: str) -> str:
    """A location in one spelling: ``s3a://`` is ``s3://``, ``file:/x`` and ``file:///x`` are ``/x``."""
    path = _FILE.sub("/", _S3.sub("s3://", path, count=1), count=1)
    head, separator, rest = path.partition("://")
    if not separator:
        head, rest = "", path
    return head + separator + re.sub(r"/{2,}", "/", rest).rstrip("/")


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
