"""The tables of a migration in one transaction, on real catalogs, while another client reads them.

The REST server of the other tests has no transactions, so this one has its tables in memory, and their files
on S3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event as Signal
from threading import Thread

import pytest
from pyarrow.fs import S3FileSystem
from pyiceberg.catalog import Catalog, load_catalog

from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.errors import IcemigrateError
from icemigrate.events import Event, TablePublishing
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.open_store import open_table_store
from icemigrate.metadata_engine.table_store import StoredTable, TableStore
from icemigrate.project import Project, choose_environment, pyiceberg_properties
from icemigrate.project.namespace_mapping import catalog_settings
from tests.servers.lake import Kind, on, rest_kind
from tests.servers.seaweedfs import SeaweedFS
from tests.support.rest_tables import TRANSACTIONS, rest_tables
from tests.support.small_commits import columns, with_column

_numbers = count(1)


@pytest.fixture
def transactional(kind: Kind, request: pytest.FixtureRequest) -> Iterator[Kind]:
    """A kind of catalog that has transactions."""
    if kind.name != "rest":
        yield kind
        return
    storage: SeaweedFS = request.getfixturevalue("seaweedfs_server")
    # Its REST catalog decides who writes to the bucket of its own tables.
    S3FileSystem(
        access_key=storage.access_key,
        secret_key=storage.secret_key,
        endpoint_override=storage.s3,
        allow_bucket_creation=True,
    ).create_dir("together")
    with rest_tables() as server:
        server.root = "s3://together"
        server.endpoints.append(TRANSACTIONS)
        yield dataclasses.replace(
            rest_kind(storage), variables={**rest_kind(storage).variables, "CATALOG_URI": server.uri}
        )


class Tables:
    """Tables that two migrations of a project create and change."""

    def __init__(self, kind: Kind, folder: Path, number: int) -> None:
        namespace = f"together{next(_numbers)}"
        made = kind.project(folder, namespace, history=f"{namespace}.history")
        self.project: Project = dataclasses.replace(made, apply_with="metadata")
        self.environment = choose_environment(self.project, None, kind.variables)
        self.names = [TableName((namespace,), f"t{number:02}") for number in range(number)]
        self._write(folder, "0001_make", "a")
        apply(self.project, plan(self.project).plan)
        self._write(folder, "0002_add", "b")

    def _write(self, folder: Path, name: str, column: str) -> None:
        path = folder / "migrations" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        entries = (
            f"  - name: market_data.{name.name}\n    columns: [{{name: {column}, type: int}}]\n"
            for name in self.names
        )
        path.write_text("tables:\n" + "".join(entries), encoding="utf-8")

    @contextmanager
    def store(self) -> Iterator[TableStore]:
        store = open_table_store(catalog_settings(self.environment))
        assert store is not None
        yield store
        store.close()

    def reader(self) -> Catalog:
        """Another client."""
        properties = pyiceberg_properties(self.environment)
        # From version 2.1 on SQLAlchemy takes another driver by itself, which need not be installed.
        uri = properties["uri"].replace("postgresql:", "postgresql+psycopg2:")
        return load_catalog(self.environment.catalog.name, **{**properties, "uri": uri})


@pytest.fixture(autouse=True)
def variables(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in kind.variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def variables_of_transactions(transactional: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in transactional.variables.items():
        monkeypatch.setenv(name, value)


class Poller:
    """Reads two tables again and again, the first one before and after the second one.

    :ivar seen: the columns of both, where the first one was the same before and after.
    """

    def __init__(self, catalog: Catalog, names: Sequence[TableName]) -> None:
        self.seen: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self._catalog, self._names, self._ends = catalog, names, Signal()
        self._thread = Thread(target=self._poll)

    def __enter__(self) -> Poller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._catalog.close()

    def _poll(self) -> None:
        while not self._ends.is_set():
            first, second, again = (self._read(name) for name in (*self._names, self._names[0]))
            if first == again:
                self.seen.append((first[1], second[1]))

    def _read(self, name: TableName) -> tuple[str, tuple[str, ...]]:
        table = self._catalog.load_table((*name.namespace, name.name))
        return table.metadata_location, tuple(field.name for field in table.schema().fields)


@pytest.mark.usefixtures("variables_of_transactions")
def test_readers_of_two_tables_never_see_them_out_of_step(transactional: Kind, tmp_path: Path) -> None:
    tables = Tables(transactional, tmp_path, 3)
    project = tables.project
    assert not plan(project).table_by_table
    with Poller(tables.reader(), [tables.names[0], tables.names[-1]]) as poller:
        for redo in (None, "0002"):
            apply(project, plan(project, redo=redo).plan)
            undo = plan_rollback(project)
            assert not undo.table_by_table
            rollback(project, undo.plan)
    assert all(first == second for first, second in poller.seen)
    assert {first for first, _ in poller.seen} == {("a",), ("a", "b")}


@pytest.mark.usefixtures("variables_of_transactions")
def test_a_failed_migration_of_twenty_tables_changes_none(transactional: Kind, tmp_path: Path) -> None:
    tables = Tables(transactional, tmp_path, 20)
    *others, last = tables.names

    with tables.store() as store:

        def loaded(name: TableName) -> StoredTable:
            table = store.load(name)
            assert table is not None
            return table

        def meddle(event: Event) -> None:
            if isinstance(event, TablePublishing) and event.table == last:
                store.commit([with_column(loaded(last), last, "b")])

        before = [loaded(name) for name in others]
        with pytest.raises(IcemigrateError, match="another client changed what this migration changes"):
            apply(tables.project, plan(tables.project).plan, on_event=meddle)
        assert [loaded(name) for name in others] == before
        assert columns(loaded(last)) == ["a", "b"]
        assert len(loaded(last).json["refs"]) == len(before[0].json["refs"])


@on("rest")
def test_a_server_without_transactions_is_named_by_the_plan(kind: Kind, tmp_path: Path) -> None:
    tables = Tables(kind, tmp_path, 2)
    reasons = [one.reason for one in plan(tables.project).table_by_table]
    assert reasons == ["catalog `lake_rest` commits one table at a time"]
