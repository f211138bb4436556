"""Files by PyIceberg's FileIO, for readers whose metadata files may lie elsewhere than on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from icemigrate.catalog.files import ReadBytes, local_path, read_local
from icemigrate.catalog.port import CatalogSettings
from icemigrate.catalog.pyiceberg_config import ignore_working_directory
from icemigrate.deadline import within
from icemigrate.errors import MissingExtra, extra_hint

if TYPE_CHECKING:
    from pyiceberg.io import InputStream

_LONGEST_MESSAGE = 300
_PART = 1 << 20


def file_io(settings: CatalogSettings) -> ReadBytes:
    """Reads files wherever they are; PyIceberg is imported for the first one that is not on this machine.

    :raises MissingExtra: (when called) PyIceberg, or what it reads this place with, is not installed.
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
    """A file's content; a large file may take long, but each part of it has to come in time."""
    stream = within(settings.timeout_s, open_)
    parts = []
    while part := within(settings.timeout_s, lambda: stream.read(_PART)):
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


def first_line(text: str) -> str:
    """The first line of an error of somebody else's, cut where it goes on and on."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"
