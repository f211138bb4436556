"""Removal of old schemas from a table's metadata, in one commit through Iceberg's Java library.

Iceberg's ``expireSnapshots().cleanExpiredMetadata(true)`` also removes schemas, and knows fewer users of them
(``docs/decisions/0019``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from icemigrate.errors import ConflictError, IcemigrateError
from icemigrate.iceberg.names import TableName
from icemigrate.spark import commit, metadata_commit
from icemigrate.spark.commit_fence import is_rest
from icemigrate.spark.engine_port import KEPT_TEXT, SchemaRemoval
from icemigrate.spark.java_errors import (
    cause_chain,
    convert_java_errors,
    is_state_unknown,
    retry_on_conflict,
    to_engine_error,
)
from icemigrate.spark.spark_engine import SparkEngine

_LONGEST_PAUSE_S = 0.1
_REFUSED = frozenset(
    {
        "java.lang.IllegalArgumentException",
        "java.lang.UnsupportedOperationException",
        "org.apache.iceberg.exceptions.BadRequestException",
    }
)
"""Java's exceptions for the answer of a server that does not know an update (HTTP 400 and 501)."""
_OTHER_ANSWER = ("org.apache.iceberg.exceptions.RESTException", "Unable to process")
"""The exception for other answers, such as HTTP 422, and the beginning of its message."""


def removal_text(name: TableName, ids: Collection[int]) -> str:
    """The text of :func:`remove_schemas` in a plan."""
    return f"metadata commit on {name}: removeSchemas({', '.join(map(str, sorted(ids)))})"


def remove_schemas(
    engine: SparkEngine,
    name: TableName,
    uuid: str | None,
    unneeded: Callable[[Mapping[str, Any]], frozenset[int]],
) -> SchemaRemoval:
    """Remove schemas from a table's metadata.

    The commit asserts the table as it was read, including its branches and tags: no new snapshot names a
    removed schema.

    :param uuid: of the table that was shown; ``None`` where it has none.
    :param unneeded: ids of the schemas to remove, from the JSON of the current metadata.
    :raises LockLost: this process does not hold the lock any more; nothing was removed.
    :raises ConflictError: another table has the name now; nothing was removed.
    :raises EngineError: Java failed.
    """
    with convert_java_errors():
        done = retry_on_conflict(lambda: _remove(engine, name, uuid, unneeded), _LONGEST_PAUSE_S)
        engine.java.refresh(name)
    return done


def _remove(
    engine: SparkEngine,
    name: TableName,
    uuid: str | None,
    unneeded: Callable[[Mapping[str, Any]], frozenset[int]],
) -> SchemaRemoval:
    base = commit.open_commit_base(engine, name)
    if uuid not in (None, base.table.uuid):
        raise ConflictError(f"another table now has the name `{name}`", "run `icemigrate maintain` again")
    ids = unneeded(base.json)
    if not ids:
        return SchemaRemoval(0)
    inside = base.transaction.table().operations()
    # For this update a REST catalog asserts the current schema and the branches except main.
    asserted = metadata_commit.assert_references_unmoved(engine.java.iceberg, base.operations, base.metadata)
    removed = engine.java.jvm.java.util.HashSet()
    for id_ in sorted(ids):
        removed.add(id_)
    built = engine.java.iceberg.TableMetadata.buildFrom(asserted).removeSchemas(removed).build()
    inside.commit(inside.current(), built)
    try:
        commit.commit_fenced(engine, base)
    except Exception as error:  # identified by its Java cause
        if is_state_unknown(error) and not ids & _schema_ids(engine, name):
            return SchemaRemoval(len(ids))  # the commit succeeded, and its answer was lost
        if not is_rest(base.operations) or not _is_refused(engine, name, error, ids):
            raise
        return SchemaRemoval(0, to_engine_error(error).message)
    if is_rest(base.operations) and _has_all(engine, name, ids):
        return SchemaRemoval(0, KEPT_TEXT)
    return SchemaRemoval(len(ids))


def _is_refused(engine: SparkEngine, name: TableName, error: Exception, ids: frozenset[int]) -> bool:
    """Whether a server refused the update, or failed because of it."""
    if isinstance(error, IcemigrateError):
        return False
    if is_state_unknown(error):
        return _has_all(engine, name, ids)
    kind, text = _OTHER_ANSWER
    return any(
        cause.kind in _REFUSED or (cause.kind == kind and cause.message.startswith(text))
        for cause in cause_chain(error)
    )


def _has_all(engine: SparkEngine, name: TableName, ids: frozenset[int]) -> bool:
    """Whether a table still has all of these schemas."""
    return ids <= _schema_ids(engine, name)


def _schema_ids(engine: SparkEngine, name: TableName) -> set[int]:
    metadata = engine.metadata_json(name) or {}
    return {schema.get("schema-id", 0) for schema in metadata.get("schemas") or ()}
