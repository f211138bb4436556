"""Calls of a Hive metastore, with its lock of a table."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.library_errors import convert_library_errors
from icemigrate.errors import CatalogError, EngineError, IcemigrateError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.hive_parameters import LOCATION_PARAMETER
from icemigrate.system.deadline import call_with_deadline

if TYPE_CHECKING:
    from icemigrate.catalog.pyiceberg_kinds import HiveKind

LONGEST_LOCK_WAIT_S = 180.0
"""As ``iceberg.hive.lock-timeout-ms`` of the Java library."""
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0

_COLUMNS_HINT = (
    "set `hive.metastore.disallow.incompatible.col.type.changes` of the metastore to `false`: it compares "
    "columns by position, and Iceberg identifies them by field id"
)

Call = Callable[[Callable[[Any], Any]], Any]
"""Runs a function of the metastore's Thrift client."""


class MetastoreRefusal(CatalogError):
    """The metastore answered with an error.

    :param kind: the name of Thrift's exception.
    :param text: its message.
    """

    def __init__(self, catalog: str, kind: str, text: str) -> None:
        text = " ".join(text.split())
        hint = _COLUMNS_HINT if "types incompatible with the existing columns" in text else None
        super().__init__(f"the metastore of catalog `{catalog}` refuses a request: {text}", hint)
        self.kind, self.text = kind, text


class HiveClient:
    """A metastore; every use takes a connection of its own, because threads cannot share one."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._has_catalogs: bool | None = None

    def has_catalogs(self, call: Call) -> bool:
        """Whether the metastore is one of Hive 3 or later, which knows catalogs."""
        if self._has_catalogs is None:
            try:
                call(lambda client: client.get_catalogs())
                self._has_catalogs = True
            except MetastoreRefusal as error:
                # Thrift's answer for a method that the server does not have.
                if error.kind != "TApplicationException":
                    raise
                self._has_catalogs = False
        return self._has_catalogs

    def default_location(self, name: TableName) -> str | None:
        """The location of a new table; ``None`` without a warehouse."""
        kind = self._kind
        with convert_library_errors(self._settings):
            return call_with_deadline(self._settings.timeout_s, lambda: kind.default_location(name))

    def close(self) -> None:
        """Close connections."""
        if "_kind" in self.__dict__:
            self._kind.close()
            del self.__dict__["_kind"]

    @contextmanager
    def locked(self, name: TableName, properties: Any = None) -> Iterator[Call]:
        """A connection, with the table's lock unless its property ``engine.hive.lock-enabled`` is false."""
        if str((properties or {}).get("engine.hive.lock-enabled", "true")).lower() == "false":
            with self.connected() as call:
                yield call
            return
        agent = f"icemigrate-{uuid4()}"
        with self.connected() as call:
            try:
                self._lock(call, name, agent)
                yield call
            finally:
                self._unlock(name, agent)

    def _lock(self, call: Call, name: TableName, agent: str) -> None:
        from hive_metastore.ttypes import (
            CheckLockRequest,
            LockComponent,
            LockLevel,
            LockRequest,
            LockState,
            LockType,
        )

        component = LockComponent(
            type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname=name.namespace[0], tablename=name.name
        )
        request = LockRequest(
            component=[component], user=getpass.getuser(), hostname=socket.gethostname(), agentInfo=agent
        )
        found = call(lambda client: client.lock(request))
        check = CheckLockRequest(lockid=found.lockid)
        end, pause_s = time.monotonic() + LONGEST_LOCK_WAIT_S, _SHORTEST_PAUSE_S
        while found.state == LockState.WAITING and time.monotonic() < end:
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            found = call(lambda client: client.check_lock(check))
        if found.state != LockState.ACQUIRED:
            raise EngineError(
                f"another client holds the lock of table `{name}` in the metastore "
                f"(`SHOW LOCKS {name}` in Hive shows it)",
                "run the command again when that client is done",
            )

    def _unlock(self, name: TableName, agent: str) -> None:
        """Release the own lock, found by its agent: the answer with its number may be lost.

        It takes a new connection; where there is none, the metastore removes the lock after its timeout.
        """
        from hive_metastore.ttypes import ShowLocksRequest, UnlockRequest

        request = ShowLocksRequest(dbname=name.namespace[0], tablename=name.name)
        with suppress(IcemigrateError), self.connected() as call:
            for lock in call(lambda client: client.show_locks(request)).locks or ():
                if lock.agentInfo == agent:
                    release = UnlockRequest(lockid=lock.lockid)
                    call(partial(_unlock, release))

    @contextmanager
    def connected(self) -> Iterator[Call]:
        """A connection for calls in one thread, each with the catalog's timeout."""
        kind, seconds = self._kind, self._settings.timeout_s
        with convert_library_errors(self._settings):
            connection = kind.connect()
            client = call_with_deadline(seconds, connection.__enter__)
            try:
                yield partial(self._call, client)
            finally:
                with suppress(Exception):  # a change that was made must not look like one that failed
                    connection.__exit__(None, None, None)

    def _call(self, client: Any, act: Callable[[Any], Any]) -> Any:
        """The answer to one call.

        :raises OSError: the connection broke, or there was no answer in time.
        :raises MetastoreRefusal: the metastore answered with an error.
        """
        from thrift.Thrift import TException
        from thrift.transport.TTransport import TTransportException

        try:
            return call_with_deadline(self._settings.timeout_s, lambda: act(client))
        except (EOFError, TTransportException) as error:
            raise ConnectionError(f"the connection failed: {error}") from None
        except TException as error:
            # Thrift's errors are immutable, so they cannot pass through blocks of `with`.
            text = self._settings.scrub(str(getattr(error, "message", None) or error))
            raise MetastoreRefusal(self._settings.name, type(error).__name__, text) from None

    @cached_property
    def _kind(self) -> HiveKind:
        from icemigrate.catalog.pyiceberg_config import ignore_working_directory

        with convert_library_errors(self._settings):
            ignore_working_directory()
            from icemigrate.catalog.pyiceberg_kinds import HiveKind

            return HiveKind(self._settings)


def find_table(call: Call, name: TableName) -> Any:
    """The entry of a table; ``None`` where there is none."""
    try:
        return call(lambda client: client.get_table(name.namespace[0], name.name))
    except MetastoreRefusal as error:
        if error.kind != "NoSuchObjectException":
            raise
        return None


@contextmanager
def allowed(kind: str) -> Iterator[None]:
    """A block in which an error of this kind means that there is nothing to do."""
    try:
        yield
    except MetastoreRefusal as error:
        if error.kind != kind:
            raise


def _unlock(request: Any, client: Any) -> None:
    client.unlock(request)


def alter_table(call: Call, name: TableName, table: Any, expected: str | None) -> None:
    """Replace the entry of a table.

    :param expected: the location that the entry has before, for metastores that compare it.
    """
    from hive_metastore.ttypes import EnvironmentContext

    context = {"DO_NOT_UPDATE_STATS": "true"}
    if expected is not None:
        context |= {"expected_parameter_key": LOCATION_PARAMETER, "expected_parameter_value": expected}
    environment = EnvironmentContext(properties=context)
    call(
        lambda client: client.alter_table_with_environment_context(
            name.namespace[0], name.name, table, environment
        )
    )
