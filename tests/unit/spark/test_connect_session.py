"""Sessions and errors of Spark Connect, without a server."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from icemigrate.errors import EngineError, MissingExtra, UsageError
from icemigrate.iceberg.names import TableName
from icemigrate.spark import connect_session
from icemigrate.spark.commit_ports import require_jvm
from icemigrate.spark.connect_engine import ConnectEngine
from icemigrate.spark.connect_session import (
    ConnectSettings,
    connection_errors,
    is_connect_session,
    open_connect_session,
    require_catalog,
    require_version,
)
from icemigrate.spark.java_errors import cause_chain, is_commit_conflict
from icemigrate.spark.session_settings import EXTENSIONS

HISTORY = TableName(("meta",), "history")
NAME = TableName(("shop",), "orders")


class Conf(dict[str, str]):
    """The settings of a session."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        self.pop(key, None)


class Session:
    """A session that remembers its statements.

    :param files: the metadata files of the history on the server.
    """

    version = "4.1.4"

    def __init__(self, files: list[str], **conf: str) -> None:
        self.files, self.conf = files, Conf(conf)
        self.texts: list[str] = []
        self.interrupted: list[str] = []
        self.fault: BaseException | None = None
        self.is_stopped = False

    def sql(self, text: str) -> Any:
        self.texts.append(text)
        self.seen = {
            key: value
            for key, value in self.conf.items()
            if key in ("spark.sql.session.timeZone", "spark.wap.branch")
        }
        if self.fault is not None and "REFRESH" not in text:
            raise self.fault
        return SimpleNamespace(collect=lambda: [(file,) for file in self.files])

    def stop(self) -> None:
        self.is_stopped = True

    def addTag(self, tag: str) -> None: ...  # noqa: N802

    def removeTag(self, tag: str) -> None: ...  # noqa: N802

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        self.interrupted.append(tag)


class Catalog:
    """A catalog as Python reads it.

    :param location: of the history's metadata file.
    """

    def __init__(self, location: str | None, *log: str) -> None:
        self.location, self.log = location, log

    def metadata_json(self, name: TableName) -> dict[str, Any] | None:
        return {"metadata-log": [{"metadata-file": file} for file in self.log]}

    def metadata_location(self, name: TableName) -> str | None:
        return self.location


def engine(session: Session, catalog: Catalog, is_own: bool = False) -> ConnectEngine:
    given: Any = session
    return ConnectEngine(given, "spark:15002", "lake", catalog, HISTORY, is_own=is_own)


@pytest.mark.parametrize("server", [["f1", "f2"], ["f2"]])
def test_one_catalog_is_recognized_by_its_history(server: list[str]) -> None:
    session = Session(server)
    engine(session, Catalog("f2", "f1")).sql("UPDATE t")
    assert session.texts[-1] == "UPDATE t"


@pytest.mark.parametrize("server", [["f1", "f3"], ["f9"], ["f1", "f2", "f3"], []])
def test_another_catalog_of_the_same_name_is_refused_before_a_statement(server: list[str]) -> None:
    session = Session(server)
    with pytest.raises(EngineError, match="`lake` of the Spark Connect server spark:15002 is another one"):
        engine(session, Catalog("f2", "f1")).sql("UPDATE t")
    assert "UPDATE t" not in session.texts


def test_tables_that_python_changed_are_refreshed_once_and_the_history_never() -> None:
    session = Session(["f1"])
    one = engine(session, Catalog("f1"))
    one.refresh(NAME)
    one.refresh(HISTORY)
    one.sql("UPDATE t")
    one.sql("UPDATE u")
    assert session.texts[2:] == ["REFRESH TABLE lake.shop.orders", "UPDATE t", "UPDATE u"]


def test_settings_of_a_callers_session_are_restored_also_after_an_error() -> None:
    session = Session(["f1"], **{"spark.wap.branch": "mine", "spark.sql.session.timeZone": "UTC"})
    one = engine(session, Catalog("f1"))
    one.require_same_catalog()
    session.fault = OSError("lost")
    before = dict(session.conf)
    with pytest.raises(EngineError, match="lost"), one.in_time_zone("Asia/Tokyo"):
        one.sql("UPDATE t")
    assert session.seen == {"spark.sql.session.timeZone": "Asia/Tokyo"}
    assert session.conf == before


def test_ctrl_c_interrupts_the_statement_on_the_server() -> None:
    session = Session(["f1"])
    one = engine(session, Catalog("f1"), is_own=True)
    one.require_same_catalog()
    session.fault = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        one.ask("SELECT 1")
    assert len(session.interrupted) == 1


def test_what_needs_the_java_library_says_what_to_do() -> None:
    one: Any = SimpleNamespace(in_jvm=lambda purpose: engine(Session(["f1"]), Catalog("f1")).jvm_engine)
    with pytest.raises(EngineError, match="it needs Iceberg's Java library") as failed:
        require_jvm(one, "it")
    assert "`master` instead of `remote`" in str(failed.value.hint)


