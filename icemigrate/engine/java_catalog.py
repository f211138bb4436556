"""Iceberg's own catalog below Spark's, and its tables, by Py4J: the way of what Spark SQL has no words for.

What it gives are Java's objects, and what fails in it are Java's errors
(:func:`~icemigrate.engine.explain.explained`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.engine import reading
from icemigrate.engine.explain import causes
from icemigrate.engine.jvm import Names
from icemigrate.engine.reach import Reach
from icemigrate.errors import EngineError
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.sql.names import table_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_TABLE = "org.apache.iceberg.exceptions.NoSuchTableException"
_UNSUPPORTED = "java.lang.UnsupportedOperationException"
_MADE_MEANWHILE = ("duplicate column name", "already exists")


class JavaCatalog:
    """The catalog of a session.

    :param session: one that has a JVM of its own.
    :param name: the catalog's name in Spark SQL.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        self.name = name
        self.jvm: Any = Names(session._jvm)
        self._session = session
        self._catalog: Any | None = None
        self._identifiers: dict[TableName, Any] = {}
        self._reach = Reach()

    @property
    def iceberg(self) -> Any:
        """Py4J's view of the package ``org.apache.iceberg``."""
        return self.jvm.org.apache.iceberg

    @property
    def spark(self) -> Any:
        """Java's ``SparkSession``."""
        return self._session._jsparkSession

    @property
    def catalog(self) -> Any:
        """Java's ``Catalog``, of whatever kind; made when it is first asked for, and then kept."""
        if self._catalog is None:
            self._catalog = self._load()
        return self._catalog

    def close(self) -> None:
        """Let go of the catalog's connections, if there are any."""
        if self._catalog is not None:
            self._catalog.close()

    def _load(self) -> Any:
        self._activate()
        load = self.iceberg.spark.Spark3Util.loadIcebergCatalog
        try:
            return load(self.spark, self.name)
        except Exception as error:  # known by its Java cause alone
            # Of several who open a new SQL catalog at once, all but one find its tables half made.
            if not any(text in cause.message for cause in causes(error) for text in _MADE_MEANWHILE):
                raise
            return load(self.spark, self.name)

    def _activate(self) -> None:
        """Make the session the thread's active one: that one's settings are asked for a catalog, whichever
        session is given."""
        # Spark 3.5 has another class, and PySpark 3.5 no such method.
        found = getattr(type(self._session), "_get_j_spark_session_class", None)
        java = found(self.jvm) if found else self.jvm.org.apache.spark.sql.SparkSession
        java.setActiveSession(self.spark)

    def identifier(self, name: TableName) -> Any:
        """Java's ``TableIdentifier``."""
        if name not in self._identifiers:
            parts = self.array(self.jvm.java.lang.String, (*name.namespace, name.name))
            self._identifiers[name] = self.iceberg.catalog.TableIdentifier.of(parts)
        return self._identifiers[name]

    def array(self, of: Any, values: Sequence[Any]) -> Any:
        """A Java array.

        :param of: the class of its elements.
        """
        gateway = self._session.sparkContext._gateway
        assert gateway is not None, "a running session has its gateway"
        array = gateway.new_array(of, len(values))
        for at, value in enumerate(values):
            array[at] = value
        return array

    def find(self, name: TableName) -> Any | None:
        """Java's ``Table``, freshly loaded; ``None`` where there is none."""
        catalog, identifier = self.catalog, self.identifier(name)
        catalog.invalidateTable(identifier)  # a session that the user passed in may cache tables
        self._reach.require()
        try:
            table = catalog.loadTable(identifier)
        except Exception as error:  # known by its Java cause alone
            if causes(error)[0].kind == _NO_TABLE:
                return None
            raise
        self._reach.learn(catalog, table)
        return table

    def table(self, name: TableName) -> Any:
        """Java's ``Table``, freshly loaded.

        :raises EngineError: there is none.
        """
        table = self.find(name)
        if table is None:
            raise EngineError(f"there is no table `{name}` in catalog `{self.name}` any more")
        return table

    def read(self, metadata: Any) -> dict[str, Any]:
        """Java's ``TableMetadata`` as the JSON of a metadata file."""
        return reading.metadata_json(self.iceberg, metadata)

    def seen(self, name: TableName) -> Table:
        """The table right after a commit, with Spark's own view of it made new."""
        self.refresh(name)
        return table_from_json(self.read(self.table(name).operations().current()), name)

    def refresh(self, name: TableName) -> None:
        """Make Spark forget what it knows of a table that was changed behind its back."""
        self.catalog.invalidateTable(self.identifier(name))
        # Only where the user has cached data of some table in the session is there more to forget.
        if self.spark.sharedState().cacheManager().isEmpty():
            return
        try:
            self._session.sql(f"REFRESH TABLE {table_sql(self.name, name)}")
        except Exception as error:  # known by its Java cause alone
            # Spark cannot load a table with a time or timestamp_ns column, so it caches nothing of it.
            if not any(cause.kind == _UNSUPPORTED for cause in causes(error)):
                raise
