"""Reads a file of migration tests (``migrations/tests/*.yaml``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from icemigrate.diagnostics import Diagnostic, FilePosition
from icemigrate.files.parse.json_schemas import load_schema
from icemigrate.files.parse.schema_validation import validate_node
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence, to_data
from icemigrate.files.read.node_values import (
    as_mapping,
    list_items,
    mapping_entries,
    read_flag,
    scalar_text,
    whole_number,
)
from icemigrate.frozen import Frozen, field

CellText: TypeAlias = "str | None"
"""A value as Spark casts it to the type of its column: the characters as written, JSON for a nested one."""


class GeneratedRows(Frozen):
    """Rows of test data.

    :param count: at least 1.
    """

    count: int
    seed: int = 0


class CaseRows(Frozen):
    """Rows of a table or of a query.

    :param columns: the columns that at least one row has, with the position of the first.
    :param rows: the cells of each row.
    :param file: the path of a file instead, as written.
    :param generated: test data instead.
    :param as_given: whether they are the rows that the test gives for the table.
    """

    place: FilePosition
    columns: Mapping[str, FilePosition] = field(default_factory=dict)
    rows: tuple[Mapping[str, CellText], ...] = ()
    file: str | None = None
    generated: GeneratedRows | None = None
    as_given: bool = False
    ordered: bool = False


class CaseQuery(Frozen):
    """A query and its expected result."""

    sql: str
    place: FilePosition
    expected: CaseRows


class MigrationTest(Frozen):
    """One test.

    :param version: as written.
    :param start: the version before the rows are written, as written; ``None`` for the one before.
    :param given: rows by the name of the table, as written.
    """

    name: str
    place: FilePosition
    version: str
    version_place: FilePosition
    start: str | None = None
    start_place: FilePosition | None = None
    given: Mapping[str, CaseRows] = field(default_factory=dict)
    expected: Mapping[str, CaseRows] = field(default_factory=dict)
    queries: tuple[CaseQuery, ...] = ()
    rolls_back: bool = False
    after_rollback: Mapping[str, CaseRows] = field(default_factory=dict)


class MigrationTestsRead(Frozen):
    """The tests of a file, and what is wrong with it."""

    tests: tuple[MigrationTest, ...]
    diagnostics: tuple[Diagnostic, ...]


def read_migration_tests(source: SourceText) -> MigrationTestsRead:
    """The tests of a file; none where it has an error."""
    parsed = parse_yaml(source)
    if parsed.node is None:
        empty = Diagnostic("empty-file", "the file is empty", FilePosition(source.path), "write `tests:`")
        return MigrationTestsRead((), (*parsed.diagnostics, *((empty,) if parsed.readable else ())))
    found = (*parsed.diagnostics, *validate_node(parsed.node, load_schema("migration-test")))
    if found:
        return MigrationTestsRead((), found)
    tests = tuple(_test(as_mapping(one)) for one in list_items(as_mapping(parsed.node).get("tests")))
    return MigrationTestsRead(tests, tuple(_contradictions(tests)))


def _contradictions(tests: tuple[MigrationTest, ...]) -> Iterator[Diagnostic]:
    names: set[str] = set()
    for test in tests:
        if test.name in names:
            message = f"two tests have the name `{test.name}`"
            yield Diagnostic("listed-twice", message, test.place, "choose another name")
        names.add(test.name)
        if test.after_rollback and not test.rolls_back:
            message = "`after_rollback` has no meaning without a rollback"
            place = next(iter(test.after_rollback.values())).place
            yield Diagnostic("conflicting-keys", message, place, "write `rollback: true`")
        for table, rows in test.after_rollback.items():
            if rows.as_given and table not in test.given:
                message = f"`given` has no rows for `{table}`"
                yield Diagnostic("missing-key", message, rows.place, "write the rows that you expect")
        if not (test.expected or test.queries or test.after_rollback):
            message = f"the test `{test.name}` expects nothing"
            yield Diagnostic("missing-key", message, test.place, "write `expect` or `queries`")


def _test(node: YamlMapping) -> MigrationTest:
    version, start, rollback = node.get("version"), node.get("from"), node.get("rollback")
    assert version is not None, "the schema requires it"
    queries = (as_mapping(one) for one in list_items(node.get("queries")))
    return MigrationTest(
        name=scalar_text(node.get("name")),
        place=node.place,
        version=scalar_text(version),
        version_place=version.place,
        start=None if start is None else scalar_text(start),
        start_place=None if start is None else start.place,
        given=_tables(node.get("given")),
        expected=_tables(node.get("expect")),
        queries=tuple(_query(one) for one in queries),
        rolls_back=rollback is not None and read_flag(rollback),
        after_rollback=_tables(node.get("after_rollback")),
    )


def _tables(node: YamlNode | None) -> dict[str, CaseRows]:
    return {} if node is None else {key.text: _rows(value) for key, value in mapping_entries(node)}


def _query(node: YamlMapping) -> CaseQuery:
    sql, rows = node.get("sql"), node.get("rows")
    assert sql is not None, "the schema requires it"
    assert rows is not None, "the schema requires it"
    ordered = node.get("ordered")
    return CaseQuery(scalar_text(sql), sql.place, _listed(rows, ordered is not None and read_flag(ordered)))


def _rows(node: YamlNode) -> CaseRows:
    if isinstance(node, YamlSequence):
        return _listed(node, False)
    if isinstance(node, YamlScalar):
        return CaseRows(node.place, as_given=True)
    found = as_mapping(node)
    ordered = found.get("ordered")
    is_ordered = ordered is not None and read_flag(ordered)
    if (file := found.get("file")) is not None:
        return CaseRows(file.place, file=scalar_text(file), ordered=is_ordered)
    if (generate := found.get("generate")) is not None:
        return CaseRows(generate.place, generated=_generated(as_mapping(generate)))
    rows = found.get("rows")
    assert rows is not None, "the schema requires a file, rows or `generate`"
    return _listed(rows, is_ordered)


def _generated(node: YamlMapping) -> GeneratedRows:
    seed = node.get("seed")
    return GeneratedRows(whole_number(node.get("rows")), 0 if seed is None else whole_number(seed))


def _listed(node: YamlNode, ordered: bool) -> CaseRows:
    columns: dict[str, FilePosition] = {}
    rows: list[dict[str, CellText]] = []
    for one in list_items(node):
        row: dict[str, CellText] = {}
        for key, value in mapping_entries(one):
            columns.setdefault(key.text, key.place)
            row[key.text] = cell_text(value)
        rows.append(row)
    return CaseRows(node.place, columns, tuple(rows), ordered=ordered)


def cell_text(node: YamlNode) -> CellText:
    """The text that Spark casts to a column's type."""
    if not isinstance(node, YamlScalar):
        return json.dumps(to_data(node), ensure_ascii=False)
    if node.value is None:
        return None
    return str(node.value).lower() if isinstance(node.value, bool) else node.text
