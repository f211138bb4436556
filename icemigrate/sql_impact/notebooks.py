"""Notebooks → the Python and the SQL in their cells, with the index of each character in the file.

Read are Jupyter's ``.ipynb`` and the source files that Databricks exports (``# MAGIC %sql`` in Python,
``-- MAGIC %python`` in SQL).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from icemigrate.sql_impact.sql_source import FragmentBuilder, SqlFragment

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_MAGIC = re.compile(r"\s*%{1,2}(\w+)[^\n]*\n?")
_PYTHON_MAGICS = frozenset({"python", "pyspark", "python3", "time", "timeit", "capture", "spark"})
_PROSE = frozenset({"md", "markdown", "html", "latex", "svg", "javascript", "js"})
_LINE_SQL = re.compile(r"^\s*%sql\s+(?=\S)", re.MULTILINE)
_SHELL = re.compile(r"^([ \t]*)[%!]", re.MULTILINE)
_MARKED = re.compile(r"^(?:#|--) MAGIC ?", re.MULTILINE)
_COMMAND = re.compile(r"^-- COMMAND -+$", re.MULTILINE)
_DEEPEST = 200
_TOO_DEEP = ("", "")
"""The path of a value that is nested more than :data:`_DEEPEST` deep."""


@dataclass(slots=True)
class Cells:
    """What the cells of a file hold.

    :param others: cells in other languages.
    :param why: why the cells of the file cannot be read; empty where they can.
    """

    python: list[SqlFragment] = field(default_factory=list)
    sql: list[SqlFragment] = field(default_factory=list)
    others: list[SqlFragment] = field(default_factory=list)
    why: str = ""


def jupyter_cells(text: str) -> Cells:
    """The cells of a Jupyter notebook; of another text, the whole of it as one that is not searched."""
    cells, language = Cells(), "python"
    sources: list[tuple[str, SqlFragment]] = []
    kind, parts = "code", FragmentBuilder()
    for path, at, piece in _strings(text):
        if path == _TOO_DEEP:
            return Cells(others=[SqlFragment.whole(text)], why="it is nested too deeply")
        if path == ("cells", "cell_type"):
            kind = piece
        elif path == ("cells", "source"):
            parts.append(_unescaped(piece, at))
        elif path == ("cells", ""):
            sources.append((kind, parts.built()))
            kind, parts = "code", FragmentBuilder()
        elif path == ("metadata", "kernelspec", "language"):
            language = piece.lower()
    if not text.lstrip().startswith("{") or '"cells"' not in text:
        return Cells(others=[SqlFragment.whole(text)], why="it is not a Jupyter notebook")
    for kind, source in sources:
        if kind == "code":
            _take_cell(source, language, cells)
    return cells


def _strings(text: str) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """The strings of a JSON document with the keys that lead there; ``("cells", "")`` ends a cell."""
    keys: list[str] = []
    is_object: list[bool] = []
    is_key = False
    for found in _TOKEN.finditer(text):
        piece = found[0]
        if piece in "{[":
            if len(is_object) > _DEEPEST:
                yield _TOO_DEEP, found.start(), ""
                return
            is_object.append(piece == "{")
            keys.append("")
            is_key = piece == "{"
        elif piece in "}]":
            if is_object:
                is_object.pop()
                keys.pop()
                path = tuple(key for key in keys if key)
                if piece == "}" and path == ("cells",):
                    yield ("cells", ""), found.start(), ""
            is_key = False
        elif piece == ",":
            is_key = bool(is_object) and is_object[-1]
        elif piece.startswith('"'):
            if is_key and is_object:
                keys[-1] = piece[1:-1]
                is_key = False
            elif is_object:
                yield tuple(key for key in keys if key), found.start() + 1, piece[1:-1]


def _unescaped(piece: str, start: int) -> SqlFragment:
    out, at = FragmentBuilder(), 0
    for found in _ESCAPE.finditer(piece):
        out.copy(piece[at : found.start()], start + at)
        written = chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])
        out.put(written, start + found.start())
        at = found.end()
    out.copy(piece[at:], start + at)
    return out.built()


def _cut(fragment: SqlFragment, start: int, end: int | None = None) -> SqlFragment:
    return SqlFragment(fragment.text[start:end], fragment.indexes[start:end])


def _take_cell(source: SqlFragment, language: str, cells: Cells) -> None:
    """Put a cell where its language belongs."""
    magic = _MAGIC.match(source.text)
    if magic is not None and magic[1] == "sql":
        start = source.text.index("sql", magic.start(1)) + 3
        first = source.text[start : magic.end()]
        # Options may stand behind the magic, or SQL.
        is_sql = not re.match(r"\s*(?:-|\w*\s*$|\w+\s*<<)", first)
        cells.sql.append(_cut(source, start if is_sql else magic.end()))
        return
    if magic is not None and magic[1] in _PROSE:
        return
    if magic is not None and magic[0].lstrip().startswith("%%") and magic[1] not in _PYTHON_MAGICS:
        cells.others.append(source)
        return
    if magic is not None and magic[1] in {"scala", "r", "sh", "bash", "fs"}:
        cells.others.append(source)
        return
    if language == "sql" and (magic is None or magic[1] not in _PYTHON_MAGICS):
        cells.sql.append(source)
        return
    if language not in {"python", "python3", "pyspark", "sql"}:
        cells.others.append(source)
        return
    for found in _LINE_SQL.finditer(source.text):
        end = source.text.find("\n", found.end())
        cells.sql.append(_cut(source, found.end(), end if end >= 0 else None))
    code = _SHELL.sub(lambda found: found[1] + "#", source.text)
    cells.python.append(SqlFragment(code, source.indexes))


def databricks_cells(text: str, *, is_python: bool) -> Cells:
    """The cells of a source file of Databricks that are in another language than the file itself."""
    cells = Cells()
    block = FragmentBuilder()
    at = 0
    for line in [*text.split("\n"), ""]:
        marked = _MARKED.match(line)
        if marked is not None:
            block.copy(line[marked.end() :] + "\n", at + marked.end())
        elif block.parts:
            inner = Cells()
            _take_cell(block.built(), "python" if is_python else "sql", inner)
            cells.sql += inner.sql if is_python else []
            cells.python += [] if is_python else inner.python
            cells.others += inner.others
            block = FragmentBuilder()
        at += len(line) + 1
    if not is_python:
        # Each `%python` cell begins with its magic, which is a comment in Python.
        cells.python = [SqlFragment(_SHELL.sub(r"\1#", one.text), one.indexes) for one in cells.python]
    return cells


def is_databricks(text: str) -> bool:
    """Whether a file is a source file of a Databricks notebook."""
    return text.startswith(("# Databricks notebook source", "-- Databricks notebook source"))


def with_commands(text: str) -> str:
    """SQL of Databricks whose commands end as statements do; every character keeps its index."""
    return _COMMAND.sub(lambda found: ";" + " " * (len(found[0]) - 1), text)
