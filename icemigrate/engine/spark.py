"""The engine that is Spark: statements by Spark SQL, the rest by Iceberg's Java API in the same session."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from icemigrate.engine import append, markers, metadata_commit, reading
from icemigrate.engine.explain import causes, explain, is_commit_conflict, is_state_unknown
from icemigrate.engine.jvm import Names
from icemigrate.engine.port import Marker, OnProgress
from icemigrate.engine.reach import Reach
from icemigrate.errors import EngineError, MetadataError
from icemigrate.frozen import replace
from icemigrate.model.evidence import Evidence, Questions
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.metadata import table_from_json
from icemigrate.model.names import TableName
from icemigrate.model.table import Table
from icemigrate.sql.names import namespace_sql, table_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIES = 20
"""How often a commit is tried: two writers that never stop come in between five times running."""

_SUBSTITUTION = "spark.sql.variable.substitute"
_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property"
"""What stands before a key of a snapshot's summary, as a setting of the session."""
_LONGEST_PAUSE_S = 0.1

_NO_TABLE = "org.apache.iceberg.exceptions.NoSuchTableException"
_UNSUPPORTED = "java.lang.UnsupportedOperationException"
_EXISTS = "AlreadyExistsException"
_MADE_MEANWHILE = ("duplicate column name", "already exists")


