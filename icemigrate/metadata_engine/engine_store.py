"""A store whose errors are those of an engine, which callers expect where a catalog does not answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from icemigrate.errors import CatalogError, EngineError
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    FileStore,
    StoredTable,
    TableCommit,
    TableStore,
    retry_always,
)


class EngineStore:
    """See :class:`~icemigrate.metadata_engine.table_store.TableStore`; raises no ``CatalogError``."""

    def __init__(self, store: TableStore) -> None:
        self._store = store

    @property
    def files(self) -> FileStore:
        return self._store.files

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        with _as_engine_errors():
            return self._store.catalog_properties

    @property
    def commits_together(self) -> bool:
        with _as_engine_errors():
            return self._store.commits_together

    def load(self, name: TableName) -> StoredTable | None:
        with _as_engine_errors():
            return self._store.load(name)

    def commit(
        self, commits: Sequence[TableCommit], before_retry: BeforeRetry = retry_always
    ) -> tuple[StoredTable, ...]:
        with _as_engine_errors():
            return self._store.commit(commits, before_retry)

    def default_location(self, name: TableName) -> str:
        with _as_engine_errors():
            return self._store.default_location(name)

    def rename(self, name: TableName, new: TableName, before_retry: BeforeRetry = retry_always) -> None:
        with _as_engine_errors():
            self._store.rename(name, new, before_retry)

    def drop(self, name: TableName) -> None:
        with _as_engine_errors():
            self._store.drop(name)

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        with _as_engine_errors():
            self._store.create_namespace(namespace)

    def drop_namespace(self, namespace: tuple[str, ...], before_retry: BeforeRetry = retry_always) -> bool:
        with _as_engine_errors():
            return self._store.drop_namespace(namespace, before_retry)

    def close(self) -> None:
        with _as_engine_errors():
            self._store.close()


@contextmanager
def _as_engine_errors() -> Iterator[None]:
    try:
        yield
    except CatalogError as error:
        raise EngineError(error.message, error.hint) from error
