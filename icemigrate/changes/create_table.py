"""Creation of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import count
from typing import ClassVar

from icemigrate.changes.change import (
    Change,
    ChangePhase,
    MetadataCommit,
    PlanProblem,
    Reversal,
    SqlStatement,
    Statement,
    Subject,
    TablePair,
    TablePart,
)
from icemigrate.changes.reference_sql import create_reference_sql, reference_sql_problems
from icemigrate.changes.sort_order import order_sql, terms_of
from icemigrate.changes.statement_shapes import alter_table, always_reversible
from icemigrate.frozen import replace
from icemigrate.iceberg.names import FieldPath
from icemigrate.iceberg.partition_evolution import add_partition_field
from icemigrate.iceberg.partitioning import (
    FIRST_FIELD_ID,
    UNSORTED,
    PartitionField,
    PartitionSpec,
    SortOrder,
    default_create_name,
)
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import DESCRIPTION_PROPERTY, Table
from icemigrate.iceberg.types import Field, Struct, renumber_fields
from icemigrate.spark_sql.expressions import transform_sql
from icemigrate.spark_sql.identifiers import path_sql, quote, table_sql
from icemigrate.spark_sql.literals import properties_sql, string_sql
from icemigrate.spark_sql.type_sql import comment_sql, spark_type


class CreateTable(Change):
    """Create a table as declared.

    The planner creates it, not :meth:`detect`: only the catalog knows whether a table is new.

    :param made: the table as declared, with any unique field ids; without tags, which need a snapshot
        (:func:`~icemigrate.changes.reference_sql.is_on_empty_snapshot`).
    :param partition_afterwards: never use ``PARTITIONED BY``, for a catalog that refuses some of it:
        SeaweedFS's refuses a table partitioned by its first column.
    """

    kind: ClassVar[str] = "create_table"
    compares: ClassVar[frozenset[TablePart]] = frozenset()
    phase: ClassVar[ChangePhase] = ChangePhase.TABLE
    symbol: ClassVar[str] = "+"

    made: Table
    partition_afterwards: bool = False

    @classmethod
    def detect(cls, pair: TablePair) -> Iterator[Change]:
        """Nothing, see the class."""
        return iter(())

    @property
    def subject(self) -> Subject:
        """The table's own entry."""
        return ("name",)

    @property
    def is_metadata_commit(self) -> bool:
        """Whether Spark SQL cannot express the table, so that one metadata commit creates it."""
        return any(_column_sql(f) is None for f in self.made.schema.fields)

    def apply(self, table: Table) -> Table:
        """The created table, with ids as Iceberg assigns them (``TableMetadata.newTableMetadata``).

        It does not contain what the catalog adds: the properties ``owner`` and
        ``write.parquet.compression-codec``, a uuid, and the location if none is declared.

        :param table: a blank one, which is ignored.
        """
        schema, ids = _fresh_schema(self.made.schema)
        order = _fresh_order(self.made.sort_order, ids)
        by_commit = self.is_metadata_commit
        made = replace(
            self.made,
            name=self.table,
            schema=schema,
            spec=PartitionSpec(),
            sort_order=order,
            last_column_id=len(ids),
            last_partition_id=FIRST_FIELD_ID - 1,
            older_specs=(),
            # `CREATE TABLE` makes an unsorted table; only a metadata commit can create it with a sort order.
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
        """Whether ``PARTITIONED BY`` can express the spec: it chooses the names of fields itself."""
        if self.partition_afterwards:
            return not self.made.spec.live
        return all(f.name == default_create_name(self._path(f), f.transform) for f in self.made.spec.live)

    def _path(self, field: PartitionField) -> FieldPath:
        path = self.made.schema.path_of(field.source_ids[0])
        assert path is not None, f"partition field {field.name} has no source"
        return path

    def statements(self, before: Table, catalog: str) -> tuple[Statement, ...]:
        """``CREATE TABLE`` and statements for what it cannot express; or one metadata commit."""
        refs = [
            create_reference_sql(catalog, self.table, name, ref)
            for name, ref in sorted(self.made.refs.items())
        ]
        if self.is_metadata_commit:
            columns = [quote(f.name) for f in self.made.schema.fields if _column_sql(f) is None]
            summary = f"create the table; Spark SQL cannot express {', '.join(columns)}"
            return (MetadataCommit(summary), *refs)
        return (
            self._create(catalog),
            *([] if self._partitioned_at_once else self._partitions(catalog)),
            *self._order(catalog),
            *self._identifier(catalog),
            *refs,
        )

    def _create(self, catalog: str) -> SqlStatement:
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
        return SqlStatement("\n".join(clauses))

    def _properties(self) -> Mapping[str, str]:
        declared = {k: v for k, v in self.made.properties.items() if k != DESCRIPTION_PROPERTY}
        return {"format-version": str(self.made.format_version), **declared}

    def _partitions(self, catalog: str) -> Iterator[SqlStatement]:
        for field in self.made.spec.live:
            term = transform_sql(field.transform, self._path(field))
            yield alter_table(catalog, self.table, f"ADD PARTITION FIELD {term} AS {quote(field.name)}")

    def _order(self, catalog: str) -> Iterator[SqlStatement]:
        if self.made.sort_order.fields:
            # LOCALLY does not change the write distribution, which is one of the properties.
            terms = order_sql(terms_of(self.made.sort_order, self.made.schema))
            yield alter_table(catalog, self.table, f"WRITE LOCALLY ORDERED BY {terms}")

    def _identifier(self, catalog: str) -> Iterator[SqlStatement]:
        ids = self.made.schema.identifier_ids
        if ids:
            fields = ", ".join(path_sql(path) for path, f in self.made.schema.walk() if f.id in ids)
            yield alter_table(catalog, self.table, f"SET IDENTIFIER FIELDS {fields}")

    def problems(self, before: Table) -> Iterator[PlanProblem]:
        """Limits of references that Spark SQL cannot express."""
        for name, ref in self.made.refs.items():
            yield from reference_sql_problems(self.table, name, ref)

    def reversal(self, before: Table) -> Reversal:
        """Undoing renames it into the trash."""
        return always_reversible("undoing moves it to the trash, with its rows")

    def describe(self) -> str:
        """The number of its columns."""
        count_ = len(self.made.schema.fields)
        return f"create table with {count_} column{'' if count_ == 1 else 's'}"


def _column_sql(field: Field) -> str | None:
    """A column's definition; ``None`` if Spark SQL cannot express it, such as a default."""
    type_ = spark_type(field.type)
    if type_ is None or field.initial_default is not None or field.write_default is not None:
        return None
    required = " NOT NULL" if field.required else ""
    return f"{quote(field.name)} {type_}{required}{comment_sql(field.doc)}"


def _fresh_schema(schema: Schema) -> tuple[Schema, Mapping[int, int]]:
    """The schema with the ids of a new table, and these ids by the old ones."""
    numbers = count(1)
    root = renumber_fields(schema.root, lambda: next(numbers))
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
