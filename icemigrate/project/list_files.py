"""Files with the values of a list: a value on each line, or in each row of CSV, or a list in JSON or YAML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from icemigrate.diagnostics import Diagnostic, FilePosition, did_you_mean
from icemigrate.files.parse.file_phrases import shorten_text
from icemigrate.files.parse.source_text import SourceText, read_source, shown_path
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import YamlScalar, YamlSequence
from icemigrate.files.read.list_sources import VALUE_RULE, is_list_value
from icemigrate.frozen import Frozen


class ListFile(Frozen):
    """The values of a file, or its errors.

    :param values: empty where there is an error.
    """

    values: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def read_list_file(root: Path, name: str, column: str | None) -> ListFile:
    """Read a file of a project.

    :param root: the folder of the project file, which the file must not be outside of, also through links.
    :param name: its path in that folder.
    :param column: of CSV with a header; ``None`` for a file with one value in each row and no header.
    """
    path = root / name
    source = read_source(path, shown_path(path), top=root)
    if isinstance(source, Diagnostic):
        return ListFile((), (source,))
    suffix = PurePosixPath(name).suffix.lower()
    read = _items if suffix in (".json", ".yaml", ".yml") else _rows if suffix == ".csv" else _lines
    found: dict[str, FilePosition] = {}
    diagnostics = list[Diagnostic]()
    for one in read(source, column):
        if isinstance(one, Diagnostic):
            diagnostics.append(one)
            continue
        value, place = one
        if not is_list_value(value):
            message = f"{shorten_text(value)} cannot be a value of a list"
            diagnostics.append(Diagnostic("bad-value", message, place, VALUE_RULE))
        elif value in found:
            message = f"`{value}` occurs twice, first on line {found[value].line}"
            diagnostics.append(Diagnostic("listed-twice", message, place))
        else:
            found[value] = place
    return ListFile(() if diagnostics else tuple(found), tuple(diagnostics))


_Read = Iterator["tuple[str, FilePosition] | Diagnostic"]


def _lines(source: SourceText, _column: str | None) -> _Read:
    for number, line in enumerate(source.text.split("\n"), 1):
        if line.strip():
            yield line.strip(), FilePosition(source.path, number, 1)


def _rows(source: SourceText, column: str | None) -> _Read:
    rows = csv.reader(io.StringIO(source.text), strict=True)
    at = 0
    try:
        if column is not None:
            header = next(rows, [])
            if column not in header:
                hint = did_you_mean(column, header) or f"columns: {', '.join(header)}"
                yield Diagnostic(
                    "bad-value", f"there is no column `{column}`", FilePosition(source.path, 1, 1), hint
                )
                return
            at = header.index(column)
        for row in rows:
            place = FilePosition(source.path, rows.line_num, 1)
            if column is None and len(row) > 1:
                hint = "name the column in the project file, as `column`, and write a header"
                yield Diagnostic("bad-value", f"the row has {len(row)} values", place, hint)
            elif len(row) > at:
                yield row[at].strip(), place
            elif row:
                yield Diagnostic("bad-value", f"the row has no value of `{column}`", place)
    except csv.Error as error:
        yield Diagnostic(
            "bad-format", f"the file is no CSV: {error}", FilePosition(source.path, rows.line_num, 1)
        )


def _items(source: SourceText, _column: str | None) -> _Read:
    parsed = parse_yaml(source)
    yield from parsed.diagnostics
    if parsed.node is None:
        return
    if not isinstance(parsed.node, YamlSequence):
        yield Diagnostic(
            "bad-value", "the file is no list", parsed.node.place, "for example `[acme, globex]`"
        )
        return
    for item in parsed.node.items:
        if (
            isinstance(item, YamlScalar)
            and isinstance(item.value, (str, int))
            and not isinstance(item.value, bool)
        ):
            yield item.text, item.place
        else:
            yield Diagnostic("bad-value", "a value of a list is a text or a whole number", item.place)
