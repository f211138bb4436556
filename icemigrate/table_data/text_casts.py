"""SQL that reads the values of columns from texts, such as those of a CSV file.

DuckDB's own casts are lenient: they round ``1.5`` to an integer and ``0.005`` to a decimal, make 0 of
``1e-400``, read ``1_0`` and ``0x1F`` as numbers, and drop the zone of a timestamp.  A value that would change
is an error here, and so is what neither Spark nor pandas reads as a number.  Most values have a plain form
that a cheap condition recognizes; all others have to match a pattern.
"""

from __future__ import annotations

import re

from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.types import Decimal, Fixed, Primitive, Type
from icemigrate.table_data.duckdb_session import text_literal
from icemigrate.table_data.duckdb_types import duckdb_type

_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_MINUTES = r":[0-9]{2}(:[0-9]{2}(\.[0-9]{1,%d}0*)?)?"
_CLOCK = f"[0-9]{{1,2}}{_MINUTES}"
_ZONE = "( ?(Z|z|[+-]((0[0-9]|1[0-7])(:?[0-5][0-9])?|18(:?00)?)))?"
_UTC = "make_timestamptz(epoch_us(CAST({x} AS TIMESTAMP)))"
"""DuckDB's cast of a text to a timestamp with a zone asks the ICU library about each row."""
_NUMBERS = {
    "float": ("1e-45::FLOAT", "3.4028234663852886e38::FLOAT"),
    "double": ("5e-324", "1.7976931348623157e308"),
}
"""The smallest and the largest positive number of each type of floating-point numbers."""
_EXACT_LIMITS = {"float": 2**24, "double": 2**53}
"""From this number on, each type lacks whole numbers."""
_AROUND = "+ \t\n\v\f\r"
"""What DuckDB's cast to a whole number of any length does not accept before or after the digits."""
_WHOLE = r"\s*[+-]?[0-9]+(\.0*)?\s*"
_ZERO = r"(0+\.?0*|\.0+)([eE][+-]?[0-9]+)?"
_DECIMAL = re.compile(r"DECIMAL\(([0-9]+),([0-9]+)\)")
_DIGITS = {"INTEGER": 10, "UINTEGER": 10, "BIGINT": 19, "UBIGINT": 20, "HUGEINT": 39, "UHUGEINT": 39}
"""The digits of DuckDB's whole numbers that a floating-point type may lack."""
_UNREADABLE = "'?'"
"""A text that no type but a text accepts, so that its cast fails."""


class TextForm(Frozen):
    """The texts that a type accepts.

    :param plain: a condition in SQL that is true for the most frequent form; ``{x}`` is the text.
    :param pattern: a regular expression that matches all accepted texts; ``None`` where the cast decides.
    :param cast: the value in SQL.
    :param plain_cast: a faster cast of texts in the plain form.
    """

    plain: str | None
    pattern: str | None
    cast: str
    plain_cast: str | None = None


def text_form(type_: Type) -> TextForm:
    """The texts that a stored, unnested type accepts."""
    cast = f"CAST({{x}} AS {duckdb_type(type_)})"
    if isinstance(type_, Decimal):
        is_short = "NOT contains({x}, '.')"
        if type_.scale:
            is_short = f"(instr({{x}}, '.') = 0 OR strlen({{x}}) - instr({{x}}, '.') <= {type_.scale})"
        plain = " AND ".join((*(f"NOT contains({{x}}, '{c}')" for c in "eE_"), is_short))
        return TextForm(plain, rf"\s*[+-]?[0-9]*(\.[0-9]{{0,{type_.scale}}}0*)?\s*", cast)
    if isinstance(type_, Fixed):
        return TextForm(None, f"([0-9a-fA-F]{{2}}){{{type_.length}}}", "unhex({x})")
    assert isinstance(type_, Primitive), "a stored field that is not nested has one of these types"
    name = type_.name
    if name in ("int", "long"):
        tried = f"TRY_CAST({{x}} AS {duckdb_type(type_)})"
        return TextForm(f"CAST({tried} AS VARCHAR) = {{x}}", r"\s*[+-]?[0-9]+\s*", cast, tried)
    if name == "date":
        return TextForm("strlen({x}) = 10 AND {x} < 'a'", _DAY, cast)
    if name == "time":
        # DuckDB has midnight at the end of a day, and Iceberg does not.
        return TextForm("strlen({x}) = 8 AND {x} < '24'", "([01]?[0-9]|2[0-3])" + _MINUTES % 6, cast)
    if name.startswith("timestamp"):
        zone = _ZONE if name.startswith("timestamptz") else ""
        digits = 9 if name.endswith("_ns") else 6
        pattern = f"{_DAY}([ T]{_CLOCK % digits}{zone})?"
        return TextForm(
            "strlen({x}) = 19 AND {x}[8] = '-' AND {x}[14] = ':' AND {x}[17] = ':'",
            pattern,
            cast,
            _UTC if name == "timestamptz" else None,
        )
    if name in ("float", "double"):
        tried = f"TRY_CAST({{x}} AS {duckdb_type(type_)})"
        smallest, largest = _NUMBERS[name]
        plain = (
            f"abs({tried}) BETWEEN {smallest} AND {largest} AND NOT contains({{x}}, '_') "
            f"AND ({{x}} >= '-' OR NOT contains({{x}}, '+-')) AND {_keeps_digits(name, tried)}"
        )
        return TextForm(plain, rf"\s*[+-]?({_ZERO}|(?i:inf(inity)?)|(?i:nan))\s*", cast, tried)
    if name == "binary":
        return TextForm(None, "([0-9a-fA-F]{2})*", "unhex({x})")
    return TextForm(None, None, cast)