@pytest.mark.parametrize(
    ("remote", "server"),
    [("sc://spark", "spark:15002"), ("sc://spark:7/;use_ssl=true", "spark:7"), ("sc://[::1]:7", "[::1]:7")],
)
def test_the_server_is_named_without_its_parameters(remote: str, server: str) -> None:
    assert ConnectSettings(remote, "lake", "hidden").server == server
    assert "hidden" not in repr(ConnectSettings(remote, "lake", "hidden"))


@pytest.mark.parametrize("remote", ["sc://", "sc://spark:port", "sc://[", "spark://spark:7"])
def test_an_address_without_a_host_is_a_wrong_setting(remote: str) -> None:
    with pytest.raises(UsageError, match=r"`spark\.remote`") as failed:
        open_connect_session(ConnectSettings(remote, "lake"))
    assert failed.value.hint == "write `remote: sc://host:port`"


def test_missing_packages_of_the_client_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"grpc": "grpcio", "no_such_package.part": "parts"}
    monkeypatch.setattr(connect_session, "find_spec", lambda name: None if name == "grpc" else _raise(name))
    monkeypatch.setattr(connect_session, "CLIENT_LIBRARIES", absent)
    with pytest.raises(MissingExtra, match="Spark Connect needs grpcio, parts") as failed:
        open_connect_session(ConnectSettings("sc://spark", "lake"))
    assert failed.value.hint is not None
    assert "[connect]" in failed.value.hint


def _raise(name: str) -> Any:
    raise ModuleNotFoundError(name)


class RpcError(Exception):
    """As gRPC raises it."""

    def __init__(self, status: str, details: str) -> None:
        super().__init__(details)
        self._status, self._details = status, details

    def code(self) -> Any:
        return SimpleNamespace(name=self._status)

    def details(self) -> str:
        return self._details


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("UNAVAILABLE", "the Spark Connect server spark:7 does not answer: no route"),
        ("UNAUTHENTICATED", "the Spark Connect server spark:7 refuses this client: no route"),
        ("UNIMPLEMENTED", "the server at spark:7 does not know a request of Spark Connect: no route"),
    ],
)
def test_an_error_of_the_connection_is_one_sentence(
    status: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", SimpleNamespace(RpcError=RpcError))
    with pytest.raises(EngineError) as failed, connection_errors("spark:7"):
        raise RuntimeError("wrapped") from RpcError(status, "no route; more for developers")
    assert failed.value.message == message
    assert failed.value.hint


def test_a_session_that_the_server_ended_is_reported() -> None:
    class Ended(Exception):
        def getCondition(self) -> str:  # noqa: N802
            return "INVALID_HANDLE.SESSION_NOT_FOUND"

    with pytest.raises(EngineError, match="has ended the session"), connection_errors("spark:7"):
        raise Ended


def test_a_bug_stays_a_bug() -> None:
    with pytest.raises(ZeroDivisionError), connection_errors("spark:7"):
        raise ZeroDivisionError


def test_the_release_and_the_catalog_of_a_server_are_checked() -> None:
    session: Any = Session([], **{"spark.sql.extensions": EXTENSIONS})
    session.version = "3.5.1"
    with pytest.raises(EngineError, match=r"runs Spark 3\.5\.1, and PySpark .+ is installed here"):
        require_version(session, "spark:7")
    with pytest.raises(EngineError, match="has no catalog `lake`"):
        require_catalog(session, "lake", "spark:7")
    session.conf.clear()
    with pytest.raises(EngineError, match="without Iceberg's SQL extensions"):
        require_catalog(session, "lake", "spark:7")


def test_a_session_on_a_server_that_does_not_fit_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session([])
    session.version = "3.5.1"
    monkeypatch.setattr(connect_session, "_open", lambda settings: session)
    monkeypatch.setattr(connect_session, "require_client", lambda: None)
    with pytest.raises(EngineError, match=r"runs Spark 3\.5\.1"):
        open_connect_session(ConnectSettings("sc://spark:7", "lake"))
    assert session.is_stopped


def test_the_causes_on_the_server_identify_a_conflict() -> None:
    class ServerError(Exception):
        _message = "Writing job failed"
        _stacktrace = (
            "org.apache.spark.SparkException: Writing job failed\n\tat org.apache.X.run(X.scala:1)\n"
            "Caused by: org.apache.iceberg.exceptions.CommitFailedException: stale\n\tat org.apache.Y"
        )

    assert [(c.kind.rpartition(".")[2], c.message) for c in cause_chain(ServerError())] == [
        ("SparkException", "Writing job failed"),
        ("CommitFailedException", "stale"),
    ]
    assert is_commit_conflict(ServerError())


def test_a_session_of_spark_connect_is_recognized_by_its_class() -> None:
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    assert is_connect_session(kind())
    assert is_connect_session(type("Own", (kind,), {})())
    assert not is_connect_session(object())
