"""The answers of servers that do not remove schemas, without a server."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from icemigrate.errors import ConflictError, EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.spark import commit, metadata_commit, schema_removal
from icemigrate.spark.schema_removal import SchemaRemoval, remove_schemas

NAME = TableName(("db",), "a")
EXCEPTIONS = "org.apache.iceberg.exceptions."


class JavaFault(Exception):
    """An exception of Java, as Py4J has it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        fault = {"getClass": lambda: SimpleNamespace(getName=lambda: kind), "getMessage": lambda: message}
        self.java_exception = SimpleNamespace(**fault, getCause=lambda: None)


def remove(
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception | None = None,
    left: tuple[int, ...] = (0, 1, 2),
    *,
    rest: bool = True,
    uuid: str = "u1",
) -> SchemaRemoval:
    """Remove the schemas 0 and 1.

    :param fault: what the commit raises.
    :param left: the schemas that the table has afterwards.
    """
    base = MagicMock(json={}, table=SimpleNamespace(uuid="u1"))
    engine = MagicMock(metadata_json=lambda name: {"schemas": [{"schema-id": i} for i in left]})
    monkeypatch.setattr(commit, "open_commit_base", lambda engine, name: base)
    monkeypatch.setattr(commit, "commit_fenced", MagicMock(side_effect=fault))
    monkeypatch.setattr(metadata_commit, "assert_references_unmoved", MagicMock())
    monkeypatch.setattr(schema_removal, "is_rest", lambda operations: rest)
    return remove_schemas(engine, NAME, uuid, lambda metadata: frozenset({0, 1}))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (f"{EXCEPTIONS}BadRequestException", "Malformed request: remove-schemas"),
        ("java.lang.IllegalArgumentException", "unknown update"),
        ("java.lang.UnsupportedOperationException", "remove-schemas"),
        (f"{EXCEPTIONS}RESTException", "Unable to process (code: 422, type: x): remove-schemas"),
    ],
)
def test_an_answer_that_the_update_is_unknown_is_no_failure(
    kind: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert remove(monkeypatch, JavaFault(kind, message)) == SchemaRemoval(0, message)
    with pytest.raises(JavaFault):
        remove(monkeypatch, JavaFault(kind, message), rest=False)


def test_an_error_of_the_server_is_a_refusal_where_the_schemas_are_still_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault = JavaFault(f"{EXCEPTIONS}CommitStateUnknownException", "Service failed: 500")
    found = remove(monkeypatch, fault)
    assert (found.removed, "Service failed: 500" in (found.refusal or "")) == (0, True)
    assert remove(monkeypatch, fault, (2,)) == SchemaRemoval(2)


@pytest.mark.parametrize(
    "fault",
    [
        JavaFault(f"{EXCEPTIONS}ForbiddenException", "Forbidden: x"),
        JavaFault(f"{EXCEPTIONS}RESTException", "Error occurred while processing POST request"),
        EngineError("the storage is gone"),
    ],
)
def test_another_failure_stays_a_failure(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(type(fault)):
        remove(monkeypatch, fault)


def test_a_server_that_ignores_the_update_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert remove(monkeypatch).refusal == "it accepted the commit and kept the schemas"
    assert remove(monkeypatch, left=(2,)) == SchemaRemoval(2)
    assert remove(monkeypatch, left=(0, 2)) == SchemaRemoval(2), "another client used the id again"


def test_another_table_of_the_name_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConflictError, match="another table now has the name"):
        remove(monkeypatch, uuid="u2")
