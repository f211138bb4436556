"""Statements that several kinds of change share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from icemigrate.changes.change import Change, Reversal, Reversibility, SqlStatement
from icemigrate.iceberg.names import TableName
from icemigrate.spark_sql.identifiers import table_sql
from icemigrate.spark_sql.literals import keys_sql, properties_sql


def alter_table(catalog: str, table: TableName, action: str) -> SqlStatement:
    """``ALTER TABLE <table> <action>``."""
    return SqlStatement(f"ALTER TABLE {table_sql(catalog, table)} {action}")


def set_properties(catalog: str, table: TableName, properties: Mapping[str, str]) -> SqlStatement:
    """One ``SET TBLPROPERTIES`` for all properties."""
    return alter_table(catalog, table, f"SET TBLPROPERTIES {properties_sql(properties)}")


def unset_properties(catalog: str, table: TableName, keys: Iterable[str]) -> SqlStatement:
    """One ``UNSET TBLPROPERTIES`` for all keys; in Spark a missing key is not an error."""
    return alter_table(catalog, table, f"UNSET TBLPROPERTIES {keys_sql(keys)}")


def always_reversible(reason: str) -> Reversal:
    """The reversal of a change that can always be undone."""
    return Reversal(Reversibility.YES, reason)


def leading_of_kind(kind: type[Change], changes: Iterator[Change]) -> Iterator[Change]:
    """The changes before the first one of a different kind."""
    return takewhile(lambda change: type(change) is kind, changes)
