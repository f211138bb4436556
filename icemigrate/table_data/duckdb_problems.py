"""DuckDB's exceptions as sentences with a hint: what is wrong in some SQL, where, and what to write.

A connection of :func:`report_problems` gives its exceptions as JSON, which has the missing name, similar
names, and the position.  Other exceptions have only a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.diagnostics import did_you_mean
from icemigrate.frozen import Frozen

if TYPE_CHECKING:
    import duckdb

_KIND = re.compile(r"\A([A-Z][A-Za-z ]*) Error: ")
_DOCUMENT = re.compile(r'\{"exception_type":.*\}', re.DOTALL)
_COLUMN_OF_TABLE = re.compile(
    r'(?:Table|Values list) "(?P<table>.*)" does not have a column named "(?P<column>.*)"\Z'
)
_MISSING_TABLE = re.compile(
    r'Referenced table "(?P<name>.*)" not found!(?: Candidate tables: (?P<others>.*))?'
)
_NOT_COMPARED = re.compile(
    r"Cannot compare values of type (?P<one>.*) and type (?P<other>.*) - an explicit cast"
)
_LITERAL = re.compile(r"\b(INTEGER|STRING)_LITERAL\b")
_LISTED = 8
"""How many columns or forms of a function a hint names."""


class DuckdbProblem(Frozen):
    """What DuckDB says of a statement.

    :param message: without the kind of the exception, on one line.
    :param exception: the kind of the exception, such as ``Binder``.
    :param position: of the problem in the statement, in bytes; ``None`` where DuckDB gives none.
    :param kind: such as ``COLUMN_NOT_FOUND``; empty for most problems.
    :param name: of what is missing.
    :param candidates: similar names, or the forms of a function.
    """

    message: str
    exception: str = ""
    position: int | None = None
    kind: str = ""
    name: str = ""
    candidates: tuple[str, ...] = ()


class Advice(Frozen):
    """A problem in words.

    :param message: what is wrong.
    :param hint: what to do.
    """

    message: str
    hint: str


def report_problems(connection: duckdb.DuckDBPyConnection) -> None:
    """Make a connection give exceptions that :func:`duckdb_problem` reads completely."""
    connection.execute("SET errors_as_json = true")


def duckdb_problem(error: BaseException) -> DuckdbProblem:
    """What an exception says, which DuckDB or a stream of Arrow raised."""
    text = str(error)
    found = _DOCUMENT.search(text)
    if found is not None:
        try:
            return _from_document(json.loads(found.group()))
        except (ValueError, KeyError):
            pass
    prefix = _KIND.match(text)
    message = _one_line(_KIND.sub("", text.partition("\nLINE ")[0].partition("\n\n")[0]))
    return DuckdbProblem(message, "" if prefix is None else prefix[1])


def _from_document(document: dict[str, Any]) -> DuckdbProblem:
    text = str(document["exception_message"]).partition("\n\n")[0].partition("\n\tCandidate")[0]
    position = document.get("position")
    kind = str(document.get("error_subtype") or "")
    listed = str(document.get("candidates") or "")
    separator = r",(?![^(]*\))" if kind == "NO_MATCHING_FUNCTION" else ","
    return DuckdbProblem(
        _LITERAL.sub(lambda m: "VARCHAR" if m[1] == "STRING" else m[1], _one_line(text)),
        str(document["exception_type"]),
        int(position) if isinstance(position, str) and position.isdigit() else None,
        kind,
        str(document.get("name") or ""),
        tuple(part.strip() for part in re.split(separator, listed) if part.strip()),
    )


def advice_on(problem: DuckdbProblem, columns: Sequence[str] = (), sql: str = "") -> Advice:
    """A problem in words.

    :param columns: that the SQL may use, for a hint.
    :param sql: the statement of the problem.
    """
    if problem.kind == "COLUMN_NOT_FOUND":
        return _missing_column(problem, problem.name, columns, sql)
    if (of_table := _COLUMN_OF_TABLE.match(problem.message)) is not None:
        return _missing_column(problem, of_table["column"], columns, sql)
    if (table := _MISSING_TABLE.match(problem.message)) is not None:
        others = (table["others"] or "").replace('"', "`")
        return Advice(
            f"there is no table `{table['name']}` in the query",
            f"its tables are {others}" if others else "name a table that follows `FROM`",
        )
    if problem.kind == "MISSING_ENTRY" and "Function" in problem.message.partition(" with name")[0]:
        near = problem.candidates[:1]
        hint = f"did you mean `{near[0]}`?" if near else "use a function of DuckDB"
        return Advice(f"DuckDB has no function `{problem.name}`", hint)
    if problem.kind == "NO_MATCHING_FUNCTION":
        forms = ", ".join(f"`{form}`" for form in problem.candidates[:_LISTED])
        call = re.search(r"argument types '(.*?)'", problem.message)
        shown = problem.name if call is None else call[1]
        return Advice(f"DuckDB has no function `{shown}`", f"cast the values to the types of {forms}")
    if (types := _NOT_COMPARED.match(problem.message)) is not None:
        return Advice(
            f"a value of type {types['one']} is not comparable with one of type {types['other']}",
            "write a value of the same type, or cast one of them: a text is in single quotes, and a day is "
            "`DATE '2026-01-31'`",
        )
    if problem.message.startswith("syntax error"):
        hint = "correct the SQL; a name that is a keyword, such as `at`, is in double quotes"
        return Advice(problem.message, hint)
    if "could not convert" in problem.message.lower() or "field format" in problem.message:
        return Advice(problem.message, "write a value of that type; `TRY_CAST` gives null where a cast fails")
    return Advice(problem.message, "correct the SQL")


def _missing_column(problem: DuckdbProblem, name: str, columns: Sequence[str], sql: str) -> Advice:
    known = list(dict.fromkeys((*columns, *problem.candidates)))
    near, at = did_you_mean(name, known), problem.position
    hint = near or list_columns(known)
    is_quoted = at is not None and sql.encode()[at : at + 1] == b'"'
    is_whole = at is not None and sql.encode()[at : at + len(name.encode())].decode(errors="replace") == name
    # A shell removes the quotes of `--set city='Oslo'`.
    if is_quoted or (is_whole and near is None):
        hint = "; ".join(part for part in (hint, text_hint(name)) if part)
    return Advice(f"there is no column `{name}`", hint or "correct the SQL")


def text_hint(name: str) -> str:
    """The hint for a name in double quotes that may be meant as a text."""
    return f"a text has single quotes: '{name}'"


def list_columns(names: Sequence[str]) -> str:
    """A hint that names columns; empty where there are none."""
    if not names:
        return ""
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"the columns are {', '.join(f'`{name}`' for name in names[:_LISTED])}{more}"


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip("!")
