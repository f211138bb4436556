"""Reads metadata files as JSON, from the local file system or with a reader of another storage."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from icemigrate.errors import MetadataError, MissingExtra
from icemigrate.iceberg.json_text import read_json
from icemigrate.iceberg.metadata_check import check_top
from icemigrate.iceberg.metadata_parts import check_snapshots
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.views import View, view_from_json
from icemigrate.iceberg.written_schemas import PARTS, metadata_of_parts
from icemigrate.system.file_reads import open_regular
from icemigrate.system.inflate import GZIP, MIB, InflateError, inflate

ReadBytes = Callable[[str], bytes]
"""Location → content.  Raises :class:`FileNotFoundError` or another :class:`OSError`."""

_GZIP = b"\x1f\x8b"
_MOST_BYTES = 256 * MIB
"""The largest content of a compressed file; 100,000 snapshots of 600 bytes each take 60 MB."""


def local_path(location: str) -> Path | None:
    """The path of a location on this machine (``/a/b``, ``file:/a/b``, ``file:///a/b``); ``None`` for others.

    Hadoop writes a blank in a path as it is, others as ``%20``: the file that exists is used.
    """
    path = literal_path(location)
    if path is None or "%" not in location or not location.startswith("file:") or path.exists():
        return path
    return Path(unquote(str(path)))


def literal_path(location: str) -> Path | None:
    """As :func:`local_path`, with every ``%20`` as it is written, as Hadoop and PyIceberg name new files."""
    if not location.startswith("file:"):
        return None if ":/" in location else Path(location)
    text = location.removeprefix("file:")
    if text.startswith("//"):
        # A host (`file://localhost/a`) has no meaning on one machine.
        text = "/" + text[2:].partition("/")[2]
    return Path(text)


def read_local(location: str) -> bytes:
    """The content of a file on this machine.

    :raises OSError: as opening it does.
    """
    path = local_path(location)
    assert path is not None, f"{location} is not on this machine"
    if "\0" in location:
        raise OSError(errno.EINVAL, "a path cannot contain a NUL character", location)
    # A catalog may name anything: a named pipe or a device would never end.
    with open_regular(path) as stream:
        return stream.read()


def decode_metadata(content: bytes, form: Any = Any) -> Any:
    """The JSON in a metadata file's content, plain or compressed by gzip, whatever its extension.

    :param form: see :func:`~icemigrate.iceberg.json_text.read_json`;
        :data:`~icemigrate.iceberg.written_schemas.PARTS` for all parts, with schemas as text.
    :raises BadMetadata: it is not JSON, or too large.
    """
    if content.startswith(_GZIP):
        try:
            content = inflate(content, GZIP, _MOST_BYTES)
        except InflateError as error:
            raise BadMetadata(str(error)) from error
    try:
        json = read_json(content, form)
        return metadata_of_parts(json) if form is PARTS else json
    except RecursionError as error:
        raise BadMetadata("the JSON is nested too deeply") from error
    except ValueError as error:
        raise BadMetadata(f"it is no JSON: {error}" if content else "the file is empty") from error


def read_metadata(name: TableName, location: str, read: ReadBytes = read_local, form: Any = Any) -> Any:
    """The JSON of a table's metadata file.

    :param form: :data:`~icemigrate.iceberg.metadata.FORM` for only the parts of a table's definition.
    :raises MetadataError: the file is missing, may not be read, or is not JSON.
    """
    try:
        return decode_metadata(read(location), form)
    except FileNotFoundError as error:
        raise MetadataError(
            f"table `{name}`: its metadata file {location} is missing",
            "the catalog still names it: restore the file, or drop the table from the catalog",
        ) from error
    except PermissionError as error:
        raise MetadataError(
            f"table `{name}`: not allowed to read its metadata file {location}",
            "planning needs the right to read metadata files",
        ) from error
    except OSError as error:
        raise MetadataError(
            f"table `{name}`: its metadata file {location} cannot be read: {error.strerror or error}"
        ) from error
    except BadMetadata as error:
        raise damaged_metadata_error(name, error, location) from error


def read_current_metadata(
    name: TableName,
    location: str,
    find_location: Callable[[TableName], str | None],
    read: ReadBytes = read_local,
    form: Any = Any,
) -> tuple[Any, str] | None:
    """The JSON of a table's current metadata file, and its location.

    Writers delete metadata files that newer ones replaced.  So where the file is missing, the catalog is
    asked again whether it names another one by now.

    :param location: of the file, according to the catalog.
    :param find_location: asks the catalog again.
    :returns: ``None`` where the table was dropped meanwhile.
    :raises MetadataError: as :func:`read_metadata`.
    """
    while True:
        try:
            return read_metadata(name, location, read, form), location
        except MetadataError as error:
            found = find_location(name) if isinstance(error.__cause__, FileNotFoundError) else location
            if found == location:
                raise
            if found is None:
                return None
            location = found


def checked_metadata(name: TableName, json: Any, location: str | None) -> dict[str, Any]:
    """The JSON of a table's metadata file, after a check of the snapshots that loading the table skips.

    :raises MetadataError: a part is damaged; the message names the table, the file and the part.
    """
    try:
        check_top(json)
        check_snapshots(json)
    except BadMetadata as error:
        raise damaged_metadata_error(name, error, location) from error
    return dict(json)


def read_view(name: TableName, location: str, read: ReadBytes) -> View:
    """The view of a metadata file; one that cannot be read has the reason."""
    try:
        return view_from_json(decode_metadata(read(location)), name)
    except MissingExtra:
        raise
    except Exception as error:  # readers of other storages raise their own exceptions
        why = error if isinstance(error, BadMetadata) else getattr(error, "strerror", None) or error
        return View(name, problem=f"its metadata file {location} cannot be read: {why}")


def older_metadata(name: TableName, location: str, read: ReadBytes) -> dict[str, Any] | None:
    """The JSON of a metadata file that the table may have had once; ``None`` where it cannot be read."""
    try:
        return checked_metadata(name, read_metadata(name, location, read), location)
    except MissingExtra:
        raise
    except Exception:  # readers of other storages raise their own exceptions
        return None


def damaged_metadata_error(name: TableName, error: BadMetadata, location: str | None) -> MetadataError:
    """The error of a metadata file that does not match the specification."""
    file = f" file {location}" if location else ""
    return MetadataError(
        f"table `{name}`: its metadata{file} is damaged: {error}",
        "point the catalog at an earlier metadata file of the table, or restore this one",
    )
