"""Sessions on a Spark Connect server, and their errors as one sentence.

A Python client of Spark Connect has no JVM: it sends statements, and the server has its own catalogs.
PySpark repeats a request to a server that does not answer for ten minutes.  Here the first answer has a
deadline, and every request is repeated for some ten seconds.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from icemigrate.errors import EngineError, IcemigrateError, MissingExtra, UsageError, extra_hint
from icemigrate.spark.java_errors import convert_java_errors
from icemigrate.spark.session_settings import EXTENSIONS
from icemigrate.system.deadline import DEFAULT_SECONDS, DeadlineExceeded, call_with_deadline
from icemigrate.system.process import is_debugging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_PORT = 15002
CLIENT_LIBRARIES: Mapping[str, str] = {
    "pyspark": "pyspark",
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
    "zstandard": "zstandard",
}
"""The modules that the client of PySpark imports, and the packages that have them: its extra ``connect``."""
_MAX_RETRIES, _FIRST_PAUSE_MS, _LONGEST_PAUSE_MS = 6, 200, 3000
"""How often PySpark repeats a request, and its pauses: some eleven seconds."""
_OWN_SETTINGS = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
}
"""Settings of icemigrate's own sessions, which a server may have set otherwise."""
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
"""PySpark's loggers, which write each error of a statement to standard error as JSON."""
_CHANNEL = (("grpc.keepalive_time_ms", 330_000), ("grpc.keepalive_timeout_ms", 20_000))
"""Where a connection breaks without a word, as behind a firewall, a statement ends after six minutes.

Servers refuse clients that ask more often than every five minutes.
"""


@dataclass(frozen=True, slots=True)
class ConnectSettings:
    """The settings of a new session.

    :param remote: the server's address, ``sc://host:port``.
    :param conf: settings of the session.
    """

    remote: str = field(repr=False)
    catalog_name: str
    token: str | None = field(default=None, repr=False)
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def server(self) -> str:
        """Host and port, for messages.

        :raises UsageError: the address is not valid.
        """
        try:
            parts = urlsplit(self.remote)
            host, port = parts.hostname, parts.port or DEFAULT_PORT
        except ValueError as error:
            raise UsageError(f"`spark.remote` is not an address: {error}", _ADDRESS_HINT) from error
        if parts.scheme != "sc" or not host:
            raise UsageError("`spark.remote` names no host", _ADDRESS_HINT)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_ADDRESS_HINT = "write `remote: sc://host:port`"


def is_connect_session(session: object) -> bool:
    """Whether a session is one of Spark Connect; imports nothing."""
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(session).__mro__)


def is_jvm_session(session: object) -> bool:
    """Whether a session is given, and Spark runs with it in this process."""
    return session is not None and not is_connect_session(session)


def require_client() -> None:
    """Require the packages of :data:`CLIENT_LIBRARIES`.

    :raises MissingExtra: some are not installed.
    """
    missing = [package for module, package in CLIENT_LIBRARIES.items() if not _is_installed(module)]
    if missing:
        raise MissingExtra(f"Spark Connect needs {', '.join(missing)}", extra_hint("connect"))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def open_connect_session(settings: ConnectSettings, seconds: float = DEFAULT_SECONDS) -> SparkSession:
    """Open a session of icemigrate's own on a server.

    :param seconds: how long the first answer may take.
    :raises MissingExtra: a package of the client is not installed.
    :raises UsageError: the address is not valid.
    :raises EngineError: the server does not answer, refuses the token, or has another version of Spark.
    """
    server = settings.server
    require_client()
    with connection_errors(server):
        try:
            session: SparkSession = call_with_deadline(
                seconds, lambda: _open(settings), f"the Spark Connect server {server}"
            )
        except DeadlineExceeded as error:
            raise _unanswered(server, str(error)) from error
        try:
            require_version(session, server)
            require_catalog(session, settings.catalog_name, server)
        except BaseException:
            with suppress(Exception):
                session.stop()
            raise
    return session