def _keeps_digits(name: str, tried: str) -> str:
    """Whether a floating-point number is the same as its text, where the text is a whole number.

    :param tried: the number in SQL; ``{x}`` is the text.
    """
    digits = f"TRY_CAST(trim({{x}}, {text_literal(_AROUND)}) AS BIGNUM)"
    is_same = (
        f"NOT regexp_full_match({{x}}, {text_literal(_WHOLE)}) OR {digits} = TRY_CAST({tried} AS BIGNUM)"
    )
    return f"CASE WHEN abs({tried}) < {_EXACT_LIMITS[name]} THEN true ELSE {is_same} END"


def loses_digits(type_: Type, given: str, value: str) -> str | None:
    """Whether a floating-point type lacks a whole number: a condition in SQL; ``None`` where it lacks none.

    :param given: the type of the number in DuckDB.
    """
    assert isinstance(type_, Primitive), "a floating-point type is a primitive one"
    decimal = _DECIMAL.fullmatch(given)
    digits = int(decimal[1]) - int(decimal[2]) if decimal else _DIGITS.get(given, 0)
    if 10**digits <= _EXACT_LIMITS[type_.name]:
        return None
    whole = "HUGEINT" if decimal else given
    stored = f"TRY_CAST(TRY_CAST({value} AS {duckdb_type(type_)}) AS {whole})"
    changes = f"{stored} IS DISTINCT FROM TRY_CAST({value} AS {whole})"
    return f"({value} = trunc({value}) AND {changes})" if decimal else changes


def is_string(type_: Type) -> bool:
    """Whether every text is a value, also the empty one."""
    return type_ == Primitive("string")


def text_value(type_: Type, text: str) -> str:
    """The value of a text in SQL, whose evaluation fails where the text does not fit; an empty text is null.

    :param text: an expression in SQL.
    """
    if is_string(type_):
        return text
    form = text_form(type_)
    # A text in the plain form with a cast of its own does not reach the other one.
    has_own_cast = form.plain is not None and form.plain_cast is not None
    accepted = _accepted(replace(form, plain=None) if has_own_cast else form, text)
    if accepted is None:
        return form.cast.format(x=f"nullif({text}, '')")
    otherwise = f"CASE WHEN {text} = '' OR {text} IS NULL THEN NULL ELSE {_UNREADABLE} END"
    value = form.cast.format(x=f"CASE WHEN {accepted} THEN {text} ELSE {otherwise} END")
    if form.plain is None or form.plain_cast is None:
        return value
    return f"CASE WHEN {form.plain.format(x=text)} THEN {form.plain_cast.format(x=text)} ELSE {value} END"


def text_misfits(type_: Type, text: str) -> str:
    """Whether a text is no value of a type: a condition in SQL that is never null."""
    if is_string(type_):
        return "false"
    form = text_form(type_)
    tried = form.cast.format(x=text).replace("CAST(", "TRY_CAST(", 1)
    fits = "true" if tried.startswith("unhex") else f"{tried} IS NOT NULL"
    accepted = _accepted(form, text)
    if accepted is not None:
        fits = f"({accepted}) AND {fits}"
    return f"({text} IS NOT NULL AND {text} <> '' AND NOT coalesce({fits}, false))"


def _accepted(form: TextForm, text: str) -> str | None:
    """Whether a text has the plain form or matches the pattern."""
    if form.pattern is None:
        return None
    matches = f"regexp_full_match({text}, {text_literal(form.pattern)})"
    return matches if form.plain is None else f"({form.plain.format(x=text)}) OR {matches}"
