"""Where the files of tables lie, and which tables share a place; pure.

A tool that lists a table's folder and deletes what the table does not know, deletes what another table keeps
there.  So the folder of a table is only its own while no other table is at it, below it or above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from icemigrate.frozen import Frozen
from icemigrate.model.names import TableName

_PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
"""Properties by which a table puts files elsewhere (Iceberg's documentation, "Write properties")."""
_S3 = re.compile(r"s3[an]?://")
_FILE = re.compile(r"file:/+")


class Places(Frozen):
    """Where one table keeps files.

    :param location: the table's own folder, the one that is searched for orphans.
    :param all: that one, those of its properties, and what its metadata names outside of them.
    :param files: of metadata and manifest lists that the table was or is read from.
    """

    name: TableName
    location: str
    all: frozenset[str]
    files: frozenset[str]


def places_of(name: TableName, metadata: Mapping[str, Any], metadata_location: str | None) -> Places:
    """The places that a metadata file names.

    A table that was moved or renamed has files where it was before: its older metadata files and its
    manifest lists tell where.

    :param metadata: JSON of the file.
    :param metadata_location: of the file itself.
    """
    properties = metadata.get("properties") or {}
    own = [metadata["location"], *(properties[key] for key in _PATHS if properties.get(key))]
    roots = {normal(path) for path in own}
    named = [metadata_location]
    named += [entry.get("metadata-file") for entry in metadata.get("metadata-log") or ()]
    named += [snapshot.get("manifest-list") for snapshot in metadata.get("snapshots") or ()]
    files = frozenset(normal(file) for file in named if file)
    folders = {file.rpartition("/")[0] for file in files}
    strays = {folder for folder in folders if not any(_holds(root, folder) for root in roots)}
    return Places(name, normal(metadata["location"]), frozenset(roots | strays), files)


def shared_with(table: Places, others: Iterable[Places]) -> Iterator[str]:
    """What other tables have at, below or above the table's folder, each as a phrase."""
    for other in others:
        if other.name == table.name:
            continue
        for place in sorted(other.all):
            if place == table.location:
                yield f"`{other.name}` keeps files in the same folder"
            elif _holds(table.location, place):
                yield f"`{other.name}` keeps files below it, in {place}"
            elif _holds(place, table.location):
                yield f"it lies below {place}, where `{other.name}` keeps files"


def copies_of(table: Places, others: Iterable[Places]) -> Iterator[str]:
    """Other tables that began from the same metadata, as ``register_table`` makes them, each as a phrase.

    Their older snapshots have the same data files, so what one table does not need any more the other may.
    """
    for other in others:
        if other.name != table.name and other.files & table.files:
            yield f"`{other.name}` began as a copy of the same table"


def normal(path: str) -> str:
    """A place in one spelling: ``s3a://`` is ``s3://``, ``file:/x`` and ``file:///x`` are ``/x``."""
    path = _FILE.sub("/", _S3.sub("s3://", path, count=1), count=1)
    head, separator, rest = path.partition("://")
    if not separator:
        head, rest = "", path
    return head + separator + re.sub(r"/{2,}", "/", rest).rstrip("/")


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
