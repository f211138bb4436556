"""Files of tables: local ones by the operating system, others by PyIceberg's FileIO."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.metadata_files import literal_path, local_path
from icemigrate.catalog.pyiceberg_config import ignore_working_directory
from icemigrate.catalog.pyiceberg_files import file_io, first_line, missing_extra
from icemigrate.errors import EngineError, IcemigrateError, os_error_reason
from icemigrate.system.deadline import DeadlineExceeded, call_with_deadline
from icemigrate.system.file_writes import create_durable, delete_regular, link_durable

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

_PART = 1 << 20
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class TableFiles:
    """See :class:`~icemigrate.metadata_engine.table_store.FileStore`.

    A file on this machine is written only where the catalog's own settings say that tables are here: it is a
    SQLite file, its ``warehouse`` is a local folder, or a REST server runs on this machine.  Otherwise an
    answer of the catalog would decide where on this machine files are written.
    """

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._read = file_io(settings)
        self._storages: dict[str, FileIO] = {}

    def read(self, location: str) -> bytes:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""
        try:
            return self._read(location)
        except (OSError, IcemigrateError):
            raise
        except Exception as error:  # libraries of storages raise their own exceptions
            raise OSError(self._reason(error)) from None

    def write(self, location: str, *content: bytes) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""
        self._create(
            location,
            lambda path: create_durable(path, *content),
            lambda: self._write_remote(location, BytesIO(b"".join(content))),
        )

    def write_file(self, location: str, source: Path) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""

        def upload() -> None:
            with source.open("rb") as stream:
                self._write_remote(location, stream)

        self._create(location, lambda path: link_durable(path, source), upload)

    def _create(self, location: str, create: Callable[[Path], None], upload: Callable[[], None]) -> None:
        """Create a file, on this machine or elsewhere."""
        path = local_target(location)
        try:
            if path is None:
                upload()
                return
            self._require_local(location, path)
            create(path)
        except IcemigrateError:
            raise
        except FileExistsError:
            raise EngineError(f"the file {location} exists already") from None
        except ImportError as error:
            raise missing_extra(self._settings, error) from error
        except DeadlineExceeded as error:
            raise EngineError(
                f"the file {location} was not written: {error}",
                "check the storage's address; `timeout` of the environment's catalog allows more time",
            ) from None
        except Exception as error:  # libraries of storages raise their own exceptions
            raise EngineError(
                f"the file {location} cannot be written: {self._reason(error)}",
                "check the right to write there, and the free space",
            ) from None

    def delete(self, location: str) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.FileStore`."""
        with suppress(Exception):  # libraries of storages raise their own exceptions
            path = local_target(location)
            if path is None:
                storage = self._storage(location)
                call_with_deadline(self._settings.timeout_s, lambda: storage.delete(location))
                return
            self._require_local(location, path)
            delete_regular(path)
            # Hadoop's local file system keeps a checksum beside each file.
            delete_regular(path.with_name(f".{path.name}.crc"))

    def _require_local(self, location: str, path: Path) -> None:
        if not path.is_absolute():
            raise EngineError(
                f"the location {location} is neither an absolute path nor a URI",
                "change the table's location",
            )
        if not _has_local_tables(self._settings):
            raise EngineError(
                f"the location {location} is on this machine, but catalog `{self._settings.name}` is not",
                "set the catalog's `warehouse` to a local folder, or change the table's location",
            )

    def _write_remote(self, location: str, content: BinaryIO) -> None:
        seconds, storage = self._settings.timeout_s, self._storage(location)
        stream = call_with_deadline(seconds, lambda: storage.new_output(location).create())
        while part := content.read(_PART):
            call_with_deadline(seconds, partial(stream.write, part))
        call_with_deadline(seconds, stream.close)

    def _storage(self, location: str) -> FileIO:
        scheme = location.partition(":")[0]
        if scheme not in self._storages:
            ignore_working_directory()
            from pyiceberg.io import load_file_io

            self._storages[scheme] = load_file_io(dict(self._settings.properties), location)
        return self._storages[scheme]

    def _reason(self, error: Exception) -> str:
        if isinstance(error, OSError) and error.strerror:
            return os_error_reason(error)
        return first_line(self._settings.scrub(str(error))) or type(error).__name__


def local_target(location: str) -> Path | None:
    """The path of a new file on this machine; ``None`` for other locations.

    Its name is as it is written; its folder is the one that readers find.
    """
    path = literal_path(location)
    folder = local_path(location.rpartition("/")[0])
    return path if path is None or folder is None or not folder.exists() else folder / path.name


def _has_local_tables(settings: CatalogSettings) -> bool:
    if settings.type == "sqlite" or (settings.uri or "").startswith("sqlite:"):
        return True
    if settings.warehouse and settings.warehouse.startswith(("/", "file:")):
        return True
    if settings.type != "rest":
        return False
    with suppress(ValueError):
        return urlsplit(settings.uri or "").hostname in _LOOPBACK
    return False
