"""Checks foreign Parquet files against a table, from their footers, and describes them for its manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import Any

from icemigrate.catalog.capabilities import NAME_MAPPING
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import MissingExtra, extra_hint, os_error_reason
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import format_path
from icemigrate.iceberg.partitioning import IDENTITY
from icemigrate.iceberg.table_properties import ROWS_OF_TABLE
from icemigrate.iceberg.types import Primitive
from icemigrate.metadata_engine.data_files import DataFile
from icemigrate.metadata_engine.parquet_metrics import MetricColumn, describe_footer
from icemigrate.system.measured_activity import FILES, measured_activity
from icemigrate.table_data.adopted_columns import (
    FileColumns,
    iter_plain,
    mapped_ids,
    match_columns,
    name_mapping,
)
from icemigrate.table_data.adopted_files import CODE, AdoptedFile, open_parquet
from icemigrate.table_data.adopted_partitions import FileValues, partition_of
from icemigrate.table_data.adopted_values import (
    ColumnRange,
    footer_range,
    missing_values,
    read_range,
    read_values,
)
from icemigrate.table_data.load_target import LoadTarget


class CheckedFile(Frozen):
    """A file that fits a table.

    :param data: what a manifest says about it.
    :param ranges: of the table's columns by field id, where the footer or the folder proves them.
    :param has_ids: whether readers find its columns by field ids.
    """

    file: AdoptedFile
    data: DataFile
    ranges: Mapping[int, ColumnRange]
    has_ids: bool


class CheckedFiles(Frozen):
    """The files that fit a table, and why others do not.

    :param empty: the number of files without rows, which no table needs.
    :param doubled: the number of files whose rows `ingest` wrote to the table too.
    :param mapping: the name mapping that the table needs for them; ``None`` where it needs no other one.
    """

    files: tuple[CheckedFile, ...]
    problems: tuple[Diagnostic, ...]
    empty: int = 0
    doubled: int = 0
    mapping: str | None = None


def check_files(files: Sequence[AdoptedFile], target: LoadTarget) -> CheckedFiles:
    """Check files against a table; nothing is changed.

    :raises MissingExtra: pyarrow is not installed.
    """
    checked, problems = list[CheckedFile](), list[Diagnostic]()
    skipped = Counter[_Skip]()
    with measured_activity(f"Checking files for {target.name}", FILES, len(files)) as add:
        for file in files:
            try:
                found = _checked(file, target)
            except _Unfit as error:
                problems += error.problems
            else:
                if isinstance(found, _Skip):
                    skipped[found] += 1
                else:
                    checked.append(found)
            add(1)
    mapping = None
    if any(not one.has_ids for one in checked):
        mapping, wrong = _needed_mapping(target)
        problems += wrong
    return CheckedFiles(
        tuple(checked), tuple(problems), skipped[_Skip.EMPTY], skipped[_Skip.DOUBLED], mapping
    )


class _Skip(Enum):
    """Why a file that fits is left out."""

    EMPTY = "empty"
    DOUBLED = "doubled"


class _Unfit(Exception):
    """A file that does not fit."""

    def __init__(self, problems: Sequence[Diagnostic]) -> None:
        super().__init__(str(problems))
        self.problems = problems


def _checked(file: AdoptedFile, target: LoadTarget) -> CheckedFile | _Skip:
    """The check of one file.

    :raises _Unfit: it does not fit the table.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("pyarrow is not installed", extra_hint("table")) from error
    try:
        with _opened(file) as source:
            footer = pq.read_metadata(source)
        columns, mismatches = match_columns(footer, target.schema.fields)
        if mismatches:
            raise _Unfit([file.problem(one.message, one.hint) for one in mismatches])
        if footer.num_rows == 0:
            return _Skip.EMPTY
        of_table = (footer.metadata or {}).get(ROWS_OF_TABLE.encode())
        if of_table is not None and of_table.decode() == target.metadata["table-uuid"]:
            return _Skip.DOUBLED
        _require_values(file, footer, columns, target)
        partition, mismatches = partition_of(target, columns, file.keys, _values(file, footer))
        if mismatches:
            raise _Unfit([file.problem(one.message, one.hint) for one in mismatches])
        data = describe_footer(str(file.path), file.size, footer, columns.leaves, target.metadata, {})
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = os_error_reason(error) if isinstance(error, OSError) and error.errno else _first_line(error)
        raise _Unfit(
            [file.problem(f"it cannot be read as Parquet: {reason}", "move it out of the folder")]
        ) from None
    ranges = dict(_ranges(footer, columns, target, partition))
    return CheckedFile(file, replace(data, partition=partition), ranges, columns.has_ids)


