"""Iceberg's Java catalog below Spark's, and its tables, by Py4J: what Spark SQL has no statement for.

Py4J asks the JVM about every part of ``org.apache.iceberg.SchemaParser.fromJson`` whenever it is written,
which takes longer than most calls themselves.

A catalog that keeps no more than the place of a table's metadata file reads that file itself, and where the
storage is gone it tries twenty times, whatever is set (``BaseMetastoreTableOperations``): minutes, in which
a lock ends.  One question that is answered at once spares them.

Py4J's server leaves Nagle's algorithm on, and writes an answer in pieces of 8 KB: the second one waits for
the first to be acknowledged, which takes the system 40 ms.  So longer texts come compressed, in parts of a
size that is answered at once.

What it gives are Java's objects, and what fails in it are Java's errors
(:func:`~icemigrate.spark.java_errors.convert_java_errors`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.errors import EngineError
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.spark.java_errors import cause_chain
from icemigrate.spark_sql.identifiers import table_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CachedJvmView:
    """A view of packages, classes and their static members that caches lookups.

    :param found: Py4J's view of the JVM, a package or a class.
    """

    def __init__(self, found: Any) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaClass, JavaPackage

        value = getattr(self._found, name)
        if isinstance(value, (JavaPackage, JavaClass)):
            # Py4J's own view gets it too, so that other catalogs of the same JVM need not ask.
            setattr(self._found, name, value)
            value = CachedJvmView(value)
        # The next time it is an attribute like any other, and this is not called.
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any) -> Any:
        """Make an object of the class."""
        return self._found(*args)


_REST = "org.apache.iceberg.rest.RESTCatalog"
_OBJECT_STORES = ("s3:", "s3a:", "s3n:", "gs:", "abfs:", "abfss:", "wasb:", "wasbs:", "oss:")


class StorageProbe:
    """Checks the storage of the first table that was loaded.

    It does nothing for files on a disk, and for a REST catalog, whose server reads the files.
    """

    def __init__(self) -> None:
        self._ask: tuple[Any, str] | None = None
        self._is_known = False

    def require(self) -> None:
        """Check the storage.

        :raises py4j.protocol.Py4JJavaError: the storage cannot be reached, or refuses access.
        """
        if self._ask is not None:
            io, file = self._ask
            io.newInputFile(file).exists()  # whether the file exists does not matter: the storage answered

    def learn(self, catalog: Any, table: Any) -> None:
        """Remember where to ask.

        :param catalog: Java's ``Catalog`` that the table was loaded from.
        :param table: Java's ``Table``.
        """
        if self._is_known:
            return
        self._is_known = True
        file = str(table.operations().current().metadataFileLocation())
        if file.startswith(_OBJECT_STORES) and catalog.getClass().getName() != _REST:
            self._ask = (table.io(), file)


# In base 64, as Py4J sends bytes, this is under 8 KB.
_PART = 6000
# The library compresses a file with such a name.
_NAME = "read.gz.metadata.json"


def _metadata_json(iceberg: Any, metadata: Any) -> dict[str, Any]:
    """Iceberg's JSON of a Java ``TableMetadata``.

    :param iceberg: the JVM's package ``org.apache.iceberg``.
    """
    file = iceberg.inmemory.InMemoryOutputFile(_NAME)
    iceberg.TableMetadataParser.write(metadata, file)
    stream = file.toInputFile().newStream()
    found: dict[str, Any] = json.loads(gzip.decompress(b"".join(_parts(stream))))
    return found


def _parts(stream: Any) -> Iterator[bytes]:
    while True:
        part: bytes = stream.readNBytes(_PART)
        yield part
        if len(part) < _PART:
            return


_NO_TABLE = "org.apache.iceberg.exceptions.NoSuchTableException"
_NO_VIEW = ".NoSuchViewException"
_UNSUPPORTED = "java.lang.UnsupportedOperationException"
_MADE_MEANWHILE = ("duplicate column name", "already exists")


class JavaCatalog:
    """The catalog of a session.

    :param session: a session with a JVM of its own.
    :param name: the catalog's name in Spark SQL.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        self.name = name
        self.jvm: Any = CachedJvmView(session._jvm)
        self._session = session
        self._catalog: Any | None = None
        self._identifiers: dict[TableName, Any] = {}
        self._metadata_names: dict[str, bool] = {}
        self._reach = StorageProbe()

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
        """Java's ``Catalog`` of any kind; created on first access, and then kept."""
        if self._catalog is None:
            self._catalog = self._load()
        return self._catalog

    def close(self) -> None:
        """Close the catalog's connections, if there are any."""
        if self._catalog is not None:
            self._catalog.close()

    def _load(self) -> Any:
        self._activate()
        load = self.iceberg.spark.Spark3Util.loadIcebergCatalog
        try:
            return load(self.spark, self.name)
        except Exception as error:  # identified by its Java cause
            # When several processes open a new SQL catalog at once, all but one find its tables half created.
            if not any(text in cause.message for cause in cause_chain(error) for text in _MADE_MEANWHILE):
                raise
            return load(self.spark, self.name)

    def _activate(self) -> None:
        """Make the session the thread's active one: Spark looks up a catalog in that session's settings."""
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
        # Where there is no table `a.history`, Iceberg looks for the metadata table `history` of a table `a`,
        # in the empty namespace, and some REST servers refuse that request.
        if self._names_metadata(name.name) and not catalog.tableExists(identifier):
            return None
        try:
            table = catalog.loadTable(identifier)
        except Exception as error:  # identified by its Java cause
            if cause_chain(error)[0].kind == _NO_TABLE:
                return None
            raise
        self._reach.learn(catalog, table)
        return table

    def _names_metadata(self, name: str) -> bool:
        """Whether a metadata table of Iceberg has this name, such as `history`."""
        if name not in self._metadata_names:
            found = getattr(self.jvm.org.apache.iceberg.MetadataTableType, "from")(name)
            self._metadata_names[name] = found is not None
        return self._metadata_names[name]

    def view_json(self, name: TableName) -> Any | None:
        """The JSON of a view's metadata file; ``None`` where there is no such view.

        Asks Spark's catalog: Iceberg's own may be wrapped in a cache, which has no views.
        """
        self._activate()
        namespace = self.array(self.jvm.java.lang.String, name.namespace)
        identifier = self.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, name.name)
        try:
            view = self.spark.sessionState().catalogManager().catalog(self.name).loadView(identifier).view()
        except Exception as error:  # identified by its Java cause
            if cause_chain(error)[0].kind.endswith(_NO_VIEW):
                return None
            raise
        return json.loads(self.iceberg.view.ViewMetadataParser.toJson(view.operations().current()))

    def table(self, name: TableName) -> Any:
        """Java's ``Table``, freshly loaded.

        :raises EngineError: there is none.
        """
        table = self.find(name)
        if table is None:
            raise EngineError(f"table `{name}` no longer exists in catalog `{self.name}`")
        return table

    def read(self, metadata: Any) -> dict[str, Any]:
        """Java's ``TableMetadata`` as the JSON of a metadata file."""
        return _metadata_json(self.iceberg, metadata)

    def seen(self, name: TableName) -> Table:
        """The table right after a commit; refreshes Spark's own cache of it."""
        self.refresh(name)
        return table_from_json(self.read(self.table(name).operations().current()), name)

    def forget(self, name: TableName) -> None:
        """Remove a table from the catalog's cache, where the catalog has one."""
        self.catalog.invalidateTable(self.identifier(name))

    def refresh(self, name: TableName) -> None:
        """Refresh Spark's cache of a table that changed without Spark."""
        self.forget(name)
        # More is cached only where the user has cached data of some table in the session.
        if self.spark.sharedState().cacheManager().isEmpty():
            return
        try:
            self._session.sql(f"REFRESH TABLE {table_sql(self.name, name)}")
        except Exception as error:  # identified by its Java cause
            # Spark cannot load a table with a time or timestamp_ns column, so it caches nothing of it.
            if not any(cause.kind == _UNSUPPORTED for cause in cause_chain(error)):
                raise
