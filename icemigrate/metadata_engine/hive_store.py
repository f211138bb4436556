"""The tables of a Hive metastore.

A swap takes the lock that Iceberg's Java library takes, and names the location that it expects: a metastore
with HIVE-26882 (such as Hive 2.3.10) compares it itself, also where a lock expired or a late request arrives.
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.errors import IcemigrateError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.hive_client import (
    Call,
    HiveClient,
    MetastoreRefusal,
    allowed,
    alter_table,
    find_table,
)
from icemigrate.metadata_engine.hive_parameters import (
    LOCATION_PARAMETER,
    OWNER_PROPERTY,
    has_hive_engine,
    hive_parameters,
)
from icemigrate.metadata_engine.location_swaps import LocationSwap, swap_conflict
from icemigrate.metadata_engine.metastore_columns import ZONED_TIMESTAMP, hive_columns
from icemigrate.metadata_engine.metastore_store import MetastoreTableStore
from icemigrate.metadata_engine.table_store import CommitConflict
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer
from icemigrate.redaction import guard_logging

_PLAIN_FORMATS = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
_HIVE_FORMATS = (
    "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)


def open_hive_store(settings: CatalogSettings) -> MetastoreTableStore:
    """The tables of a Hive metastore; it connects on the first call."""
    guard_logging()
    return MetastoreTableStore(settings, HiveMetastore(settings), TableFiles(settings))


class HiveMetastore:
    """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._client = HiveClient(settings)

    def location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        from icemigrate.catalog.pyiceberg_kinds import location_parameter

        if len(name.namespace) != 1:
            return None
        with self._client.connected() as call:
            table = find_table(call, name)
        return None if table is None else location_parameter(name, table.parameters or {})

    def swap(self, swap: LocationSwap) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        name, base, location = swap.name, swap.base, swap.after.location
        if base is None:
            self._create(swap)
            return
        with self._client.locked(name, base.json["properties"]) as call:
            table = find_table(call, name)
            known = {} if table is None else dict(table.parameters or {})
            if table is None or known.get(LOCATION_PARAMETER) != base.location:
                raise swap_conflict([swap])
            table.sd = self._descriptor(call, swap, known)
            table.parameters = hive_parameters(swap, known)
            self._change(lambda: alter_table(call, name, table, base.location), name, location)

    def default_location(self, name: TableName) -> str | None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        return self._client.default_location(name)

    def rename(self, name: TableName, new: TableName) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        with self._client.locked(name) as call:
            table = find_table(call, name)
            if table is None:
                raise CommitConflict(f"table `{name}` cannot be renamed: there is no such table")
            if find_table(call, new) is not None:
                raise CommitConflict(f"table `{name}` cannot be renamed: there is a table or view `{new}`")
            expected = (table.parameters or {}).get(LOCATION_PARAMETER)
            table.dbName, table.tableName = new.namespace[0], new.name
            self._change(lambda: alter_table(call, name, table, expected), new, expected or "")

    def drop(self, name: TableName) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        with self._client.connected() as call, _uncertain(), allowed("NoSuchObjectException"):
            call(lambda client: client.drop_table(name.namespace[0], name.name, deleteData=False))

    def create_namespace(self, namespace: str) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        from hive_metastore.ttypes import Database, PrincipalType

        warehouse = self._settings.warehouse
        database = Database(
            name=namespace,
            locationUri=None if warehouse is None else f"{warehouse.rstrip('/')}/{namespace}.db",
            parameters={},
            ownerName=getpass.getuser(),
            ownerType=PrincipalType.USER,
        )
        with self._client.connected() as call, _uncertain(), allowed("AlreadyExistsException"):
            call(lambda client: client.create_database(database))

    def drop_namespace(self, namespace: str) -> bool:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        with self._client.connected() as call, _uncertain(), allowed("NoSuchObjectException"):
            # Hive 2 fails on a namespace that does not exist.
            call(lambda client: client.get_database(namespace))
            try:
                call(lambda client: client.drop_database(namespace, deleteData=False, cascade=False))
            except MetastoreRefusal as error:
                if error.kind != "InvalidOperationException":
                    raise
                return False
        return True

    def close(self) -> None:
        """See :class:`~icemigrate.metadata_engine.metastore_store.Metastore`."""
        self._client.close()

    def _create(self, swap: LocationSwap) -> None:
        from hive_metastore.ttypes import Table

        name, now_s = swap.name, int(time.time())
        with self._client.connected() as call:
            if find_table(call, name) is not None:
                raise swap_conflict([swap])
            table = Table(
                tableName=name.name,
                dbName=name.namespace[0],
                owner=swap.after.json["properties"].get(OWNER_PROPERTY) or getpass.getuser(),
                createTime=now_s,
                lastAccessTime=now_s,
                retention=2**31 - 1,
                sd=self._descriptor(call, swap, {}),
                partitionKeys=[],
                parameters=hive_parameters(swap, {}),
                tableType="EXTERNAL_TABLE",
            )
            self._change(lambda: call(lambda client: client.create_table(table)), name, swap.after.location)

    def _descriptor(self, call: Call, swap: LocationSwap, known: dict[str, str]) -> Any:
        from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor

        metadata = swap.after.json
        formats = _HIVE_FORMATS if has_hive_engine(metadata, known) else _PLAIN_FORMATS
        columns = hive_columns(metadata, swap.name, lambda: self._zoned_timestamp(call))
        return StorageDescriptor(
            cols=[FieldSchema(*column) for column in columns],
            location=metadata["location"],
            inputFormat=formats[0],
            outputFormat=formats[1],
            serdeInfo=SerDeInfo(serializationLib=formats[2], parameters={}),
        )

    def _zoned_timestamp(self, call: Call) -> str:
        """The type of a timestamp with a time zone; PyIceberg's ``hive.hive2-compatible`` sets it.

        A metastore of Hive 2 creates a table with the type of Hive 3, and refuses each later change of it.
        """
        is_hive2 = self._settings.properties.get("hive.hive2-compatible")
        if is_hive2 is None:
            is_hive2 = str(not self._client.has_catalogs(call))
        return "timestamp" if is_hive2.lower() == "true" else ZONED_TIMESTAMP

    def _change(self, act: Callable[[], None], name: TableName, location: str) -> None:
        """Make a change; an error of the metastore counts only where the table is not at its new location.

        :raises LostAnswer: it is not known whether the change was made.
        """
        try:
            with _uncertain():
                act()
        except MetastoreRefusal as error:
            if self._is_at(name, location):
                return
            if error.kind == "AlreadyExistsException" or "The table has been modified" in error.text:
                raise CommitConflict(f"another client changed `{name}` first; nothing was written") from None
            raise

    def _is_at(self, name: TableName, location: str) -> bool:
        try:
            return self.location(name) == location
        except IcemigrateError as error:
            raise LostAnswer from error


@contextmanager
def _uncertain() -> Iterator[None]:
    """A block whose change may be made although it fails, unless the metastore itself answers.

    :raises LostAnswer: the connection broke, or there was no answer in time.
    """
    try:
        yield
    except OSError as error:
        raise LostAnswer from error