def _open(settings: ConnectSettings) -> Any:
    from pyspark.errors import PySparkValueError
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    quiet_loggers()
    try:
        channel = DefaultChannelBuilder(settings.remote, list(_CHANNEL))
    except PySparkValueError as error:
        raise UsageError(f"`spark.remote` is not valid: {error.getMessage()}", _ADDRESS_HINT) from error
    if settings.token is not None:
        channel.set(channel.PARAM_TOKEN, settings.token)
    session = SparkSession(channel)
    policy = DefaultPolicy(
        max_retries=_MAX_RETRIES,
        initial_backoff=_FIRST_PAUSE_MS,
        max_backoff=_LONGEST_PAUSE_MS,
        max_server_retry_delay=_LONGEST_PAUSE_MS,
    )
    session.client.set_retry_policies([policy])
    assert session.version
    # A cache would show tables as they were before commits of Python.
    uncached = {f"spark.sql.catalog.{settings.catalog_name}.cache-enabled": "false"}
    for key, value in {**_OWN_SETTINGS, **uncached, **settings.conf}.items():
        session.conf.set(key, value)
    return session


def quiet_loggers() -> None:
    """Keep PySpark from writing errors that icemigrate reports itself."""
    if not is_debugging():
        for name in _LOGGERS:
            logging.getLogger(name).disabled = True
        for text in (r"\[RETRIES_EXCEEDED\]", r"The SQL config '.+' has been deprecated"):
            warnings.filterwarnings("ignore", text, module=r"pyspark\.sql\.connect\.")


def require_version(session: SparkSession, server: str) -> None:
    """Require that the server has the Spark release of this PySpark.

    :raises EngineError: it has another one.
    """
    import pyspark

    ours, theirs = pyspark.__version__, session.version
    if ours.split(".")[:2] != theirs.split(".")[:2]:
        minor = ".".join(theirs.split(".")[:2])
        raise EngineError(
            f"the Spark Connect server {server} runs Spark {theirs}, and PySpark {ours} is installed here",
            f"use a server of the same release, or pip install 'pyspark[connect]~={minor}.0'",
        )


def require_catalog(session: SparkSession, name: str, server: str) -> None:
    """Require that a server's session has Iceberg and a catalog of this name.

    :raises EngineError: it does not.
    """
    if EXTENSIONS not in (session.conf.get("spark.sql.extensions", None) or ""):
        raise EngineError(
            f"the Spark Connect server {server} runs without Iceberg's SQL extensions",
            f"start it with spark.sql.extensions={EXTENSIONS} and Iceberg's runtime JAR",
        )
    if session.conf.get(f"spark.sql.catalog.{name}", None) is None:
        raise EngineError(
            f"the Spark Connect server {server} has no catalog `{name}`",
            f"start it with the settings spark.sql.catalog.{name}.* of the environment's catalog; or set "
            "`name` of `catalog` in the project file to the server's name of it",
        )


@contextmanager
def connection_errors(server: str) -> Iterator[None]:
    """A block in which errors of Spark and of the connection are raised as :class:`EngineError`."""
    try:
        with convert_java_errors():
            yield
    except IcemigrateError as error:
        if (fault := _connection_fault(error.__cause__, server)) is not None:
            raise fault from error.__cause__
        raise
    except Exception as error:
        if (fault := _connection_fault(error, server)) is not None:
            raise fault from error
        raise


def _connection_fault(error: BaseException | None, server: str) -> EngineError | None:
    """The error for an exception of the connection; ``None`` for other exceptions."""
    status, details = _status(error)
    if status in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return _unanswered(server, details)
    if status in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return EngineError(
            f"the Spark Connect server {server} refuses this client: {details}",
            "set `token` of `spark` in the project file to a variable with the server's token",
        )
    if status == "UNIMPLEMENTED":
        return EngineError(
            f"the server at {server} does not know a request of Spark Connect: {details}",
            "check `spark.remote`, and that the server runs the Spark release of this PySpark",
        )
    condition = getattr(error, "getCondition", lambda: None)() or ""
    if condition.startswith("INVALID_HANDLE."):
        return EngineError(
            f"the Spark Connect server {server} has ended the session: it was restarted, or closed it",
            "run the command again",
        )
    return None


def _status(error: BaseException | None) -> tuple[str, str]:
    """The name of gRPC's status of an error, and its details; empty for other errors."""
    grpc = sys.modules.get("grpc")
    while grpc is not None and error is not None:
        if isinstance(error, grpc.RpcError) and hasattr(error, "code"):
            return error.code().name, (error.details() or "").partition(";")[0]
        error = error.__cause__ or error.__context__
    return "", ""


def _unanswered(server: str, reason: str) -> EngineError:
    return EngineError(
        f"the Spark Connect server {server} does not answer: {reason}",
        "check `spark.remote`, and that the server runs and is reachable from this machine; "
        "then run the command again",
    )
