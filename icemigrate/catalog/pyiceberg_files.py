"""Reads files with PyIceberg's FileIO, for metadata files that may be on other machines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.metadata_files import ReadBytes, local_path, read_local
from icemigrate.catalog.pyiceberg_config import ignore_working_directory
from icemigrate.errors import MissingExtra, extra_hint
from icemigrate.system.deadline import call_with_deadline

if TYPE_CHECKING:
    from pyiceberg.io import InputStream

_LONGEST_MESSAGE = 300
_PART = 1 << 20


def file_io(settings: CatalogSettings) -> ReadBytes:
    """A reader of files at any location; PyIceberg is imported for the first one that is not on this machine.

    :raises MissingExtra: (when called) PyIceberg, or its package for this storage, is not installed.
    """
    properties = dict(settings.properties)
    if settings.warehouse:
        properties["warehouse"] = settings.warehouse

    def read(location: str) -> bytes:
        if local_path(location) is not None:
            return read_local(location)
        ignore_working_directory()
        try:
            from pyiceberg.io import load_file_io

            return _read(lambda: load_file_io(properties, location).new_input(location).open(), settings)
        except ImportError as error:
            raise missing_extra(settings, error) from error

    return read


def _read(open_: Callable[[], InputStream], settings: CatalogSettings) -> bytes:
    """A file's content; a large file may take long, but each part has a timeout."""
    stream = call_with_deadline(settings.timeout_s, open_)
    parts = []
    while part := call_with_deadline(settings.timeout_s, lambda: stream.read(_PART)):
        parts.append(part)
    stream.close()
    return b"".join(parts)


def missing_extra(settings: CatalogSettings, error: Exception) -> MissingExtra:
    """The fault of a library that is not installed, with the line that installs it."""
    kind = "pyiceberg" if settings.type == "sqlite" else settings.type
    if settings.type == "sql" and (settings.uri or "").startswith("postgres"):
        kind = "postgres"
    elif settings.properties.get("rest.sigv4-enabled", "").lower() == "true":
        kind = "sigv4"
    return MissingExtra(
        f"catalog `{settings.name}` needs a library that is not installed: {first_line(str(error))}",
        extra_hint(kind),
    )


_FAILED_CONNECTION = re.compile(r"Failed to establish a new connection: (?:\[Errno -?[0-9]+\] )?([^\"')]+)")
_FAILED_RESOLUTION = re.compile(r"Failed to resolve '([^']+)'")
_LIBRARY_PREFIX = re.compile(r"\A\([\w.]+\) ")


def first_line(text: str) -> str:
    """The first line of another library's error, shortened; a failed connection without the calls of urllib3
    and SQLAlchemy around it.
    """
    line = _LIBRARY_PREFIX.sub("", text.strip().partition("\n")[0])
    if found := _FAILED_RESOLUTION.search(line):
        return f"the host `{found[1]}` is not known"
    if found := _FAILED_CONNECTION.search(line):
        return f"the connection failed: {found[1].strip()}"
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"
