"""The data of a load, whatever its form: relations without row numbers, which are fast, and with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol
from uuid import uuid4

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Field, Primitive, is_nested
from icemigrate.table_data.arrow_columns import readable_arrow, readable_schema
from icemigrate.table_data.bad_rows import BadRow
from icemigrate.table_data.csv_quotes import require_closed_quotes
from icemigrate.table_data.csv_rows import (
    NumberedRecords,
    fast_relation,
    read_header,
    require_delimiter,
    require_encoding,
)
from icemigrate.table_data.duckdb_session import quoted_identifier, text_literal
from icemigrate.table_data.duckdb_types import duckdb_type
from icemigrate.table_data.input_files import InputFile
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget, require_distinct
from icemigrate.table_data.nested_casts import type_problem
from icemigrate.table_data.row_relations import NULL_TYPE, PROBLEM, ROW, SOURCE, TEXT, LoadRelation

GIVEN_DATA = "the data"
"""Names data of this process in messages."""


class NumberedRows(Frozen):
    """A relation with row numbers, open for one scan.

    :param unreadable: after the scan, the rows that the relation does not have.
    """

    relation: LoadRelation
    unreadable: Callable[[], Sequence[BadRow]] = lambda: ()


class RowSource(Protocol):
    """Some data of one form.

    :ivar is_repeatable: whether it can be read again.
    """

    is_repeatable: bool

    @property
    def size(self) -> int | None:
        """The size of its files, in bytes; ``None`` for data of this process."""
        ...

    def columns(self) -> frozenset[str]:
        """The names of its columns; with several files, of any of them."""
        ...

    def common_columns(self) -> frozenset[str]:
        """The columns that every row has, with a value or a null."""
        ...

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """Its rows without numbers; ``None`` where only numbered rows can be read.

        :raises UsageError: it has no such columns as the table.
        """
        ...

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """Its rows with numbers, each relation for one scan.

        :raises UsageError: it cannot be read.
        """
        ...


class CsvSource:
    """CSV or TSV files."""

    is_repeatable = True

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files, self.size = tuple(files), sum(file.size for file in files)
        self._headers = {file: read_header(file) for file in self._files}

    def columns(self) -> frozenset[str]:
        """See :class:`RowSource`."""
        return frozenset(name for header in self._headers.values() for name in header)

    def common_columns(self) -> frozenset[str]:
        """See :class:`RowSource`."""
        return frozenset.intersection(*map(frozenset, self._headers.values()))

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`RowSource`; files with the same header are one relation."""
        groups: dict[tuple[object, ...], list[InputFile]] = {}
        known = {column.name for column in target.columns}
        for file, header in self._headers.items():
            if len(header) == 1 and header[0] not in known:
                require_delimiter(file, header[0])
            target.require_columns(header, file.shown)
            groups.setdefault((header, file.format, file.compression), []).append(file)
        if any(is_nested(target.column(name).type) for name in self.columns()):
            return None
        return tuple(fast_relation(files, self._headers[files[0]]) for files in groups.values())

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`RowSource`."""
        for file, header in self._headers.items():
            require_encoding(file)
            lines = require_closed_quotes(file)
            columns = {name: target.column(name) for name in header}
            records = NumberedRecords(file, header, columns, lines)
            relation = register(db, records.reader(), file.shown, tuple(columns.values()))
            yield NumberedRows(relation, lambda records=records: records.ragged)  # type: ignore[misc]


def register(db: LoadDatabase, data: Any, file: str, columns: Sequence[Field]) -> LoadRelation:
    """Numbered batches as a relation."""
    name = f"rows_{uuid4().hex}"
    db.connection.register(name, data)
    types = {c.name: duckdb_type(c.type) if is_nested(c.type) else TEXT for c in columns}
    return LoadRelation(quoted_identifier(name), types, file, is_numbered=True)


class ParquetSource:
    """Parquet files, each with columns of its own."""

    is_repeatable = True

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files, self.size = tuple(files), sum(file.size for file in files)
        self._types: dict[InputFile, dict[str, str]] = {}

    def columns(self) -> frozenset[str]:
        """See :class:`RowSource`."""
        return frozenset(name for types in self._types.values() for name in types)

    def common_columns(self) -> frozenset[str]:
        """See :class:`RowSource`."""
        return frozenset.intersection(*map(frozenset, self._types.values()))

    def _relation(self, db: LoadDatabase, target: LoadTarget, file: InputFile) -> LoadRelation:
        sql = f"read_parquet({text_literal(str(file.path))}, hive_partitioning = false)"
        if file not in self._types:
            with file.reading_errors():
                self._types[file] = db.types(sql)
        return LoadRelation(sql, typed_columns(self._types[file], target, file.shown), file.shown)

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`RowSource`."""
        return tuple(self._relation(db, target, file) for file in self._files)

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`RowSource`."""
        for file in self._files:
            yield NumberedRows(with_numbers(self._relation(db, target, file)))


class ArrowSource:
    """A table or a dataset of Arrow, or a stream of batches, which can be read once.

    :param data: what DuckDB can scan.
    :param file: names the data in messages; empty for data of this process.
    :raises UsageError: two columns have the same name, or a column has a type that no table has.
    """

    def __init__(
        self, data: Any, file: str = "", *, is_repeatable: bool = True, size: int | None = None
    ) -> None:
        require_distinct(data.schema.names, file or GIVEN_DATA)
        self.size = size
        self._given, self._data = data.schema, readable_arrow(data)
        self._file, self.is_repeatable = file, is_repeatable

    def columns(self) -> frozenset[str]:
        """See :class:`RowSource`."""
        return frozenset(self._data.schema.names)

    def common_columns(self) -> frozenset[str]:
        """See :class:`RowSource`."""
        return self.columns()

    def _relation(self, db: LoadDatabase, target: LoadTarget) -> LoadRelation:
        where = self._file or GIVEN_DATA
        # Times lose their zone below, so the types are checked before.
        typed_columns(_types(db, readable_schema(self._given, keeps_zones=True)), target, where)
        types = typed_columns(_types(db, self._data.schema), target, where)
        name = f"rows_{uuid4().hex}"
        db.connection.register(name, self._data)
        return LoadRelation(quoted_identifier(name), types, self._file)

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`RowSource`."""
        return (self._relation(db, target),)

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`RowSource`."""
        yield NumberedRows(with_numbers(self._relation(db, target)))


def _types(db: LoadDatabase, schema: Any) -> dict[str, str]:
    """The types of Arrow's columns in DuckDB.

    :raises UsageError: DuckDB cannot read one of them.
    """
    import duckdb
    import pyarrow as pa

    name = f"empty_{uuid4().hex}"
    found = {}
    for field in schema:
        if pa.types.is_null(field.type):
            found[field.name] = NULL_TYPE
            continue
        try:
            # One after the other: DuckDB's error does not name the column.
            db.connection.register(name, schema.empty_table().select([field.name]))
            found |= db.types(name)
        except duckdb.Error as error:
            raise UsageError(
                f"column `{field.name}` of the data has the type {field.type}, which DuckDB does not read",
                "convert the column to a type such as a text, a number or a time",
            ) from error
    db.connection.unregister(name)
    return found


def with_numbers(relation: LoadRelation) -> LoadRelation:
    """A relation of typed rows with the numbers of its rows."""
    nothing = f"CAST(NULL AS VARCHAR) AS {PROBLEM}, CAST(NULL AS VARCHAR) AS {SOURCE}"
    sql = f"(SELECT row_number() OVER () AS {ROW}, {nothing}, * FROM {relation.sql})"
    return LoadRelation(sql, relation.types, relation.file, is_numbered=True)


def typed_columns(types: dict[str, str], target: LoadTarget, where: str) -> dict[str, str]:
    """The types of columns, of which texts are parsed where the table has another type.

    :raises UsageError: a column is not in the table, or its type fits no value.
    """
    target.require_columns(list(types), where)
    found = {}
    for name, given in types.items():
        column = target.column(name)
        if (problem := type_problem(column.type, given, name)) is not None:
            raise UsageError(
                f"{where}: {problem}", f"convert it to the type of the column in table `{target.name}`"
            )
        is_parsed = given == "VARCHAR" and column.type != Primitive("string")
        found[name] = TEXT if is_parsed else given
    return found
