"""Expressions of DuckDB's SQL as SQL of Spark, where both have the same meaning.

The SQL is made from DuckDB's own tree, with parentheses, so that Spark reads it as DuckDB does.  Only what
has an equal result in both is permitted: an operator, a type or a function that is not listed is refused.
So are ``lower`` and ``upper``, which differ for letters such as ``ß``, and ``float``, which DuckDB compares
with less digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any, TypeAlias

from icemigrate.errors import UsageError
from icemigrate.frozen import Frozen
from icemigrate.iceberg.types import Decimal, Field, Primitive, Struct
from icemigrate.spark_sql.identifiers import quote
from icemigrate.spark_sql.literals import string_sql
from icemigrate.table_data.duckdb_statements import expression_tree, open_alone

_Node: TypeAlias = Mapping[str, Any]
_LARGEST_PRECISION = 38
_EXACT_IN_DOUBLE = 15
"""The number of decimal digits that each double keeps."""
_NULL, _BOOLEAN, _TEXT, _DOUBLE, _NUMBER = "null", "boolean", "string", "double", "number"
_COMPARED = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "<=>",
}
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}(:[0-9]{2})?)?"
)
_DIGITS = {"int": 10, "long": 19}
_LITERAL_DIGITS = {"INTEGER": 10, "BIGINT": 19}


class _Typed(Frozen):
    """An expression of Spark.

    :param kind: of its values; those of different kinds are not compared.
    :param digits: of a number before its decimal point.
    :param scale: the digits of a number behind its decimal point.
    """

    sql: str
    kind: str
    digits: int = 0
    scale: int = 0


class _Unequal(Exception):
    """A part of an expression that the two engines may evaluate differently."""


def spark_condition(text: str, columns: Sequence[Field], what: str) -> str:
    """The SQL of Spark for a condition.

    :param what: names it in messages, such as ``--where``.
    :raises UsageError: it has a part whose meaning may differ.
    """
    return _translated(text, columns, what, lambda value: value.kind in (_BOOLEAN, _NULL))


def spark_value(text: str, columns: Sequence[Field], column: Field) -> str:
    """The SQL of Spark for the new value of a column.

    :raises UsageError: it has a part whose meaning may differ, or another kind of value than the column.
    """
    kept = _column(column.name, column)

    def fits(value: _Typed) -> bool:
        if value.kind == _NUMBER and kept.kind == _NUMBER:
            return value.scale <= kept.scale
        return value.kind in (_NULL, kept.kind) or (kept.kind == _DOUBLE and _is_exact(value))

    return _translated(text, columns, f"--set {column.name}", fits)


def _translated(text: str, columns: Sequence[Field], what: str, fits: Callable[[_Typed], bool]) -> str:
    try:
        with open_alone() as connection:
            value = _Translation({column.name.lower(): column for column in columns}).value(
                expression_tree(connection, text)
            )
        if not fits(value):
            raise _Unequal(f"a value of kind {value.kind}")
    except _Unequal as error:
        raise UsageError(
            f"{what}: {error} may have another meaning in Spark, which changes this table",
            "compare columns with literals of their types, or write Spark's SQL in `icemigrate shell`",
        ) from error
    return value.sql


class _Translation:
    """Translates the nodes of one expression, by their classes."""

    def __init__(self, columns: Mapping[str, Field]) -> None:
        self._columns = columns

    def value(self, node: _Node) -> _Typed:
        """The SQL of a node and its kind.

        :raises _Unequal: the node is not permitted.
        """
        known: dict[str, Callable[[_Node], _Typed]] = {
            "COLUMN_REF": self._column,
            "CONSTANT": _constant,
            "CAST": self._cast,
            "COMPARISON": self._comparison,
            "CONJUNCTION": self._conjunction,
            "BETWEEN": self._between,
            "OPERATOR": self._operator,
            "FUNCTION": self._function,
        }
        translate = known.get(node["class"])
        if translate is None:
            raise _Unequal(f"the operator `{node['class']}`")
        return translate(node)

    def _column(self, node: _Node) -> _Typed:
        first, *fields = node["column_names"]
        found = self._columns.get(first.lower())
        path = [] if found is None else [found.name]
        for name in fields:
            inside = found.type.fields if found is not None and isinstance(found.type, Struct) else ()
            found = next((field for field in inside if field.name.lower() == name.lower()), None)
            path += [] if found is None else [found.name]
        if found is None:
            raise _Unequal(f"the name `{'.'.join(node['column_names'])}`")
        return _column(".".join(map(quote, path)), found, is_quoted=True)

    def _cast(self, node: _Node) -> _Typed:
        """A literal of a type; other casts round and read texts differently."""
        child, name = node["child"], node["cast_type"]["id"]
        text = child.get("value", {}).get("value") if child["class"] == "CONSTANT" else None
        if name == "BOOLEAN" and text in ("t", "f") and not node["try_cast"]:
            return _Typed("true" if text == "t" else "false", _BOOLEAN)
        try:
            if name == "DATE" and isinstance(text, str) and len(text) == len("2024-01-31"):
                return _Typed(f"DATE '{date.fromisoformat(text)}'", "date")
            is_time = name in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
            if is_time and isinstance(text, str) and _TIMESTAMP.fullmatch(text):
                time = datetime.fromisoformat(text)
                if (time.tzinfo is not None) is (name != "TIMESTAMP"):
                    kind, prefix = ("timestamp", "_NTZ") if time.tzinfo is None else ("timestamptz", "_LTZ")
                    return _Typed(f"TIMESTAMP{prefix} {string_sql(time.isoformat(' '))}", kind)
        except ValueError:
            pass
        raise _Unequal(f"the cast to {name}")

    def _comparison(self, node: _Node) -> _Typed:
        left, right = self.value(node["left"]), self.value(node["right"])
        if node["type"] == "COMPARE_DISTINCT_FROM":
            return _Typed(f"(NOT {_compared(left, '<=>', right)})", _BOOLEAN)
        operator = _COMPARED.get(node["type"])
        if operator is None:
            raise _Unequal(f"the operator `{node['type']}`")
        return _Typed(_compared(left, operator, right), _BOOLEAN)

    def _conjunction(self, node: _Node) -> _Typed:
        operator = node["type"].removeprefix("CONJUNCTION_")
        return _Typed(f"({f' {operator} '.join(map(self._condition, node['children']))})", _BOOLEAN)

    def _condition(self, node: _Node) -> str:
        found = self.value(node)
        if found.kind not in (_BOOLEAN, _NULL):
            raise _Unequal(f"a value of kind {found.kind} as a condition")
        return found.sql

    def _between(self, node: _Node) -> _Typed:
        value, lower, upper = (self.value(node[key]) for key in ("input", "lower", "upper"))
        return _Typed(f"({_compared(value, '>=', lower)} AND {_compared(value, '<=', upper)})", _BOOLEAN)

    def _operator(self, node: _Node) -> _Typed:
        kind, children = node["type"], node["children"]
        if kind == "OPERATOR_NOT":
            return _Typed(f"(NOT {self._condition(children[0])})", _BOOLEAN)
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            ending = kind.removeprefix("OPERATOR_").replace("_", " ")
            return _Typed(f"({self.value(children[0]).sql} {ending})", _BOOLEAN)
        values = [self.value(child) for child in children]
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            same = " OR ".join(_compared(values[0], "=", each) for each in values[1:])
            return _Typed(f"({'NOT ' if kind == 'COMPARE_NOT_IN' else ''}({same}))", _BOOLEAN)
        if kind == "OPERATOR_COALESCE":
            kept = [value for value in values if value.kind != _NULL]
            if len({v.kind for v in kept}) == 1 and len({v.scale for v in kept}) == 1:
                listed = ", ".join(value.sql for value in values)
                return _Typed(f"coalesce({listed})", kept[0].kind, max(v.digits for v in kept), kept[0].scale)
            raise _Unequal("`coalesce` of values of different types")
        raise _Unequal(f"the operator `{kind.removeprefix('OPERATOR_')}`")

    def _function(self, node: _Node) -> _Typed:
        name, children = node["function_name"].lower(), node["children"]
        if name in ("~~", "!~~"):
            value, pattern = (self.value(child) for child in children)
            is_plain = children[1]["class"] == "CONSTANT" and "\\" not in str(
                children[1]["value"].get("value")
            )
            if value.kind == pattern.kind == _TEXT and is_plain:
                return _Typed(f"({value.sql} {'NOT ' if name == '!~~' else ''}LIKE {pattern.sql})", _BOOLEAN)
            raise _Unequal("`LIKE` with a backslash or a pattern that is no literal")
        if name not in ("+", "-", "*", "abs"):
            kind = "operator" if node["is_operator"] else "function"
            raise _Unequal(f"the {kind} `{name}`")
        values = [self.value(child) for child in children]
        if any(value.kind not in (_NUMBER, _DOUBLE) for value in values):
            raise _Unequal(f"`{name}` of other values than numbers")
        if len(values) == 1:
            (one,) = values
            sql = f"abs({one.sql})" if name == "abs" else f"({name}{one.sql})"
            return _Typed(sql, one.kind, one.digits, one.scale)
        left, right = values
        _compared(left, name, right)
        digits, scale = max(left.digits, right.digits) + 1, max(left.scale, right.scale)
        if name == "*":
            digits, scale = left.digits + right.digits, left.scale + right.scale
        if scale and digits + scale > _LARGEST_PRECISION:
            raise _Unequal(f"`{name}` of numbers with more than {_LARGEST_PRECISION} digits")
        kind = _DOUBLE if _DOUBLE in (left.kind, right.kind) else _NUMBER
        return _Typed(f"({left.sql} {name} {right.sql})", kind, digits, scale)


def _column(sql: str, field: Field, *, is_quoted: bool = False) -> _Typed:
    """A column or a field of a struct; one of a type without a rule has a kind that only equals itself."""
    sql = sql if is_quoted else quote(sql)
    if isinstance(field.type, Decimal):
        return _Typed(sql, _NUMBER, field.type.precision - field.type.scale, field.type.scale)
    if isinstance(field.type, Primitive):
        if field.type.name in _DIGITS:
            return _Typed(sql, _NUMBER, _DIGITS[field.type.name])
        return _Typed(sql, field.type.name)
    return _Typed(sql, f"{field.type}")


def _constant(node: _Node) -> _Typed:
    value, name = node["value"], node["value"]["type"]["id"]
    if value["is_null"]:
        return _Typed("NULL", _NULL)
    if name == "VARCHAR":
        return _Typed(string_sql(value["value"]), _TEXT)
    if name in _LITERAL_DIGITS:
        return _Typed(f"({value['value']})", _NUMBER, _LITERAL_DIGITS[name])
    if name == "DECIMAL":
        width, scale = (value["type"]["type_info"][key] for key in ("width", "scale"))
        number = value["value"]
        if isinstance(number, int):
            digits = str(abs(number)).rjust(scale + 1, "0")
            text = (
                f"{'-' if number < 0 else ''}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}"
            )
            return _Typed(f"({text}BD)", _NUMBER, width - scale, scale)
    if name == "DOUBLE" and isfinite(value["value"]):
        return _Typed(f"({value['value']!r}D)", _DOUBLE)
    raise _Unequal(f"a literal of type {name}")


def _compared(left: _Typed, operator: str, right: _Typed) -> str:
    """Two values with an operator between them.

    :raises _Unequal: their kinds differ.
    """
    kinds = {left.kind, right.kind} - {_NULL}
    width = max(left.digits, right.digits) + max(left.scale, right.scale)
    is_number = kinds == {_NUMBER} and width <= _LARGEST_PRECISION
    is_double = kinds == {_NUMBER, _DOUBLE} and all(v.kind == _DOUBLE or _is_exact(v) for v in (left, right))
    is_simple = len(kinds) == 1 and kinds <= {_BOOLEAN, _TEXT, _DOUBLE, "date", "timestamp", "timestamptz"}
    if not (is_number or is_double or is_simple):
        raise _Unequal(f"`{operator}` between {' and '.join(sorted(kinds)) or 'nulls'}")
    return f"({left.sql} {operator} {right.sql})"


def _is_exact(value: _Typed) -> bool:
    """Whether a number has the same value as a double in both engines."""
    return value.kind == _NUMBER and (not value.scale or value.digits + value.scale <= _EXACT_IN_DOUBLE)