class SparkEngine:
    """Changes tables through a Spark session; see :class:`~icemigrate.engine.port.Engine`.

    :param session: one that has a JVM of its own and Iceberg's SQL extensions.
    :param catalog_name: the catalog's name in Spark SQL.
    """

    def __init__(self, session: SparkSession, catalog_name: str) -> None:
        self._session = session
        self._catalog_name = catalog_name
        self._jvm = Names(session._jvm)
        self._java_catalog: Any | None = None
        self._identifiers: dict[TableName, Any] = {}
        self._reach = Reach()
        # Spark puts values in for `${…}` anywhere in a statement, in quoted names and strings too: a column
        # `${HOME}` would lose its name.  The setting is one of this session alone, and the session may be the
        # user's own: it stays off there, since statements may run at any later moment.
        session.conf.set(_SUBSTITUTION, "false")

    def close(self) -> None:
        """Let go of the catalog's connections; neither the engine nor its session's catalog works then."""
        with explained():
            if self._java_catalog is not None:
                self._java_catalog.close()

    @property
    def session(self) -> SparkSession:
        """The session that it works in."""
        return self._session

    @property
    def catalog_name(self) -> str:
        """The catalog's name in Spark SQL."""
        return self._catalog_name

    @property
    def takes_many_columns(self) -> bool:
        """Spark 4.0 and later."""
        return int(self._session.version.partition(".")[0]) >= 4

    def sql(self, text: str) -> None:
        """Run one statement; again, where another writer's commit came between its reading and its own."""
        with explained():
            for attempt in range(1, TRIES + 1):
                try:
                    self._session.sql(text)
                    break
                except Exception as error:  # known by its Java cause alone
                    # Iceberg tries appends again by itself, but no change of a schema.
                    if not is_commit_conflict(error) or attempt == TRIES:
                        raise

    def write(self, text: str, summary: Mapping[str, str]) -> None:
        """Run one statement that writes rows, and have its snapshots say so."""
        keys = {f"{_SNAPSHOT_PROPERTY}.{key}": value for key, value in summary.items()}
        try:
            for key, value in keys.items():
                self._session.conf.set(key, value)
            self.sql(text)
        finally:
            for key in keys:
                self._session.conf.unset(key)

    def rewrite_old_files(
        self, name: TableName, call: str, is_sorted: bool, on_progress: OnProgress = lambda share: None
    ) -> int:
        """See :mod:`icemigrate.engine.rewriting`."""
        from icemigrate.engine.rewriting import rewrite_old_files

        return rewrite_old_files(self, name, call, is_sorted, on_progress)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        with explained():
            return [tuple(row) for row in self._session.sql(text).collect()]

    def evidence(self, name: TableName, questions: Questions) -> Evidence:
        """What a table's manifests say."""
        from icemigrate.engine.evidence import gather

        return gather(self, name, questions)

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Make a namespace, unless it is there."""
        text = f"CREATE NAMESPACE IF NOT EXISTS {namespace_sql(self._catalog_name, namespace)}"
        with explained():
            try:
                self._session.sql(text)
            except Exception as error:  # known by its Java cause alone
                # Of several who make it at once, some are told that it exists, or of a database's own key.
                if not any(_EXISTS in cause.kind for cause in causes(error)):
                    self._session.sql(text)

    def drop_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Drop a namespace in which nothing is; :returns: whether it is gone."""
        name = namespace_sql(self._catalog_name, namespace)
        # Not every catalog refuses to drop one that holds something.
        if self.ask(f"SHOW TABLES IN {name}") or self.ask(f"SHOW NAMESPACES IN {name}"):
            return False
        self.sql(f"DROP NAMESPACE IF EXISTS {name}")
        return True

    def table(self, name: TableName) -> Table | None:
        """The table as it is now; ``None`` where there is none."""
        metadata = self.metadata_json(name)
        return None if metadata is None else table_from_json(metadata, name)

    def metadata_json(self, name: TableName) -> Mapping[str, Any] | None:
        """The table's metadata as it is now."""
        with explained():
            table = self._load(name)
            return None if table is None else self.read(table.operations().current())

    def commit(self, name: TableName, fold: Callable[[Table], Table]) -> Table:
        """Fold a change over the table as it is, in one commit."""
        with explained():
            for attempt in range(1, TRIES + 1):
                try:
                    return self._try_commit(name, fold)
                except Exception as error:  # known by its Java cause alone
                    if not is_commit_conflict(error) or attempt == TRIES:
                        raise
                    time.sleep(random.uniform(0, _LONGEST_PAUSE_S))  # noqa: S311 (nothing secret)
        raise AssertionError("the last try either commits or raises")

    def _try_commit(self, name: TableName, fold: Callable[[Table], Table]) -> Table:
        operations = self.java_table(name).operations()
        base = operations.current()
        before = table_from_json(self.read(base), name)
        after = fold(before)
        built = metadata_commit.build(self.iceberg, base, before, after)
        if built.changes().isEmpty():
            return before
        try:
            operations.commit(base, built)
        except Exception as error:  # as above
            if not is_state_unknown(error):
                raise
            # The catalog did not answer; what is there now tells whether it had done it.
            if self.read(self.java_table(name).operations().current()) != self.read(built):
                raise
        return self._seen(name)

    def create(self, table: Table) -> Table:
        """Make a table under exactly the field ids given."""
        with explained():
            schema = metadata_commit.java_schema(self.iceberg, table.schema)
            builder = self.java_catalog().buildTable(self.java_identifier(table.name), schema)
            builder.withPartitionSpec(metadata_commit.java_spec(self.iceberg, schema, table.spec))
            builder.withSortOrder(metadata_commit.java_order(self.iceberg, schema, table.sort_order))
            builder.withProperties({**table.properties, "format-version": str(table.format_version)})
            if table.location is not None:
                builder.withLocation(table.location)
            builder.create()
            made = self._seen(table.name)
        if _ids(made) == _ids(table):
            return made
        # Iceberg numbers a new table's fields afresh; a table that is made again keeps those it had.
        return self.commit(
            table.name,
            lambda now: replace(
                now,
                schema=table.schema,
                spec=table.spec,
                sort_order=table.sort_order,
                last_column_id=max(now.last_column_id, table.last_column_id),
            ),
        )

    def rename(self, name: TableName, new: TableName) -> None:
        """Give a table another name, by the catalog itself."""
        self.create_namespace(new.namespace)
        with explained():
            self.java_catalog().renameTable(self.java_identifier(name), self.java_identifier(new))

    def mark(self, name: TableName, marker: Marker) -> None:
        """Put the marker and its tags on a table."""
        with explained():
            for attempt in range(1, TRIES + 1):
                try:
                    markers.put(self.java_table(name), marker)
                    break
                except Exception as error:  # known by its Java cause alone
                    # What Iceberg tries again by itself is not enough beside a writer that never stops.
                    if not is_commit_conflict(error) or attempt == TRIES:
                        raise
            self.refresh(name)

    def append(
        self,
        name: TableName,
        rows: Sequence[Mapping[str, Any]],
        properties: Mapping[str, str],
        remove: Sequence[str],
        *,
        expected_head: int | None,
        summary: Mapping[str, str],
    ) -> int:
        """Move the head of main by compare-and-swap."""
        with explained():
            table = self.java_table(name)
            base, built, head = append.swap_head(
                self._jvm, table, rows, properties, remove, expected_head, summary
            )
            try:
                table.operations().commit(base, built)
            except Exception as error:  # known by its Java cause alone
                # A commit that is reported as failed may have succeeded; what is there now tells.
                if self.java_table(name).operations().current().snapshot(head) is None:
                    if is_commit_conflict(error):
                        raise append.head_moved(table) from error
                    raise
            self.java_catalog().invalidateTable(self.java_identifier(name))
            return head

    def metadata_location(self, name: TableName) -> str | None:
        """Where the table's metadata file is now."""
        with explained():
            table = self._load(name)
            return None if table is None else str(table.operations().current().metadataFileLocation())

    @property
    def iceberg(self) -> Any:
        """Py4J's view of the package ``org.apache.iceberg``."""
        return self._jvm.org.apache.iceberg

    def java_catalog(self) -> Any:
        """Iceberg's own catalog below Spark's, of whatever kind; a session keeps the one it has made."""
        if self._java_catalog is None:
            self._java_catalog = self._load_catalog()
        return self._java_catalog

    def _load_catalog(self) -> Any:
        self._activate()
        load = self.iceberg.spark.Spark3Util.loadIcebergCatalog
        try:
            return load(self._session._jsparkSession, self._catalog_name)
        except Exception as error:  # known by its Java cause alone
            # Of several who open a new SQL catalog at once, all but one find its tables half made.
            if not any(text in cause.message for cause in causes(error) for text in _MADE_MEANWHILE):
                raise
            return load(self._session._jsparkSession, self._catalog_name)

    def _activate(self) -> None:
        """Make the session the thread's active one: that one's settings are asked for a catalog, whichever
        session is given."""
        # Spark 3.5 has another class, and PySpark 3.5 no such method.
        found = getattr(type(self._session), "_get_j_spark_session_class", None)
        java = found(self._jvm) if found else self._jvm.org.apache.spark.sql.SparkSession
        java.setActiveSession(self._session._jsparkSession)

    def java_identifier(self, name: TableName) -> Any:
        """Java's ``TableIdentifier``."""
        if name not in self._identifiers:
            self._identifiers[name] = self._new_identifier(name)
        return self._identifiers[name]

    def _new_identifier(self, name: TableName) -> Any:
        parts = (*name.namespace, name.name)
        gateway = self._session.sparkContext._gateway
        assert gateway is not None, "a running session has its gateway"
        array = gateway.new_array(self._jvm.java.lang.String, len(parts))
        for at, part in enumerate(parts):
            array[at] = part
        return self.iceberg.catalog.TableIdentifier.of(array)

    def _load(self, name: TableName) -> Any | None:
        catalog, identifier = self.java_catalog(), self.java_identifier(name)
        catalog.invalidateTable(identifier)  # a session that the user passed in may cache tables
        self._reach.require()
        try:
            table = catalog.loadTable(identifier)
        except Exception as error:  # as above
            if causes(error)[0].kind == _NO_TABLE:
                return None
            raise
        self._reach.learn(catalog, table)
        return table

    def java_table(self, name: TableName) -> Any:
        """Java's ``Table``, freshly loaded.

        :raises EngineError: there is none.
        """
        table = self._load(name)
        if table is None:
            raise EngineError(f"there is no table `{name}` in catalog `{self._catalog_name}` any more")
        return table

    def read(self, metadata: Any) -> dict[str, Any]:
        """Java's ``TableMetadata`` as the JSON of a metadata file."""
        return reading.metadata_json(self.iceberg, metadata)

    def _seen(self, name: TableName) -> Table:
        """The table right after a commit, with Spark's own view of it made new."""
        self.refresh(name)
        return table_from_json(self.read(self.java_table(name).operations().current()), name)

    def refresh(self, name: TableName) -> None:
        """Make Spark forget what it knows of a table that was changed behind its back."""
        self.java_catalog().invalidateTable(self.java_identifier(name))
        # Only where the user has cached data of some table in the session is there more to forget.
        if self._session._jsparkSession.sharedState().cacheManager().isEmpty():
            return
        try:
            self._session.sql(f"REFRESH TABLE {table_sql(self._catalog_name, name)}")
        except Exception as error:  # known by its Java cause alone
            # Spark cannot load a table with a time or timestamp_ns column, so it caches nothing of it.
            if not any(cause.kind == _UNSUPPORTED for cause in causes(error)):
                raise


def _ids(table: Table) -> list[tuple[tuple[str, ...], int]]:
    return [(path, field.id) for path, field in table.schema.walk()]


@contextmanager
def explained() -> Iterator[None]:
    """Java's and Spark's errors as ours, in one sentence; a bug of ours stays what it is."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        raise explain(error) from error
    except BadMetadata as error:
        raise MetadataError(f"a table's metadata cannot be read: {error}") from error
