"""Imports the modules that a commit of rows needs while DuckDB works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def imported_meanwhile() -> Iterator[None]:
    """A block in which another thread imports ``pyarrow.parquet`` and ``fastavro``.

    The import takes a quarter of a second, a fifth of the time of loading a million rows, and DuckDB does not
    hold Python's lock meanwhile.  Where the import fails, the statement that needs the module raises the
    error.  The block must pass no Python object to DuckDB, which would look into half imported modules.
    """
    thread = threading.Thread(target=_import_modules, name="icemigrate-import", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import_modules() -> None:
    with suppress(ImportError):
        import fastavro  # noqa: F401
        import pyarrow.parquet  # noqa: F401
