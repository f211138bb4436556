"""What DuckDB's own reader opens of a table: its folders, and data files that are elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icemigrate.catalog.metadata_files import local_path
from icemigrate.errors import IcemigrateError
from icemigrate.frozen import Frozen
from icemigrate.table_data.duckdb_session import text_literal
from icemigrate.table_data.object_storage import ObjectStorage, object_folders
from icemigrate.table_data.query_readers import reason_against_formats, reason_against_places

if TYPE_CHECKING:
    import duckdb

_LOCATIONS = ("write.data.path", "write.metadata.path", "write.object-storage.path")


class ScannedFiles(Frozen):
    """What DuckDB must know of a snapshot's files before it opens one.

    :param reason: why it does not read them; ``None`` where it does.
    :param outside: files that are not in the folders of the table, such as ones that another client added.
    :param manifests: locations of the manifests.
    """

    reason: str | None = None
    outside: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()


def scanned_files(
    connection: duckdb.DuckDBPyConnection,
    metadata_file: Path,
    metadata: Mapping[str, Any],
    storage: ObjectStorage | None = None,
) -> ScannedFiles:
    """The files of the snapshot of a metadata file; only manifests are read.

    :param metadata: the content of the file.
    :param storage: that DuckDB has signed in to.
    :raises duckdb.Error: a manifest on this machine cannot be read.
    """
    import duckdb

    inside = " OR ".join(
        f"starts_with(file_path, {text_literal(folder)})" for folder in table_folders(metadata)
    )
    listing = (
        "SELECT DISTINCT file_format, CASE WHEN NOT (" + inside + ") THEN file_path END, manifest_path "
        f"FROM iceberg_metadata({text_literal(str(metadata_file))}) WHERE status <> 'DELETED'"
    )
    try:
        found = connection.execute(listing).fetchall()
    except duckdb.IOException as error:
        if local_path(metadata["location"]) is not None:
            raise
        # Such as a certificate or a redirect that PyIceberg's libraries understand.
        problem = str(error).partition("\n")[0].partition(": ")[2]
        return ScannedFiles(f"it does not reach the storage ({problem})")
    reason = reason_against_formats(file_format for file_format, _, _ in found)
    outside = tuple(dict.fromkeys(path for _, path, _ in found if path is not None))
    manifests = tuple(dict.fromkeys(manifest for *_, manifest in found))
    return ScannedFiles(reason or reason_against_places(outside, storage), outside, manifests)


def require_manifests(table: str, manifests: Iterable[str]) -> None:
    """Check that manifests on this machine are still there.

    DuckDB 1.5.5 ends the process where a manifest is missing that its scan reads.

    :param table: its name, for the message.
    :raises IcemigrateError: another client removed one, such as with an expired snapshot.
    """
    for location in manifests:
        path = local_path(location)
        if path is not None and not Path(path).exists():
            raise IcemigrateError(
                f"a file of `{table}` is missing: another client removed the manifest {path}",
                "run the query again; a snapshot that expired meanwhile cannot be read",
            )


def table_folders(metadata: Mapping[str, Any]) -> Iterator[str]:
    """The folders of a table, as its manifests may write them."""
    properties: Mapping[str, Any] = metadata["properties"]
    for location in (metadata["location"], *(properties.get(key) for key in _LOCATIONS)):
        if location and (path := local_path(location)) is not None:
            yield from (f"{path}/", f"file:{path}/", f"file://{path}/", f"{location.rstrip('/')}/")
        elif location:
            yield from object_folders(location)
