"""The filters of DuckDB's scans, which a plan shows as SQL, as expressions of PyIceberg.

A filter that has no such expression keeps every file: the result is never stricter than the filter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema
    from sqlglot import exp
    from sqlglot.expressions import Expr

_PREFIX = "optional: "
_PLAIN_NAME = re.compile(r"\w+", re.ASCII)
_SHORT_ZONE = re.compile(r"[+-][0-9][0-9]$")


def scan_expression(filters: Iterable[str], schema: Schema) -> BooleanExpression:
    """The conjunction of a scan's filters.

    :param filters: as DuckDB's plan shows them: names are not quoted there.
    :param schema: of the table, in PyIceberg.
    """
    from pyiceberg.expressions import AlwaysTrue, And

    unclear = [name for name in schema.column_names if not _PLAIN_NAME.fullmatch(name.replace(".", "_"))]
    found: BooleanExpression = AlwaysTrue()
    for text in filters:
        if not any(name in text for name in unclear):
            part = _FilterReader(schema).read(text.removeprefix(_PREFIX))
            found = found if part is None else And(found, part)
    return found


class _FilterReader:
    """Reads filters on one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def read(self, text: str) -> BooleanExpression | None:
        """The expression of a filter; ``None`` without one."""
        import sqlglot
        from sqlglot.errors import SqlglotError

        try:
            parsed = sqlglot.parse_one(text, dialect="duckdb")
        except (SqlglotError, RecursionError):
            return None
        return self._expression(parsed)

    def _expression(self, node: Expr) -> BooleanExpression | None:
        from pyiceberg.expressions import And, IsNull, NotNull, Or
        from sqlglot import exp

        if isinstance(node, exp.Paren):
            return self._expression(node.this)
        if isinstance(node, (exp.And, exp.Or)):
            left, right = self._expression(node.left), self._expression(node.right)
            if left is None or right is None:
                known = right if left is None else left
                return known if isinstance(node, exp.And) else None
            return And(left, right) if isinstance(node, exp.And) else Or(left, right)
        if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
            return self._on_null(node.this, NotNull)
        return self._on_null(node, IsNull) if isinstance(node, exp.Is) else self._comparison(node)

    def _on_null(self, node: exp.Is, kind: Any) -> BooleanExpression | None:
        from sqlglot import exp

        name = self._name(node.this) if isinstance(node.expression, exp.Null) else None
        return None if name is None else kind(name)

    def _comparison(self, node: Expr) -> BooleanExpression | None:
        from pyiceberg.expressions import (
            EqualTo,
            GreaterThan,
            GreaterThanOrEqual,
            In,
            LessThan,
            LessThanOrEqual,
            NotEqualTo,
        )
        from sqlglot import exp

        # PyIceberg declares other arguments than its expressions take.
        kinds: dict[type[Any], Any] = {
            exp.In: In,
            exp.EQ: EqualTo,
            exp.NEQ: NotEqualTo,
            exp.LT: LessThan,
            exp.LTE: LessThanOrEqual,
            exp.GT: GreaterThan,
            exp.GTE: GreaterThanOrEqual,
        }
        name = self._name(node.this) if type(node) in kinds else None
        if name is None:
            return None
        found: BooleanExpression
        try:
            if isinstance(node, exp.In):
                found = kinds[exp.In](name, [self._value(name, one) for one in node.expressions])
            else:
                found = kinds[type(node)](name, self._value(name, node.expression))
            found.bind(self._schema)  # type: ignore[attr-defined]
        except (ArithmeticError, TypeError, ValueError):
            return None
        return found

    def _name(self, node: Expr) -> str | None:
        """The full name of a column of the schema."""
        from sqlglot import exp

        if not isinstance(node, (exp.Column, exp.Dot)):
            return None
        name = ".".join(part.name for part in node.parts)
        return name if name in self._schema.column_names else None

    def _value(self, name: str, node: Expr) -> Any:
        """A constant, as PyIceberg casts it to the type of a column.

        :raises ValueError: it is none, or PyIceberg would round it.
        """
        from pyiceberg.types import (
            DoubleType,
            FloatType,
            IntegerType,
            LongType,
            TimestampType,
            TimestamptzType,
        )
        from sqlglot import exp

        while isinstance(node, (exp.Cast, exp.Paren)):
            node = node.this
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        is_negative = isinstance(node, exp.Neg)
        constant = node.this if is_negative else node
        if not isinstance(constant, exp.Literal):
            raise ValueError("the filter compares with no constant")
        type_, text = self._schema.find_type(name), str(constant.this)
        if constant.is_string:
            if isinstance(type_, (TimestampType, TimestamptzType)):
                text = text.replace(" ", "T", 1)
                return f"{text}:00" if _SHORT_ZONE.search(text) and "T" in text else text
            return text
        if isinstance(type_, (FloatType, DoubleType)):
            number: Any = float(text)
        else:
            number = Decimal(text) if not text.isdigit() else int(text)
            if isinstance(type_, (IntegerType, LongType)) and number != int(number):
                # PyIceberg rounds it, and `id > 2` excludes a file that `id > 1.5` reads.
                raise ValueError("the filter compares an integer with a fraction")
        return -number if is_negative else number
