"""The statements of a SQL catalog, as in Java's ``JdbcUtil``, for both forms of its tables.

See :mod:`icemigrate.catalog.sql_rows` for the forms.  A namespace is one column, its levels joined by dots.
"""

from __future__ import annotations

from contextlib import suppress

from icemigrate.catalog.sql_rows import NAMESPACES, TABLES, namespace_levels
from icemigrate.frozen import Frozen
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.sql_database import DuplicateRow, SqlTransaction

_CREATE_TABLES = (
    f"CREATE TABLE {TABLES}(catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,"
    " table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),"
    " previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),"
    " PRIMARY KEY (catalog_name, table_namespace, table_name))"
)
_CREATE_NAMESPACES = (
    f"CREATE TABLE {NAMESPACES}(catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,"
    " property_key VARCHAR(255), property_value VARCHAR(1000),"
    " PRIMARY KEY (catalog_name, namespace, property_key))"
)
_ROW = "catalog_name = :catalog AND table_namespace = :namespace AND table_name = :name"
_IS_TABLE = " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"


class SqlStatements(Frozen):
    """The statements on the rows of one catalog in one transaction.

    :param catalog: the catalog's name, which is the key of its rows.
    """

    transaction: SqlTransaction
    catalog: str

    def create_missing_tables(self) -> None:
        """Create the database's two tables, in Java's schema ``V1``, unless they exist."""
        for table, statement in ((TABLES, _CREATE_TABLES), (NAMESPACES, _CREATE_NAMESPACES)):
            if not self.transaction.columns(table):
                self.transaction.change(statement, {})

    def location(self, name: TableName) -> str | None:
        """The location of a table's metadata; ``None`` where there is no such table."""
        if not self.transaction.columns(TABLES):
            return None
        select = f"SELECT metadata_location FROM {TABLES} WHERE {_ROW}{self._is_table}"
        rows = self.transaction.rows(select, self._key(name))
        return None if not rows or not rows[0][0] else str(rows[0][0])

    def is_any_at(self, location: str) -> bool:
        """Whether a table of any name has its metadata at this location."""
        select = f"SELECT table_name FROM {TABLES} WHERE catalog_name = :catalog"
        return bool(
            self.transaction.rows(
                f"{select} AND metadata_location = :location", {"catalog": self.catalog, "location": location}
            )
        )

    def insert(self, name: TableName, location: str) -> bool:
        """Add a table's row; :returns: whether the name was free."""
        columns = "catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location"
        values = ":catalog, :namespace, :name, :location, NULL"
        if self._has_types:
            columns, values = f"{columns}, iceberg_type", f"{values}, 'TABLE'"
        try:
            self.transaction.change(
                f"INSERT INTO {TABLES} ({columns}) VALUES ({values})",
                {**self._key(name), "location": location},
            )
        except DuplicateRow:
            return False
        return True

    def swap(self, name: TableName, base: str, location: str) -> bool:
        """Move a table from one metadata file to the next; :returns: whether it was at the first one."""
        update = (
            f"UPDATE {TABLES} SET metadata_location = :location, previous_metadata_location = :base"
            f" WHERE {_ROW} AND metadata_location = :base{self._is_table}"
        )
        values = {**self._key(name), "base": base, "location": location}
        return self.transaction.change(update, values) == 1

    def rename(self, name: TableName, new: TableName) -> bool | None:
        """Rename a table.

        :returns: whether the new name was free; ``None`` where there is no table of the old name.
        """
        update = (
            f"UPDATE {TABLES} SET table_namespace = :new_namespace, table_name = :new_name"
            f" WHERE {_ROW}{self._is_table}"
        )
        key = {"new_namespace": _stored(new.namespace), "new_name": new.name}
        try:
            return True if self.transaction.change(update, {**self._key(name), **key}) else None
        except DuplicateRow:
            return False

    def delete(self, name: TableName) -> None:
        """Remove a table's row, if there is one."""
        self.transaction.change(f"DELETE FROM {TABLES} WHERE {_ROW}{self._is_table}", self._key(name))

    def insert_namespace(self, namespace: tuple[str, ...]) -> None:
        """Add a namespace, unless it has a row or contains tables."""
        if namespace in self._namespaces():
            return
        insert = (
            f"INSERT INTO {NAMESPACES} (catalog_name, namespace, property_key, property_value)"
            " VALUES (:catalog, :namespace, 'exists', 'true')"
        )
        with suppress(DuplicateRow):
            self.transaction.change(insert, {"catalog": self.catalog, "namespace": _stored(namespace)})

    def delete_namespace(self, namespace: tuple[str, ...]) -> bool:
        """Remove a namespace; :returns: ``False`` where it has tables, views or namespaces in it."""
        key = {"catalog": self.catalog, "namespace": _stored(namespace)}
        select = f"SELECT table_name FROM {TABLES} WHERE catalog_name = :catalog"
        if self.transaction.rows(f"{select} AND table_namespace = :namespace", key):
            return False
        levels = len(namespace)
        if any(len(one) > levels and one[:levels] == namespace for one in self._namespaces()):
            return False
        delete = f"DELETE FROM {NAMESPACES} WHERE catalog_name = :catalog AND namespace = :namespace"
        self.transaction.change(delete, key)
        return True

    def _namespaces(self) -> set[tuple[str, ...]]:
        key = {"catalog": self.catalog}
        select = f"SELECT DISTINCT table_namespace FROM {TABLES} WHERE catalog_name = :catalog"
        rows = list(self.transaction.rows(select, key))
        select = f"SELECT DISTINCT namespace FROM {NAMESPACES} WHERE catalog_name = :catalog"
        return {namespace_levels(str(row[0])) for row in (*rows, *self.transaction.rows(select, key))}

    @property
    def _has_types(self) -> bool:
        return "iceberg_type" in self.transaction.columns(TABLES)

    @property
    def _is_table(self) -> str:
        return _IS_TABLE if self._has_types else ""

    def _key(self, name: TableName) -> dict[str, str | None]:
        return {"catalog": self.catalog, "namespace": _stored(name.namespace), "name": name.name}


def _stored(namespace: tuple[str, ...]) -> str:
    return ".".join(namespace)
