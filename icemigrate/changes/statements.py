"""Shapes of statements that several kinds share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from icemigrate.changes.base import Change, Reversal, Reversible, Sql
from icemigrate.model.names import TableName
from icemigrate.sql.literals import keys_sql, properties_sql
from icemigrate.sql.names import table_sql


def alter_table(catalog: str, table: TableName, action: str) -> Sql:
    """``ALTER TABLE <table> <action>``."""
    return Sql(f"ALTER TABLE {table_sql(catalog, table)} {action}")


def set_properties(catalog: str, table: TableName, properties: Mapping[str, str]) -> Sql:
    """``SET TBLPROPERTIES`` for all of them at once."""
    return alter_table(catalog, table, f"SET TBLPROPERTIES {properties_sql(properties)}")


def unset_properties(catalog: str, table: TableName, keys: Iterable[str]) -> Sql:
    """``UNSET TBLPROPERTIES`` for all of them at once; one that is not there is no error in Spark."""
    return alter_table(catalog, table, f"UNSET TBLPROPERTIES {keys_sql(keys)}")


def reversible(reason: str) -> Reversal:
    """It can be undone without losing anything."""
    return Reversal(Reversible.YES, reason)


def of_one_kind(kind: type[Change], changes: Iterator[Change]) -> Iterator[Change]:
    """The changes up to the first one of another kind."""
    return takewhile(lambda change: type(change) is kind, changes)
