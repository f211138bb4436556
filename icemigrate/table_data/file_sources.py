"""Files of data as one source of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from icemigrate.errors import UsageError
from icemigrate.table_data.input_files import DataFormat, InputFile, find_input_files, require_pyarrow
from icemigrate.table_data.json_rows import JsonSource
from icemigrate.table_data.load_database import LoadDatabase
from icemigrate.table_data.load_target import LoadTarget
from icemigrate.table_data.row_relations import LoadRelation
from icemigrate.table_data.row_sources import (
    ArrowSource,
    CsvSource,
    NumberedRows,
    ParquetSource,
    RowSource,
)


class FileSources:
    """Sources of several formats, one after the other."""

    is_repeatable = True

    def __init__(self, sources: Sequence[RowSource]) -> None:
        self._sources = tuple(sources)
        self.size = sum(source.size or 0 for source in sources)

    def columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        return frozenset().union(*(source.columns() for source in self._sources))

    def common_columns(self) -> frozenset[str]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        found = [source.common_columns() for source in self._sources if source.columns()]
        return frozenset.intersection(*found) if found else frozenset()

    def fast(self, db: LoadDatabase, target: LoadTarget) -> tuple[LoadRelation, ...] | None:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        found = [source.fast(db, target) for source in self._sources]
        if any(relations is None for relations in found):
            return None
        return tuple(relation for relations in found for relation in relations or ())

    def numbered(self, db: LoadDatabase, target: LoadTarget) -> Iterator[NumberedRows]:
        """See :class:`~icemigrate.table_data.row_sources.RowSource`."""
        for source in self._sources:
            yield from source.numbered(db, target)


def file_source(
    patterns: Sequence[str], db: LoadDatabase, data_format: DataFormat | None = None
) -> RowSource:
    """The rows of files.

    :raises UsageError: a file is missing, or is not of its format.
    """
    require_pyarrow()
    groups: dict[str, list[InputFile]] = {}
    for file in find_input_files(patterns, db.folder, data_format):
        kind = "csv" if file.format == "tsv" else file.format
        groups.setdefault(kind, []).append(file)
    sources = [_SOURCES[kind](files) for kind, files in groups.items()]
    return sources[0] if len(sources) == 1 else FileSources(sources)


def _arrow_files(files: Sequence[InputFile]) -> RowSource:
    sources = [ArrowSource(_arrow_table(file), file.shown, size=file.size) for file in files]
    return sources[0] if len(sources) == 1 else FileSources(sources)


def _arrow_table(file: InputFile) -> Any:
    """The content of an Arrow file, or of an Arrow stream in a file, mapped into memory."""
    import pyarrow as pa

    source = pa.memory_map(str(file.path))
    for reader in (pa.ipc.open_file, pa.ipc.open_stream):
        source.seek(0)
        try:
            return reader(source).read_all()
        except (pa.ArrowException, OSError):
            continue
    raise UsageError(f"{file.shown}: it is neither a complete Arrow file nor a complete Arrow stream")


_SOURCES: Mapping[str, Callable[[Sequence[InputFile]], RowSource]] = {
    "csv": CsvSource,
    "json": JsonSource,
    "parquet": ParquetSource,
    "arrow": _arrow_files,
}
