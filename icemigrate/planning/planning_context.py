"""Inputs of a plan beside the files and the tables, fetched before planning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from icemigrate.frozen import Frozen, field
from icemigrate.iceberg.file_evidence_values import ValueShare
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import TRASH_NAMESPACE, Table
from icemigrate.iceberg.undo_record import UndoRecord


class ReservedNames(Frozen):
    """Declared names that only icemigrate may use.

    :param reasons: why, as a predicate that follows the name.
    """

    reasons: Mapping[TableName, str] = field(default_factory=dict)
    is_trash_reserved: bool = False

    def reason(self, name: TableName) -> str | None:
        """Why a name is reserved; ``None`` where a migration may use it."""
        if self.is_trash_reserved and name.namespace[:1] == (TRASH_NAMESPACE,):
            return "is in the trash for dropped tables"
        return self.reasons.get(name)


NO_RESERVED_NAMES = ReservedNames()


class RedoInputs(Frozen):
    """The history's and the catalog's data about a rolled-back migration that is applied again.

    :param record: undo record of its first run; without one (``None``) its fields get new ids.
    :param later_applied: records of applied migrations with a higher version.
    :param earlier_rolled_back: records of rolled-back migrations with a lower version.
    :param tables_with_remaining_values: the current tables in which its rollback left values, by the declared
        name in the record; a table that is gone is missing.
    :param value_shares: how many rows have a value of a field, by table in the catalog and field id; missing
        where manifests do not show it.
    """

    record: UndoRecord | None = None
    later_applied: tuple[UndoRecord, ...] = ()
    earlier_rolled_back: tuple[UndoRecord, ...] = ()
    tables_with_remaining_values: Mapping[TableName, Table] = field(default_factory=dict)
    value_shares: Mapping[tuple[TableName, int], ValueShare] = field(default_factory=dict)


class PlanningContext(Frozen):
    """The environment of a plan.

    :param catalog_name: the catalog's name in Spark SQL.
    :param physical: maps a declared table name to the name in the environment's catalog.
    :param physical_namespace: does the same for a namespace.
    :param namespaces: the catalog's namespaces, by their name there.
    :param views: the views in the namespaces of tables that do not exist: no table can get their names.
    :param default_locations: where the catalog puts a new table, by its name there; needed for the names of
        :func:`icemigrate.planning.replay.reused_names`.
    :param overwrite: facts (``table:subject``) that are set whatever their current value is.
    :param keep: facts that keep their current value, as if the files declared it.
    :param overwrite_of: more of them by version, which an interrupted run was given.
    :param adjust: adds the environment's overrides (properties, location) to a declared table.
    :param begun: versions of interrupted runs.
    :param restored_fields: ids of fields that an interrupted run restored, by version and declared table.
    :param partitions_by_first_column: whether the catalog accepts that in a ``CREATE TABLE``.
    :param has_branches: whether rows can be written to a branch.
    :param is_catalog_known: whether the tables are those of a catalog.  Without one, a table to adopt may or
        may not exist, and the rules for new tables are not applied to it.
    :param last_copies: versions whose tags keep values that rollbacks did not restore, by table uuid and
        field id.
    :param are_statements_read: whether statements and checksums are needed, which take time.
    :param reserved: names that migrations may not use.
    :param is_original_property: whether a table, by its uuid, had a property's key with this value when it
        was created or adopted, so that no client changed it since.
    :param redos: inputs of applying a rolled-back migration again, by version.
    """

    project: str
    catalog_name: str
    physical: Callable[[TableName], TableName] = lambda name: name
    physical_namespace: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda namespace: namespace
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    views: frozenset[TableName] = frozenset()
    default_locations: Mapping[TableName, str] = field(default_factory=dict)
    overwrite: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()
    overwrite_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    adjust: Callable[[Table], Table] = lambda table: table
    begun: frozenset[str] = frozenset()
    restored_fields: Mapping[str, Mapping[TableName, frozenset[int]]] = field(default_factory=dict)
    partitions_by_first_column: bool = True
    has_branches: bool = True
    is_catalog_known: bool = True
    last_copies: Mapping[str | None, Mapping[int, Sequence[str]]] = field(default_factory=dict)
    are_statements_read: bool = True
    reserved: ReservedNames = NO_RESERVED_NAMES
    is_original_property: Callable[[str | None, str, str], bool] = lambda uuid, key, value: False
    redos: Mapping[str, RedoInputs] = field(default_factory=dict)