@contextmanager
def _opened(file: AdoptedFile) -> Iterator[Any]:
    """What pyarrow reads a file from.

    :raises _Unfit: the storage does not give it.
    """
    with ExitStack() as stack:
        try:
            source = stack.enter_context(open_parquet(file.path))
        except OSError as error:
            hint = "check the right to read it, and that the storage can be reached"
            raise _Unfit([file.problem(f"it cannot be read: {os_error_reason(error)}", hint)]) from None
        yield source


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _require_values(file: AdoptedFile, footer: Any, columns: FileColumns, target: LoadTarget) -> None:
    """Require a value in each required field; the file may declare it as optional.

    :raises _Unfit: a row lacks one.
    """
    proven = {
        column.path
        for number, column in iter_plain(columns)
        if (found := footer_range(footer, number, column)) is not None and not found.nulls
    }
    loose = [path for path in columns.loose if path not in proven]
    missing = missing_values(file.path, loose, target.schema.fields) if loose else ()
    problems = [
        file.problem(f"column `{format_path(path)}` has nulls, and the table requires a value")
        for path in missing
    ]
    if problems:
        raise _Unfit(problems)


def _values(file: AdoptedFile, footer: Any) -> FileValues:
    def buckets(number: int, column: MetricColumn, count: int) -> set[int | None]:
        try:
            from pyiceberg_core import transform as library
        except ImportError as error:
            raise MissingExtra("pyiceberg-core is not installed", extra_hint("table")) from error
        found = set[int | None]()
        for array in read_values(file.path, number, column):
            found |= {None} if array.null_count else set()
            found.update(library.bucket(array.drop_null(), count).to_pylist())
        return found

    return FileValues(
        lambda number, column: footer_range(footer, number, column),
        lambda number, column: read_range(file.path, number, column),
        buckets,
    )


def _ranges(
    footer: Any, columns: FileColumns, target: LoadTarget, partition: Sequence[Any]
) -> Iterator[tuple[int, ColumnRange]]:
    """The values of the table's columns in a file, where they are known without reading it."""
    rows = footer.num_rows
    for number, column in iter_plain(columns):
        if (found := footer_range(footer, number, column)) is not None:
            yield column.field.id, found
    folders = {
        field.source_ids[0]: value
        for field, value in zip(target.spec.fields, partition, strict=True)
        if field.transform == IDENTITY
    }
    for field in columns.missing:
        value = folders.get(field.id)
        if field.initial_default is None and isinstance(field.type, Primitive):
            yield field.id, ColumnRange(rows, rows if value is None else 0, value, value)


def _needed_mapping(target: LoadTarget) -> tuple[str | None, tuple[Diagnostic, ...]]:
    """The name mapping for files without field ids, and why the table's own is not the one."""
    there = target.properties.get(NAME_MAPPING)
    if there is None:
        return name_mapping(target.schema.fields), ()
    ids = mapped_ids(there)
    wrong = [field.name for field in target.schema.fields if ids.get(field.name) != field.id]
    if not wrong:
        return None, ()
    problem = (
        f"`{NAME_MAPPING}` of table `{target.name}` does not have the field ids of "
        f"{', '.join(map(_quoted, wrong))}, and the files have no field ids"
    )
    return None, (Diagnostic(CODE, problem, None, "remove the property: it is set anew"),)


def _quoted(name: str) -> str:
    return f"`{name}`"
