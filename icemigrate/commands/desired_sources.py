"""Reads the desired state that ``diff`` compares with: files, a folder, or a schema in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from icemigrate.commands.plan_from_empty import plan_from_empty
from icemigrate.commands.project_files import raise_if_errors
from icemigrate.desired_state import DOCUMENT_KINDS, DocumentKind
from icemigrate.desired_state.arrow_schema import read_arrow_schema
from icemigrate.desired_state.desired_table import DesiredTable
from icemigrate.desired_state.spark_schema import read_spark_schema
from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.errors import IcemigrateError, Mistakes, UsageError, os_error_reason
from icemigrate.files.parse.source_text import SIZE_LIMIT, SourceText, decode_source, shown_path
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import YamlNode
from icemigrate.files.read.migration_file import UNSET, MigrationFile, TableEntry
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.table import Table
from icemigrate.project.project_values import Project
from icemigrate.results.command_results import errors_besides_consents
from icemigrate.system.file_reads import open_named

_ARROW_FILES = (".arrow", ".feather", ".ipc")
_PARQUET_FILES = (".parquet", ".parq", ".pq")
_YAML_FILES = (".yaml", ".yml")
_INSTALL = "run `pip install 'icemigrate[metadata]'`"


class DesiredState(Frozen):
    """What a source describes.

    :param is_complete: whether a table that it does not describe is to be dropped.
    :param namespaces: declared namespaces, beside those of the tables.
    """

    tables: tuple[DesiredTable, ...]
    is_complete: bool = False
    namespaces: frozenset[tuple[str, ...]] = frozenset()
    notes: tuple[str, ...] = ()


def read_desired_state(project: Project, path: Path, names: Sequence[TableName]) -> DesiredState:
    """The desired state in a file or a folder.

    :param names: the tables that the user named; a schema needs exactly one.
    :raises UsageError: there is no such file, or a schema has no table.
    :raises Mistakes: with all errors of all files.
    :raises IcemigrateError: a file cannot be read.
    """
    if path.is_dir():
        return _declared(project, [_source(one) for one in _files_of(path)])
    if path.suffix.lower() in (*_PARQUET_FILES, *_ARROW_FILES):
        name = _only_name(names, path)
        return DesiredState((read_arrow_schema(_stored_schema(path), name, FilePosition(shown_path(path))),))
    source = _source(path)
    parsed = parse_yaml(source)
    raise_if_errors(parsed.diagnostics)
    kind = None if parsed.node is None else _kind_of(parsed.node)
    if kind is None or parsed.node is None:
        return _declared(project, [source])
    return DesiredState((kind.read(parsed.node, _only_name(names, path, kind.name)),))


def read_schema_object(schema: Any, names: Sequence[TableName]) -> DesiredState:
    """The desired state in a ``pyarrow.Schema`` or a Spark ``StructType``.

    :raises UsageError: it is neither, or has no table.
    :raises Mistakes: Iceberg has no type for some of its fields.
    """
    name = _only_name(names, None, "a schema")
    if hasattr(schema, "fieldNames") and hasattr(schema, "json"):
        document = parse_yaml(SourceText("schema", schema.json())).node
        assert document is not None, "a schema is a document"
        return DesiredState((read_spark_schema(document, name),))
    if hasattr(schema, "field") and hasattr(schema, "names"):
        return DesiredState((read_arrow_schema(schema, name),))
    raise UsageError(
        f"cannot compare with a `{type(schema).__name__}`",
        "pass a path, a `pyarrow.Schema` or a `pyspark.sql.types.StructType`",
    )


def _kind_of(document: YamlNode) -> DocumentKind | None:
    return next((kind for kind in DOCUMENT_KINDS if kind.fits(document)), None)


def _only_name(names: Sequence[TableName], path: Path | None, what: str = "a schema") -> TableName:
    if len(names) == 1:
        return names[0]
    where = what if path is None else f"`{path}` is {what}, which"
    if path is None:
        where += " describes one table"
    else:
        where += " describes the columns of one table"
    few = "`--table NAME` says which one" if not names else "pass `--table` once"
    raise UsageError(where, few)


def _files_of(folder: Path) -> Iterator[Path]:
    try:
        found = sorted(p for p in folder.iterdir() if p.suffix.lower() in _YAML_FILES)
    except OSError as error:
        raise IcemigrateError(f"`{folder}` cannot be read: {os_error_reason(error)}") from error
    if not found:
        raise UsageError(f"`{folder}` contains no YAML file", "`icemigrate show` prints tables as YAML")
    yield from found


def _source(path: Path) -> SourceText:
    try:
        with open_named(path) as stream:
            data = stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        kind = UsageError if isinstance(error, FileNotFoundError) else IcemigrateError
        raise kind(f"`{path}` cannot be read: {os_error_reason(error)}") from error
    source = decode_source(data, shown_path(path))
    if isinstance(source, Diagnostic):
        raise Mistakes((source,))
    return source


def _stored_schema(path: Path) -> Any:
    """The Arrow schema of a Parquet or Arrow file; its rows are not read."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise IcemigrateError(f"`{path}` needs pyarrow, which is not installed", _INSTALL) from error
    try:
        with open_named(path) as stream:
            if path.suffix.lower() in _PARQUET_FILES:
                return pyarrow.parquet.read_schema(stream)
            is_file = stream.read(6) == b"ARROW1"
            stream.seek(0)
            opened = pyarrow.ipc.open_file(stream) if is_file else pyarrow.ipc.open_stream(stream)
            return opened.schema
    except (pyarrow.ArrowException, OSError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = (
            os_error_reason(error) if isinstance(error, OSError) and error.strerror else _first_line(error)
        )
        kind = UsageError if is_missing else IcemigrateError
        raise kind(f"`{path}` cannot be read: {reason}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _declared(project: Project, sources: Iterable[SourceText]) -> DesiredState:
    """The tables of files in the form that ``show`` prints."""
    files, found = list[MigrationFile](), list[Diagnostic]()
    for number, source in enumerate(sources, start=1):
        read = read_migration(source, Version(number, f"{number:04}"), "desired", project.lists)
        found += [d for d in read.diagnostics if d.code != "empty-migration"]
        if read.migration is not None:
            files.append(_as_existing(read.migration))
    found += _declared_twice(files)
    planned = plan_from_empty(project, files)
    raise_if_errors((*found, *errors_besides_consents(planned.diagnostics)))
    entries = {name: entry for source in planned.sources for name, entry in source.entries.items()}
    tables = [_whole(table, entries[name]) for name, table in sorted(planned.state.tables.items())]
    return DesiredState(tuple(tables), True, planned.state.namespaces)


def _as_existing(file: MigrationFile) -> MigrationFile:
    """A file whose tables may pin references: a table that is created has no snapshots yet."""
    tables = tuple(replace(t, adopt=True) if t.pins_references else t for t in file.tables)
    return replace(file, tables=tables)


def _declared_twice(files: Sequence[MigrationFile]) -> Iterator[Diagnostic]:
    first: dict[str, FilePosition] = {}
    for file in files:
        for entry in file.tables:
            if entry.name is None:
                continue
            if entry.name in first:
                message = f"`{entry.name}` is declared in `{first[entry.name].file}` too"
                yield Diagnostic("listed-twice", message, entry.place_of(("name",)), "remove one of the two")
            first.setdefault(entry.name, entry.place)


def _whole(table: Table, entry: TableEntry) -> DesiredTable:
    return DesiredTable(
        table,
        is_whole=True,
        is_format_stated=entry.format_version is not UNSET,
        places={f.id: entry.place_of(("columns", format_path(p))) for p, f in table.schema.walk()},
        place=entry.place,
    )
