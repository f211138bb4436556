"""The tables of AWS Glue.

A swap names the version of the table that was read, and Glue refuses it where another client changed the
table meanwhile (optimistic locking, as in ``GlueTableOperations`` of Iceberg's Java library).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.library_errors import convert_library_errors
from icemigrate.errors import EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.location_swaps import LocationSwap, swap_conflict
from icemigrate.metadata_engine.metastore_columns import glue_columns
from icemigrate.metadata_engine.metastore_store import MetastoreTableStore
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer
from icemigrate.redaction import guard_logging
from icemigrate.system.deadline import call_with_deadline

if TYPE_CHECKING:
    from icemigrate.catalog.pyiceberg_kinds import GlueKind

T = TypeVar("T")

_LOCATION_PARAMETER = "metadata_location"
_ADDITIONAL_LOCATIONS = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""The properties with locations outside the table's own, which Lake Formation must know."""
_LOST = ("ConcurrentModificationException", "InternalServiceException", "OperationTimeoutException")
"""Answers after which the table may have the new location: AWS clients retry requests."""


def open_glue_store(settings: CatalogSettings) -> MetastoreTableStore:
    """The tables of AWS Glue; it connects on the first call."""
    guard_logging()
    return MetastoreTableStore(settings, GlueMetastore(settings), TableFiles(settings))


class GlueMetastore:
    """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings

    def location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        kind = self._kind
        return self._ask(lambda: kind.location(name))

    def swap(self, swap: LocationSwap) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        name, base = swap.name, swap.base
        known = self._find(name)
        if base is None:
            if known is not None:
                raise swap_conflict([swap])
            self._require_free_location(name)
            self._change("create_table", DatabaseName=name.namespace[0], TableInput=_table_input(swap, None))
            return
        parameters = (known or {}).get("Parameters") or {}
        if known is None or parameters.get(_LOCATION_PARAMETER) != base.location:
            raise swap_conflict([swap])
        version = known.get("VersionId")
        if not version:
            raise EngineError(
                f"Glue returns no version of table `{name}`, so another client's commit could be overwritten",
                "use `--apply-with spark` for it",
            )
        self._change(
            "update_table",
            DatabaseName=name.namespace[0],
            TableInput=_table_input(swap, known),
            SkipArchive=self._kind.skips_archive,
            VersionId=version,
        )

    def default_location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        kind = self._kind
        return self._ask(lambda: kind.default_location(name))

    def rename(self, name: TableName, new: TableName) -> None:
        """Refuse: a client would create another table and delete the old one, and lose a commit between them.

        :raises EngineError: always.
        """
        raise EngineError(
            f"Glue cannot rename table `{name}` to `{new}` in one step",
            "use `--apply-with spark` for this migration, while no other client writes to the table",
        )

    def drop(self, name: TableName) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        if self._find(name) is not None:
            self._change("delete_table", DatabaseName=name.namespace[0], Name=name.name)

    def create_namespace(self, namespace: str) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        if self._find_namespace(namespace) is None:
            self._change("create_database", DatabaseInput={"Name": namespace, "Parameters": {}})

    def drop_namespace(self, namespace: str) -> bool:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        if self._find_namespace(namespace) is None:
            return True
        # Glue deletes a namespace with its tables.
        client = self._client
        answer = self._ask(lambda: client.get_tables(DatabaseName=namespace, MaxResults=1))
        if answer["TableList"]:
            return False
        self._change("delete_database", Name=namespace)
        return True

    def close(self) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        if "_kind" in self.__dict__:
            self._kind.close()
            del self.__dict__["_kind"]

    def _require_free_location(self, name: TableName) -> None:
        """Refuse a new table in S3 Tables, which creates a table before its location is known."""
        namespace = self._find_namespace(name.namespace[0]) or {}
        if namespace.get("FederatedDatabase", {}).get("ConnectionType") == "aws:s3tables":
            raise EngineError(
                f"table `{name}` cannot be created: S3 Tables choose the locations of new tables",
                "use the REST endpoint of S3 Tables",
            )

    def _find(self, name: TableName) -> Mapping[str, Any] | None:
        client, database = self._client, name.namespace[0]
        answer = self._found(lambda: client.get_table(DatabaseName=database, Name=name.name))
        return None if answer is None else answer["Table"]

    def _find_namespace(self, namespace: str) -> Mapping[str, Any] | None:
        client = self._client
        answer = self._found(lambda: client.get_database(Name=namespace))
        return None if answer is None else answer["Database"]

    def _found(self, act: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | None:
        missing = self._client.exceptions.EntityNotFoundException

        def find() -> Mapping[str, Any] | None:
            try:
                return act()
            except missing:
                return None

        return self._ask(find)

    def _change(self, method: str, **request: Any) -> None:
        """Send a change.

        :raises LostAnswer: it is not known whether it was made.
        """
        from botocore.exceptions import ClientError, HTTPClientError

        send = getattr(self._client, method)

        def act() -> None:
            try:
                call_with_deadline(self._settings.timeout_s, lambda: send(**request))
            except (OSError, HTTPClientError) as error:
                raise LostAnswer from error
            except ClientError as error:
                code = error.response.get("Error", {}).get("Code", "")
                if code in (*_LOST, "AlreadyExistsException") or _status(error.response) >= 500:
                    raise LostAnswer from error
                raise

        with convert_library_errors(self._settings):
            act()

    def _ask(self, act: Callable[[], T]) -> T:
        with convert_library_errors(self._settings):
            return call_with_deadline(self._settings.timeout_s, act)

    @property
    def _client(self) -> Any:
        return self._kind.client

    @cached_property
    def _kind(self) -> GlueKind:
        from icemigrate.catalog.pyiceberg_config import ignore_working_directory

        with convert_library_errors(self._settings):
            ignore_working_directory()
            from icemigrate.catalog.pyiceberg_kinds import GlueKind

            return call_with_deadline(self._settings.timeout_s, lambda: GlueKind(self._settings))


def _table_input(swap: LocationSwap, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """The table for Glue, as Iceberg's Java library writes it (``IcebergToGlueConverter``).

    :param known: the table as Glue has it.
    """
    metadata, base = swap.after.json, swap.base
    properties = metadata["properties"]
    parameters = dict((known or {}).get("Parameters") or {})
    # Java copies no properties into the parameters; copies of other clients, such as PyIceberg, follow.
    for key in () if base is None else base.json["properties"]:
        if key in parameters:
            del parameters[key]
            if key in properties:
                parameters[key] = properties[key]
    parameters |= {"table_type": "ICEBERG", _LOCATION_PARAMETER: swap.after.location}
    if base is not None:
        parameters["previous_metadata_location"] = base.location
    storage: dict[str, Any] = {"Location": metadata["location"], "Columns": glue_columns(metadata, known)}
    additional = sorted({properties[key] for key in _ADDITIONAL_LOCATIONS if key in properties})
    if additional:
        storage["AdditionalLocations"] = additional
    description = properties.get("comment") or (known or {}).get("Description")
    found = {
        "Name": swap.name.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters,
        "StorageDescriptor": storage,
    }
    return found if description is None else {**found, "Description": description}


def _status(response: Mapping[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
