"""What a load needs to know of a table: its columns, its partitions, its order, and its properties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from icemigrate.diagnostics import did_you_mean
from icemigrate.errors import EngineError, UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.metadata_parts import (
    current_schema,
    current_schema_id,
    default_order_id,
    default_spec_id,
    read_orders,
    read_specs,
)
from icemigrate.iceberg.partitioning import PartitionSpec, SortOrder
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.types import Field
from icemigrate.metadata_engine.parquet_values import stored_field
from icemigrate.table_data.table_session import CurrentTable


class LoadTarget(Frozen):
    """A table that rows are written to.

    :param columns: the stored ones, in order: those of types without values are left out.
    :param metadata: complete.
    """

    name: str
    metadata: Json
    schema: Schema
    columns: tuple[Field, ...]
    spec: PartitionSpec
    order: SortOrder

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the table."""
        return self.metadata.get("properties") or {}

    @property
    def data_folder(self) -> str:
        """The location of new data files (``write.data.path``, or below the table's own)."""
        default = f"{self.metadata['location'].rstrip('/')}/data"
        return self.properties.get("write.data.path", default).rstrip("/")

    def is_laid_out_as(self, other: LoadTarget) -> bool:
        """Whether files for the other one are files for this one too."""
        return self.layout == other.layout

    def has_columns_of(self, other: LoadTarget) -> bool:
        """Whether it is the same table with the same columns."""
        mine, others = self.metadata, other.metadata
        is_same = mine["table-uuid"] == others["table-uuid"]
        return is_same and current_schema_id(mine) == current_schema_id(others)

    @property
    def layout(self) -> tuple[object, ...]:
        """What files depend on."""
        json = self.metadata
        return (
            json["table-uuid"],
            json["location"],
            json["format-version"],
            current_schema_id(json),
            default_spec_id(json),
            default_order_id(json),
        )

    def column(self, name: str) -> Field:
        """The column of a name.

        :raises UsageError: there is none, or it has no values.
        """
        found = next((column for column in self.columns if column.name == name), None)
        if found is not None:
            return found
        if any(column.name == name for column in self.schema.fields):
            raise UsageError(
                f"icemigrate writes no values of the type of column `{name}` of table `{self.name}`",
                "leave the column out, or write it with Spark",
            )
        names = [column.name for column in self.columns]
        raise UsageError(
            f"table `{self.name}` has no column `{name}`",
            did_you_mean(name, names) or f"its columns are {', '.join(f'`{n}`' for n in names)}",
        )

    def require_columns(self, given: Sequence[str], where: str) -> None:
        """Check the names of the columns that some data has.

        :param where: names the data, as the subject of a sentence.
        :raises UsageError: the table lacks one, one is there twice, or a required one is missing.
        """
        require_distinct(given, where)
        known = {column.name: column for column in self.columns}
        for name in given:
            if name not in known:
                try:
                    self.column(name)
                except UsageError as error:
                    raise UsageError(f"{where}: {error.message}", error.hint) from error
        for column in self.schema.fields:
            if column.required and column.name not in given and column.write_default is None:
                raise UsageError(
                    f"{where}: there is no column `{column.name}`, which table `{self.name}` requires",
                    f"add the column `{column.name}`",
                )


def require_distinct(names: Sequence[str], where: str) -> None:
    """Check that no two columns of some data have the same name.

    :param where: names the data, as the subject of a sentence.
    :raises UsageError: a name is there twice.
    """
    for name, number in Counter(names).items():
        if number > 1:
            raise UsageError(f"{where}: column `{name}` is there twice", "remove one of the two")


def load_target(table: CurrentTable) -> LoadTarget:
    """The target of a table.

    :raises EngineError: DuckDB cannot distinguish its columns.
    """
    metadata = table.metadata
    schema = current_schema(metadata)
    columns = tuple(f for column in schema.fields if (f := stored_field(column)) is not None)
    folded = [column.name.lower() for column in columns]
    if len(set(folded)) < len(folded):
        raise EngineError(
            f"table `{table.declared}` has columns whose names differ only in case, and DuckDB ignores case",
            "write its rows with Spark",
        )
    spec = next(s for s in read_specs(metadata) if s.id == default_spec_id(metadata))
    order = next(o for o in read_orders(metadata) if o.id == default_order_id(metadata))
    return LoadTarget(str(table.declared), metadata, schema, columns, spec, order)
