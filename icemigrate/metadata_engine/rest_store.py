"""The tables of a REST catalog: its server applies the updates, and compares the requirements before.

Paths and JSON are those of Iceberg's REST specification (``open-api/rest-catalog-open-api.yaml``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from icemigrate.catalog.catalog_port import CatalogSettings
from icemigrate.catalog.library_errors import convert_library_errors
from icemigrate.catalog.metadata_files import checked_metadata
from icemigrate.catalog.rest_client import is_answer_of_a_catalog
from icemigrate.errors import CatalogError, EngineError
from icemigrate.frozen import replace
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.rest_creation import (
    create_request,
    missing_changes,
    was_created_by,
    with_staged_identity,
)
from icemigrate.metadata_engine.rest_exchange import conflict_text, exchange
from icemigrate.metadata_engine.rest_files import RestFiles
from icemigrate.metadata_engine.rest_outcome import adds_snapshot, is_made
from icemigrate.metadata_engine.rest_requests import identifier, table_change
from icemigrate.metadata_engine.table_store import (
    BeforeRetry,
    CommitConflict,
    CommitRefused,
    FileStore,
    StoredTable,
    TableCommit,
    retry_always,
)
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer, until_known
from icemigrate.redaction import guard_logging
from icemigrate.system.deadline import call_with_deadline

if TYPE_CHECKING:
    from requests import Response

    from icemigrate.catalog.pyiceberg_kinds import RestKind

T = TypeVar("T")

_COMMIT_TOGETHER = "POST /v1/{prefix}/transactions/commit"


def open_rest_store(settings: CatalogSettings) -> RestTableStore:
    """The tables of a REST catalog; it connects on the first call."""
    guard_logging()
    return RestTableStore(settings)


class RestTableStore:
    """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

    def __init__(self, settings: CatalogSettings) -> None:
        self._settings = settings
        self._files = RestFiles(settings)

    @property
    def files(self) -> FileStore:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        return self._files

    @property
    def catalog_properties(self) -> Mapping[str, str]:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        return self._kind.client.properties

    @property
    def commits_together(self) -> bool:
        """Whether the server's configuration lists the endpoint."""
        return _COMMIT_TOGETHER in self._kind.client.endpoints

    def load(self, name: TableName) -> StoredTable | None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        client = self._kind.client
        answer = self._ask(lambda: client.find(client.path(name), {"snapshots": "all"}))
        return None if answer is None else self._stored(name, answer)

    def commit(
        self, commits: Sequence[TableCommit], before_retry: BeforeRetry = retry_always
    ) -> tuple[StoredTable, ...]:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        if len(commits) > 1:
            return self._commit_together(commits, before_retry)
        return tuple(
            self._create(one, before_retry) if one.base is None else self._commit(one, before_retry)
            for one in commits
        )

    def default_location(self, name: TableName) -> str:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        location = self._ask(lambda: self._kind.default_location(name))
        if location is None:
            raise CatalogError(
                f"only the catalog `{self._settings.name}` knows the location of a new table `{name}`",
                "write the table's `location`",
            )
        return location

    def rename(self, name: TableName, new: TableName, before_retry: BeforeRetry = retry_always) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        body = {"source": identifier(name), "destination": identifier(new)}

        def attempt() -> bool:
            response = self._send("POST", "tables/rename", body)
            if response.status_code == 409:
                raise CommitConflict(f"table `{name}` cannot be renamed: there is a table or view `{new}`")
            if response.status_code == 404 and self.load(name) is None:
                raise CommitConflict(f"table `{name}` cannot be renamed: there is no such table")
            return self._succeeded(response)

        def find(conflict: CommitConflict | None) -> bool | None:
            if self.load(name) is None and self.load(new) is not None:
                return True
            if conflict is not None:
                raise conflict
            return None

        self._until_known(attempt, find, f"whether table `{name}` was renamed to `{new}`", before_retry)

    def drop(self, name: TableName) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        path = self._kind.client.path(name)

        def attempt() -> bool:
            response = self._send("DELETE", path, params={"purgeRequested": "false"})
            if response.status_code == 404 and self.load(name) is None:
                return True
            return self._succeeded(response)

        self._until_known(attempt, lambda _: None, f"whether table `{name}` was dropped")

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""

        def attempt() -> bool:
            response = self._send("POST", "namespaces", {"namespace": list(namespace), "properties": {}})
            return True if response.status_code == 409 else self._succeeded(response)

        what = f"whether namespace `{'.'.join(namespace)}` was created"
        self._until_known(attempt, lambda _: None, what)

    def drop_namespace(self, namespace: tuple[str, ...], before_retry: BeforeRetry = retry_always) -> bool:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        path = self._kind.client.namespace_path(namespace)

        def attempt() -> bool:
            # Not every server refuses to drop a namespace with content.
            if self._has_content(namespace):
                return False
            response = self._send("DELETE", path)
            if response.status_code == 409:
                return False
            return True if response.status_code == 404 else self._succeeded(response)

        what = f"whether namespace `{'.'.join(namespace)}` was dropped"
        return self._until_known(attempt, lambda _: None, what, before_retry)

    def close(self) -> None:
        """See :class:`~icemigrate.metadata_engine.table_store.TableStore`."""
        if "_kind" in self.__dict__:
            self._kind.close()
            del self.__dict__["_kind"]

    def _commit(self, commit: TableCommit, before_retry: BeforeRetry) -> StoredTable:
        name, base = commit.name, commit.base
        assert base is not None
        body = table_change(commit)

        def attempt() -> StoredTable:
            response = self._send("POST", self._kind.client.path(name), body)
            self._require_accepted(response, [name])
            return self._stored(name, self._read(response))

        def find(conflict: CommitConflict | None) -> StoredTable | None:
            table = self.load(name)
            if table is not None and _is_same_table(table, base) and is_made(commit, table.json):
                return table
            if conflict is not None and table is not None:
                raise conflict
            return None

        return self._until_known(attempt, find, f"whether the commit to `{name}` was made", before_retry)

    def _commit_together(
        self, commits: Sequence[TableCommit], before_retry: BeforeRetry
    ) -> tuple[StoredTable, ...]:
        if not self.commits_together:
            raise EngineError(
                f"catalog `{self._settings.name}` commits one table at a time",
                "its server does not list the endpoint `transactions/commit`",
            )
        staged = [one if one.base is not None else self._staged(one, str(uuid4())) for one in commits]
        body = {"table-changes": [table_change(one) for one in staged]}

        def attempt() -> tuple[StoredTable, ...]:
            response = self._send("POST", "transactions/commit", body)
            self._require_accepted(response, [one.name for one in staged])
            try:
                found = [self.load(one.name) for one in staged]
            except CatalogError as error:
                raise LostAnswer from error  # it is made, and its answer has no tables
            if None in found:
                raise LostAnswer
            return tuple(table for table in found if table is not None)

        def find(conflict: CommitConflict | None) -> tuple[StoredTable, ...] | None:
            tables = {one.name: table for one in staged if (table := self.load(one.name)) is not None}
            made = {one.name for one in staged if one.name in tables and is_made(one, tables[one.name].json)}
            # A snapshot of its own proves a commit of all tables, whatever others changed since.
            if len(made) == len(staged) or any(one.name in made and adds_snapshot(one) for one in staged):
                return tuple(tables[one.name] for one in staged if one.name in tables)
            if conflict is not None:
                raise conflict
            return None

        names = ", ".join(f"`{one.name}`" for one in staged)
        return self._until_known(attempt, find, f"whether the commit to {names} was made", before_retry)

    def _create(self, commit: TableCommit, before_retry: BeforeRetry) -> StoredTable:
        """Create a table with its own field ids, see :mod:`~icemigrate.metadata_engine.rest_creation`."""
        name, creation = commit.name, str(uuid4())
        staged = self._staged(commit, creation)
        body = table_change(staged)
        exists = CommitConflict(f"there is a table or view `{name}` already")

        def attempt() -> StoredTable:
            response = self._send("POST", self._kind.client.path(name), body)
            if response.status_code == 404:
                # The server does not commit staged tables.
                made = self._created(commit, creation, is_staged=False)
                return self._with_own_ids(staged, made, before_retry)
            if response.status_code == 409:
                table = self.load(name)
                if table is None or not was_created_by(table.json, creation):
                    raise exists
                return self._with_own_ids(staged, table, before_retry)
            return self._stored(name, self._read(response))

        def find(conflict: CommitConflict | None) -> StoredTable | None:
            table = self.load(name)
            if table is None:
                return None
            if was_created_by(table.json, creation):
                return self._with_own_ids(staged, table, before_retry)
            if not is_made(staged, table.json):
                raise conflict or exists
            return table

        return self._until_known(attempt, find, f"whether table `{name}` was created", before_retry)

    def _staged(self, commit: TableCommit, creation: str) -> TableCommit:
        """A creation with the uuid and the location that the server chose."""
        if self.load(commit.name) is not None:
            # Some servers stage a table that exists, with its own uuid.
            raise CommitConflict(f"there is a table or view `{commit.name}` already")
        metadata = self._created(commit, creation, is_staged=True).json
        return replace(commit, updates=with_staged_identity(commit.updates, metadata))

    def _created(self, commit: TableCommit, creation: str, is_staged: bool) -> StoredTable:
        name = commit.name
        path = f"{self._kind.client.namespace_path(name.namespace)}/tables"
        body = create_request(name.name, commit.updates, creation, is_staged)

        def attempt() -> StoredTable:
            response = self._send("POST", path, body)
            if response.status_code == 409:
                raise CommitConflict(f"there is a table or view `{name}` already")
            return self._stored(name, self._read(response))

        def find(conflict: CommitConflict | None) -> StoredTable | None:
            table = self.load(name)
            if table is not None and was_created_by(table.json, creation):
                return table
            if conflict is not None:
                raise conflict
            return None

        return self._until_known(attempt, find, f"whether table `{name}` was created")

    def _with_own_ids(
        self, commit: TableCommit, table: StoredTable, before_retry: BeforeRetry
    ) -> StoredTable:
        """Commit what a server chose otherwise when it created a table, such as the field ids."""
        updates = missing_changes(commit.updates)
        requirement = {
            "type": "assert-current-schema-id",
            "current-schema-id": table.json["current-schema-id"],
        }
        return self._commit(TableCommit(commit.name, table, updates, (requirement,)), before_retry)

    def _has_content(self, namespace: tuple[str, ...]) -> bool:
        kind = self._kind
        return bool(
            self._ask(lambda: kind.tables(namespace))
            or self._ask(lambda: kind.views(namespace))
            or self._ask(lambda: kind.children(namespace))
        )

    def _stored(self, name: TableName, answer: Mapping[str, Any]) -> StoredTable:
        location = answer.get("metadata-location")
        json = checked_metadata(name, answer.get("metadata"), location)
        if "config" in answer or "storage-credentials" in answer:
            self._files.use_credentials_of(answer, json["location"])
        return StoredTable(str(location or ""), json)

    @cached_property
    def _kind(self) -> RestKind:
        from icemigrate.catalog.pyiceberg_config import ignore_working_directory

        with convert_library_errors(self._settings):
            ignore_working_directory()
            from icemigrate.catalog.pyiceberg_kinds import RestKind

            return call_with_deadline(self._settings.timeout_s, lambda: RestKind(self._settings))

    def _ask(self, act: Callable[[], T]) -> T:
        with convert_library_errors(self._settings):
            return call_with_deadline(self._settings.timeout_s, act)

    def _send(
        self, method: str, path: str, json: Json | None = None, params: Mapping[str, str] | None = None
    ) -> Response:
        client = self._kind.client
        with convert_library_errors(self._settings):
            return exchange(self._settings, lambda: client.request(method, path, params=params, json=json))

    def _succeeded(self, response: Response) -> bool:
        from icemigrate.catalog.rest_client import require_success

        with convert_library_errors(self._settings):
            require_success(response)
        return True

    def _read(self, response: Response) -> dict[str, Any]:
        """The JSON of an answer to a change.

        :raises LostAnswer: the server made the change, but the answer is not the protocol's.
        """
        self._succeeded(response)
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or "metadata" not in answer:
            raise LostAnswer
        return answer

    def _require_accepted(self, response: Response, names: Sequence[TableName]) -> None:
        """Require that a commit was made.

        :raises CommitConflict: another client was faster.
        :raises CommitRefused: the server does not accept the updates.
        :raises CatalogError: the answer is an error that does not come from the catalog.
        """
        why = conflict_text(response)
        if why is not None:
            tables = ", ".join(f"`{name}`" for name in names)
            raise CommitConflict(
                f"another client changed {tables} first, so nothing was written: {self._settings.scrub(why)}"
            )
        try:
            self._succeeded(response)
        except CatalogError as error:
            if is_answer_of_a_catalog(response):
                raise CommitRefused(error.message, error.hint) from error
            raise

    def _until_known(
        self,
        attempt: Callable[[], T],
        find: Callable[[CommitConflict | None], T | None],
        what: str,
        before_retry: BeforeRetry = retry_always,
    ) -> T:
        return until_known(attempt, find, self._settings.name, what, before_retry)


def _is_same_table(table: StoredTable, base: StoredTable) -> bool:
    return bool(table.json["table-uuid"] == base.json["table-uuid"])
