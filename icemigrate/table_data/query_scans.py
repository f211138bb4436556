"""Rows of a table by PyIceberg's scan, for tables that DuckDB's reader does not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icemigrate.catalog.pyiceberg_config import ignore_working_directory
from icemigrate.errors import IcemigrateError, MissingExtra, extra_hint
from icemigrate.table_data.query_metadata import PointMetadata
from icemigrate.table_data.query_readers import unreadable
from icemigrate.table_data.table_session import TableSession

if TYPE_CHECKING:
    import pyarrow as pa


def scan_to_arrow(session: TableSession, name: str, metadata: PointMetadata) -> pa.Table:
    """All rows of one state of a table.

    :param name: of the table, for errors.
    :raises IcemigrateError: PyIceberg cannot read it.
    :raises MissingExtra: PyIceberg is not installed.
    """
    try:
        return static_table(session, metadata).scan().to_arrow()
    except ImportError as error:
        raise MissingExtra(f"PyIceberg lacks a library: {error}", extra_hint("table")) from error
    except IcemigrateError:
        raise
    except (NotImplementedError, TypeError, ValueError) as error:
        raise unreadable(name, f"PyIceberg: {_first_line(session, error)}") from error
    except Exception as error:  # libraries of storages raise their own exceptions
        raise IcemigrateError(
            f"table `{name}` cannot be read: {_first_line(session, error)}",
            "check the storage and its settings",
        ) from error


def static_table(session: TableSession, metadata: PointMetadata) -> Any:
    """PyIceberg's table of one state."""
    ignore_working_directory()
    from pyiceberg.io import load_file_io
    from pyiceberg.table import StaticTable
    from pyiceberg.table.metadata import TableMetadataUtil

    properties = {**session.store.catalog_properties, **session.storage_properties}
    parsed = TableMetadataUtil.parse_obj(dict(metadata.json))
    location = metadata.json["location"]
    return StaticTable(
        identifier=("static-table", location),
        metadata=parsed,
        metadata_location=location,
        io=load_file_io(properties, location),
        catalog=None,  # type: ignore[arg-type]
    )


def _first_line(session: TableSession, error: Exception) -> str:
    text = session.environment.catalog.settings.scrub(str(error)).strip().partition("\n")[0]
    return text or type(error).__name__
