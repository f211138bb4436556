"""Creates a table that no migration declares, in one metadata commit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from icemigrate.changes.create_table import CreateTable
from icemigrate.diagnostics import Diagnostic, FilePosition, has_errors
from icemigrate.errors import Mistakes, UsageError
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.table import DEFAULT_FORMAT_VERSION, Table
from icemigrate.iceberg.types import since_version, walk_fields
from icemigrate.iceberg.validation import find_violations
from icemigrate.metadata_engine.table_creation import creation_commit
from icemigrate.metadata_engine.table_store import CommitConflict
from icemigrate.table_data.table_session import CurrentTable, TableSession
from icemigrate.table_data.writable_tables import require_free_name


def create_table(
    session: TableSession,
    name: str,
    schema: Any,
    *,
    format_version: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> CurrentTable:
    """Create a table.

    :param schema: a :class:`~icemigrate.iceberg.schema.Schema`, a :class:`~icemigrate.iceberg.table.Table`, a
        ``pyarrow.Schema``, or Iceberg's schema JSON.
    :param format_version: by default 2, or 3 where a type needs it.
    :raises UsageError: there is a table of this name, or the name is invalid or reserved.
    :raises Mistakes: Iceberg's or Spark's rules forbid the table; nothing is created.
    """
    declared = session.parse(name)
    table = _table(declared, schema)
    wanted = format_version or max(table.format_version, needed_version(table.schema))
    table = replace(table, format_version=wanted, properties={**table.properties, **(properties or {})})
    return create_declared(session, declared, table)


def create_declared(
    session: TableSession, declared: TableName, table: Table, where: str = ""
) -> CurrentTable:
    """Create a table as it is declared; see :func:`create_table`.

    :param table: with any unique field ids.
    :param where: the file that declares it, for messages.
    """
    made = require_creatable(session, declared, table, where)
    name = made.name
    session.store.create_namespace(name.namespace)
    commit = creation_commit(made, str(uuid4()), session.store.catalog_properties)
    try:
        (stored,) = session.store.commit([commit])
    except CommitConflict as error:
        raise UsageError(
            f"another client created table `{declared}` at the same time", "give the new table another name"
        ) from error
    return CurrentTable(declared, name, stored)


def require_creatable(session: TableSession, declared: TableName, table: Table, where: str = "") -> Table:
    """The table that :func:`create_declared` creates, with the field ids that it gets; changes nothing.

    :raises UsageError: there is a table of this name, or the name is reserved.
    :raises Mistakes: Iceberg's or Spark's rules forbid the table.
    """
    require_free_name(session.environment, declared)
    name = session.environment.names.table(declared)
    if session.find(declared) is not None:
        raise UsageError(
            f"table `{declared}` exists already",
            "give the new table another name, or add rows with `icemigrate table insert`",
        )
    made = CreateTable(name, replace(table, name=name)).apply(table)
    # One commit needs none of the specs and orders that statements make on the way.
    made = replace(made, spec=replace(made.spec, id=0), older_specs=(), older_orders=())
    place = FilePosition(where) if where else None
    found = tuple(
        Diagnostic(v.rule, v.message, place, v.hint)
        for v in find_violations(replace(made, name=declared), None)
        if not v.is_warning
    )
    if found:
        raise Mistakes(found, f"table `{declared}` is not created")
    return made


def needed_version(schema: Schema) -> int:
    """The format version that a schema needs, at least the default one."""
    versions = (since_version(field.type) for _, field in walk_fields(schema.root))
    return max((DEFAULT_FORMAT_VERSION, *versions))


def _table(name: TableName, schema: Any) -> Table:
    if isinstance(schema, Table):
        return schema
    if not isinstance(schema, Schema):
        from icemigrate.table_data.schema_inference import schema_from_value

        schema = schema_from_value(schema)
    return Table(name, schema)


def table_from_yaml(name: TableName, text: str, shown: str) -> Table:
    """The table of the entry of a migration file: its keys, without its name.

    :param text: YAML or JSON with `columns`, or a list of columns.
    :param shown: the file's name, for messages.
    :raises Mistakes: it declares no table.
    """
    import json

    import yaml

    try:
        entry = yaml.safe_load(_as_yaml(text) if text.lstrip()[:1] in ("{", "[") else text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = FilePosition(shown, mark.line + 1, mark.column + 1) if mark else FilePosition(shown)
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise Mistakes((Diagnostic("yaml-syntax", str(problem), place),)) from error
    if isinstance(entry, list):
        entry = {"columns": entry}
    if not isinstance(entry, dict) or "columns" not in entry:
        raise UsageError(
            f"{shown}: it has no key `columns`",
            "write `columns:` as in a migration file, or give Iceberg's schema JSON, which has `fields`",
        )
    # Each key is one line of JSON, which is YAML too.  Positions are those of the file's first line.
    text = _as_yaml(json.dumps({"tables": [{**entry, "name": str(name)}]}, default=str))
    read = read_migration(SourceText(shown, text), Version.parse("0001"), "create")
    found = [replace(d, place=FilePosition(shown)) for d in read.diagnostics]
    if read.migration is not None and not has_errors(found):
        replayed = replay_migration(EMPTY_STATE, read.migration)
        found += [replace(d, place=FilePosition(shown)) for d in replayed.diagnostics]
        tables = [wanted.table for wanted in replayed.wanted if wanted.table is not None]
        if tables and not has_errors(found):
            return tables[0]
    raise Mistakes(tuple(d for d in found if d.severity.value == "error"), f"{shown} declares no valid table")


_ESCAPE = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)", re.IGNORECASE | re.DOTALL)


def _as_yaml(text: str) -> str:
    """A JSON text whose escapes YAML has too: it has no pair of surrogates for one character."""

    def escape(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        pair = bytes.fromhex(found[1]) + bytes.fromhex(found[2])
        return f"\\U{ord(pair.decode('utf-16-be')):08x}"

    return _ESCAPE.sub(escape, text)
