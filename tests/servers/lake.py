"""Kinds of catalogs as a project file describes them, and a project on one of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

import pytest

import icemigrate
from icemigrate.events import Event
from icemigrate.execution.environment_session import open_environment
from icemigrate.history.history_properties import History
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.type_text import format_type
from icemigrate.project import Project, choose_environment, open_project, pyiceberg_properties
from icemigrate.results.command_results import ApplyResult, PlanResult
from icemigrate.spark.spark_engine import SparkEngine
from tests.servers.hive_metastore import HiveMetastore
from tests.servers.postgres import Postgres
from tests.servers.seaweedfs import SeaweedFS

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyspark.sql import SparkSession

KINDS = ("sqlite", "postgres", "rest")
"""The kinds that every test of this folder runs on; `hive` is only for tests that name it, see :func:`on`."""


def on(*kinds: str) -> pytest.MarkDecorator:
    """Run tests on these kinds of catalogs alone.

    :param kinds: some of :data:`KINDS`, or `hive`.
    """
    return pytest.mark.parametrize("kind", kinds, indirect=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of catalog.

    :param name: one of :data:`KINDS`, or `hive`.
    :param environment: what stands below an environment's name in a project file.
    :param variables: the process environment that it refers to; secrets are here alone.
    """

    name: str
    environment: str
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def catalog(self) -> str:
        """Its name in Spark and in the rows of SQL catalogs."""
        return f"lake_{self.name}"

    def project_file(self, namespace: str, history: str) -> str:
        """A project file in which every declared namespace has a name of its own here."""
        mapped = {"market_data": namespace, "archive": f"{namespace}_archive"}
        return (
            f"project: market\nhistory: {history}\nenvironments:\n  here:\n"
            + indent(dedent(self.environment), "    ")
            + f"    namespaces: {{{', '.join(f'{old}: {new}' for old, new in mapped.items())}}}\n"
        )

    def project(self, folder: Path, namespace: str, history: str) -> Project:
        """A project in a folder."""
        text = self.project_file(namespace, history)
        (folder / "icemigrate.yaml").write_text(text, encoding="utf-8")
        return open_project(folder)


def sqlite_kind(folder: Path) -> Kind:
    """The embedded catalog; the folder holds its file and its warehouse."""
    return Kind(
        "sqlite",
        f"catalog: {{name: lake_sqlite, type: sqlite, uri: {folder}/catalog.db, warehouse: {folder}/wh}}\n",
    )


def postgres_kind(server: Postgres, folder: Path) -> Kind:
    """A JDBC catalog; the folder is its warehouse."""
    return Kind(
        "postgres",
        f"""\
        catalog:
          name: lake_postgres
          type: jdbc
          uri: "${{DATABASE_URL}}"
          user: {server.user}
          password: "${{DATABASE_PASSWORD}}"
          warehouse: {folder}/wh
        """,
        {
            "DATABASE_URL": f"postgresql://127.0.0.1:{server.port}/{server.database}",
            "DATABASE_PASSWORD": server.password,
        },
    )


def hive_kind(server: HiveMetastore, folder: Path) -> Kind:
    """A Hive metastore; the folder is its warehouse."""
    return Kind(
        "hive",
        f"catalog: {{name: lake_hive, type: hive, uri: '{server.uri}', warehouse: {folder}/wh}}\n",
    )


def rest_kind(server: SeaweedFS) -> Kind:
    """A REST catalog with its tables on S3."""
    return Kind(
        "rest",
        f"""\
        catalog:
          name: lake_rest
          type: rest
          uri: "${{CATALOG_URI}}"
          warehouse: {server.warehouse}
          credential: "${{CATALOG_CREDENTIAL}}"
        storage:
          endpoint: "${{S3_ENDPOINT}}"
          path_style: true
          region: us-east-1
          access_key: "${{S3_ACCESS_KEY}}"
          secret_key: "${{S3_SECRET_KEY}}"
        """,
        {
            "CATALOG_URI": server.catalog,
            "CATALOG_CREDENTIAL": f"{server.access_key}:{server.secret_key}",
            "S3_ENDPOINT": server.s3,
            "S3_ACCESS_KEY": server.access_key,
            "S3_SECRET_KEY": server.secret_key,
        },
    )


class Lake:
    """A project on a kind of catalog, seen as its users see it: by its API, and by Spark SQL.

    :param namespace: what ``market_data`` is called in the catalog.
    """

    def __init__(self, kind: Kind, session: SparkSession, folder: Path, namespace: str) -> None:
        self.kind = kind
        self.session = session
        self.folder = folder
        self.namespace = namespace
        self.history_name = TableName((f"{namespace}_meta",), "history")
        self.project = kind.project(folder, namespace, str(self.history_name))
        self.api = icemigrate.Project(folder)
        self.engine = SparkEngine(session, kind.catalog)
        self.events: list[Event] = []

    def write(self, name: str, text: str) -> Path:
        """Write a migration file."""
        path = self.folder / "migrations" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def apply_with(self, engine: str) -> None:
        """Let the environment apply with ``spark`` or ``metadata`` from now on."""
        file = self.folder / "icemigrate.yaml"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("  here:\n", f"  here:\n    apply_with: {engine}\n"), encoding="utf-8")
        self.project, self.api = open_project(self.folder), icemigrate.Project(self.folder)

    def plan(self) -> PlanResult:
        """What is pending."""
        return self.api.plan()

    def apply(self) -> ApplyResult:
        """Apply what is pending, in the session that runs; afterwards nothing is left to do."""
        done = self.api.apply(spark=self.session, on_event=self.events.append)
        assert self.plan().is_empty
        return done

    def history(self) -> History:
        """What the history says, read as ``plan`` reads it."""
        with open_environment(self.project, None) as world:
            return world.history()

    def name(self, name: str = "trades", namespace: str | None = None) -> TableName:
        """A table's name in the catalog."""
        return TableName((namespace or self.namespace,), name)

    def find(self, name: TableName) -> Table | None:
        """A table as ``plan`` reads it."""
        with open_environment(self.project, None) as world:
            return world.catalog.load([name])[name]

    def table(self, name: str = "trades", namespace: str | None = None) -> Table:
        """A table that must be there, as ``plan`` reads it."""
        found = self.find(self.name(name, namespace))
        assert found is not None
        return found

    def type_of(self, column: str) -> str:
        """The type of a column of ``trades`` as text."""
        found = self.table().schema.find((column,))
        assert found is not None
        return format_type(found.type)

    def tables(self) -> tuple[TableName, ...]:
        """All tables of this test's namespaces."""
        with open_environment(self.project, None) as world:
            mine = (self.namespace, f"{self.namespace}_archive")
            return tuple(t for namespace in mine for t in world.catalog.tables((namespace,)))

    def sql_name(self, name: str = "trades", namespace: str | None = None) -> str:
        """A table's name in Spark SQL."""
        return f"{self.kind.catalog}.{namespace or self.namespace}.{name}"

    def pyiceberg(self) -> Catalog:
        """The catalog as PyIceberg reaches it, as somebody else would; to be closed."""
        from pyiceberg.catalog import load_catalog

        environment = choose_environment(self.project, None, dict(os.environ))
        properties = pyiceberg_properties(environment)
        # From version 2.1 on SQLAlchemy takes another driver by itself, which need not be installed.
        uri = properties["uri"].replace("postgresql:", "postgresql+psycopg2:")
        return load_catalog(self.kind.catalog, **{**properties, "uri": uri})

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement as somebody else would, with the name of ``trades`` for ``{t}``."""
        return [tuple(row) for row in self.session.sql(text.format(t=self.sql_name())).collect()]
