"""A table is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import count
from typing import ClassVar

from icemigrate.changes.base import (
    Change,
    MetadataCommit,
    Pair,
    Phase,
    Problem,
    Reversal,
    Sql,
    Statement,
    Subject,
)
from icemigrate.changes.reference_sql import create_sql, unsayable_problem
from icemigrate.changes.sort_terms import order_sql, terms_of
from icemigrate.changes.statements import alter_table, reversible
from icemigrate.frozen import replace
from icemigrate.model.names import Path
from icemigrate.model.partitioning import FIRST_FIELD_ID, PartitionField, PartitionSpec, default_create_name
from icemigrate.model.schema import Schema
from icemigrate.model.sorting import UNSORTED, SortOrder
from icemigrate.model.spec_update import add_partition_field
from icemigrate.model.table import DESCRIPTION_PROPERTY, Table
from icemigrate.model.types import Field, Struct, renumber
from icemigrate.sql.literals import properties_sql, string_sql
from icemigrate.sql.names import path_sql, quote, table_sql
from icemigrate.sql.terms import transform_sql
from icemigrate.sql.types import comment_sql, spark_type


class CreateTable(Change):
    """A table is made, with everything that is declared of it.

    Found by the planner, not by :meth:`detect`: whether a table is new is a question about the catalog.

    :param made: the table as declared; field ids may be anything that is unique.
    :param partition_afterwards: never use ``PARTITIONED BY``, for a catalog that refuses some of it:
        SeaweedFS's refuses a table partitioned by its first column.
    """

    kind: ClassVar[str] = "create_table"
    phase: ClassVar[Phase] = Phase.TABLE
    symbol: ClassVar[str] = "+"

    made: Table
    partition_afterwards: bool = False

    @classmethod
    def detect(cls, pair: Pair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        """The table's own entry."""
        return ("name",)

    @property
    def by_commit(self) -> bool:
        """Whether Spark SQL has no words for it, so that Iceberg's Java API makes it in one commit."""
        return any(_column_sql(f) is None for f in self.made.schema.fields)

    def apply(self, table: Table) -> Table:
        """The table that comes out, ids as Iceberg gives them (``TableMetadata.newTableMetadata``).

        What the catalog adds by itself is not in it: the properties ``owner`` and
        ``write.parquet.compression-codec``, a uuid, and the location where none is declared.

        :param table: a blank one; nothing of it is kept.
        """
        schema, ids = _fresh_schema(self.made.schema)
        order = _fresh_order(self.made.sort_order, ids)
        by_commit = self.by_commit
        made = replace(
            self.made,
            name=self.table,
            schema=schema,
            spec=PartitionSpec(),
            sort_order=order,
            last_column_id=len(ids),
            last_partition_id=FIRST_FIELD_ID - 1,
            older_specs=(),
            # The order of the creation is unsorted; only one commit can give another one at once.
            older_orders=() if by_commit or order == UNSORTED else (UNSORTED,),
            snapshot=None,
            dropped=(),
        )
        fields = [replace(f, source_ids=tuple(ids[i] for i in f.source_ids)) for f in self.made.spec.live]
        if by_commit or self._partitioned_at_once:
            return _partitioned(made, fields)
        return reduce(lambda t, f: add_partition_field(t, f.source_ids[0], f.transform, f.name), fields, made)

    @property
    def _partitioned_at_once(self) -> bool:
        """Whether ``PARTITIONED BY`` can say it: it gives the names itself."""
        if self.partition_afterwards:
            return not self.made.spec.live
        return all(f.name == default_create_name(self._path(f), f.transform) for f in self.made.spec.live)

    def _path(self, field: PartitionField) -> Path:
        path = self.made.schema.path_of(field.source_ids[0])
        assert path is not None, f"partition field {field.name} has no source"
        return path

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``CREATE TABLE`` and what it cannot say; or one commit for everything."""
        refs = [create_sql(catalog, self.table, name, ref) for name, ref in sorted(self.made.refs.items())]
        if self.by_commit:
            columns = [quote(f.name) for f in self.made.schema.fields if _column_sql(f) is None]
            summary = f"create the table; Spark SQL has no words for {', '.join(columns)}"
            return (MetadataCommit(summary), *refs)
        return (
            self._create(catalog),
            *([] if self._partitioned_at_once else self._partitions(catalog)),
            *self._order(catalog),
            *self._identifier(catalog),
            *refs,
        )

    def _create(self, catalog: str) -> Sql:
        columns = ",\n  ".join(c for f in self.made.schema.fields if (c := _column_sql(f)) is not None)
        clauses = [f"CREATE TABLE {table_sql(catalog, self.table)} (\n  {columns}\n)", "USING iceberg"]
        if self._partitioned_at_once and self.made.spec.live:
            terms = ", ".join(transform_sql(f.transform, self._path(f)) for f in self.made.spec.live)
            clauses.append(f"PARTITIONED BY ({terms})")
        if self.made.location is not None:
            clauses.append(f"LOCATION {string_sql(self.made.location)}")
        if DESCRIPTION_PROPERTY in self.made.properties:
            clauses.append(f"COMMENT {string_sql(self.made.properties[DESCRIPTION_PROPERTY])}")
        clauses.append(f"TBLPROPERTIES {properties_sql(self._properties())}")
        return Sql("\n".join(clauses))

    def _properties(self) -> Mapping[str, str]:
        declared = {k: v for k, v in self.made.properties.items() if k != DESCRIPTION_PROPERTY}
        return {"format-version": str(self.made.format_version), **declared}

    def _partitions(self, catalog: str) -> Iterator[Sql]:
        for field in self.made.spec.live:
            term = transform_sql(field.transform, self._path(field))
            yield alter_table(catalog, self.table, f"ADD PARTITION FIELD {term} AS {quote(field.name)}")

    def _order(self, catalog: str) -> Iterator[Sql]:
        if self.made.sort_order.fields:
            # LOCALLY leaves the write distribution alone, which stands among the properties already.
            terms = order_sql(terms_of(self.made.sort_order, self.made.schema))
            yield alter_table(catalog, self.table, f"WRITE LOCALLY ORDERED BY {terms}")

    def _identifier(self, catalog: str) -> Iterator[Sql]:
        ids = self.made.schema.identifier_ids
        if ids:
            fields = ", ".join(path_sql(path) for path, f in self.made.schema.walk() if f.id in ids)
            yield alter_table(catalog, self.table, f"SET IDENTIFIER FIELDS {fields}")

    def problems(self, before: Table) -> Iterator[Problem]:
        """A tag needs a snapshot, and a new table has none."""
        for name, ref in self.made.refs.items():
            yield from unsayable_problem(self.table, name, ref, has_snapshot=False)

    def reversal(self, before: Table) -> Reversal:
        """It is renamed into the trash."""
        return reversible("undoing puts it into the trash, with its rows")

    def describe(self) -> str:
        """The table, by what it holds."""
        count_ = len(self.made.schema.fields)
        return f"create table with {count_} column{'' if count_ == 1 else 's'}"


def _column_sql(field: Field) -> str | None:
    """A column's definition, or ``None`` where Spark SQL cannot say it (a default among others)."""
    type_ = spark_type(field.type)
    if type_ is None or field.initial_default is not None or field.write_default is not None:
        return None
    required = " NOT NULL" if field.required else ""
    return f"{quote(field.name)} {type_}{required}{comment_sql(field.doc)}"


def _fresh_schema(schema: Schema) -> tuple[Schema, Mapping[int, int]]:
    """The schema with the ids that a creation gives, and those ids by the old ones."""
    numbers = count(1)
    root = renumber(schema.root, lambda: next(numbers))
    assert isinstance(root, Struct)
    fresh = Schema(root.fields)
    ids = {old.id: new.id for (_, old), (_, new) in zip(schema.walk(), fresh.walk(), strict=True)}
    return replace(fresh, identifier_ids=frozenset(ids[i] for i in schema.identifier_ids)), ids


def _fresh_order(order: SortOrder, ids: Mapping[int, int]) -> SortOrder:
    if not order.fields:
        return UNSORTED
    fields = tuple(replace(f, source_ids=tuple(ids[i] for i in f.source_ids)) for f in order.fields)
    return SortOrder(fields, id=1)


def _partitioned(table: Table, fields: list[PartitionField]) -> Table:
    numbered = tuple(replace(f, id=FIRST_FIELD_ID + i) for i, f in enumerate(fields))
    last = FIRST_FIELD_ID + len(fields) - 1
    return replace(table, spec=PartitionSpec(numbered), last_partition_id=last)
