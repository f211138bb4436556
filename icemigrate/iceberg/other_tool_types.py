"""Types of SQL dialects and programming languages, and the types to write instead.

No migration file contains them: where a dialect has a meaning that Iceberg does not have (a length, a smaller
integer), the user has to decide.  ``diff`` reads whole declarations of other tools, and
:func:`iceberg_types` gives the types that a declared column may have for each of their words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from icemigrate.frozen import Frozen

_LENGTH = "write `string`: Iceberg has no length limit, and Spark drops it silently"
_TEXT = "write `string`"
_NARROW = "write `int`: Iceberg has no smaller integer, and Spark silently uses int"
_UNSIGNED = "write `long`: Iceberg has no unsigned integers"
_BYTES = "write `binary`, or `fixed(16)` if all values are 16 bytes long"
_JSON = "write `variant` (format version 3) or `string`"
_STRUCT = "write `struct<a: int, b: string>`"
_AMOUNT = "write `decimal(precision, scale)`, `long` or `double`"
_DATE_AND_TIME = "write `timestamp` (without time zone) or `timestamptz` (with)"
_SPAN = "write `long`, or `string`: Iceberg has no intervals"
_SET = "write `list<string>`: Iceberg has no sets"

_WORDS: tuple[tuple[str, str], ...] = (
    (_LENGTH, "varchar char nvarchar nchar varchar2 nvarchar2 character bpchar"),
    (
        _TEXT,
        "text str clob nclob ntext tinytext mediumtext longtext citext enum xml sysname utf8 large_string",
    ),
    (_JSON, "json jsonb super object any hstore"),
    ("write `boolean`", "bool bit logical"),
    (_NARROW, "byte tinyint short smallint int2 int16 smallserial mediumint"),
    ("write `int`", "int32 int4 serial int_ signed"),
    ("write `long`", "int64 bigserial longint long_"),
    ("write `long` for 8 bytes (Postgres), `int` for 8 bits", "int8"),
    (_UNSIGNED, "uint8 uint16 uint32 uint64 ubigint uinteger usmallint utinyint unsigned uint"),
    ("write `decimal(38,0)`", "hugeint int128 uhugeint bigint_unsigned biginteger"),
    ("write `float`", "float32 float4 single half float16"),
    ("write `double`", "float64 float8 binary_double"),
    (_AMOUNT, "number money smallmoney bignumeric bigdecimal currency decfloat"),
    (_DATE_AND_TIME, "datetime datetime2 smalldatetime datetime64"),
    ("write `timestamptz`", "timestamp_tz datetimeoffset timestampz instant"),
    ("write `timestamp`", "timestamp_us timestamp_ms timestamp_s localdatetime timestamp_without_tz"),
    ("write `time`", "timetz localtime time_us"),
    ("write `date`", "date32 localdate date64"),
    (_BYTES, "bytes blob bytea varbinary raw image tinyblob mediumblob longblob bytearray large_binary"),
    ("write `uuid`", "guid uniqueidentifier"),
    (_SPAN, "interval duration timedelta"),
    (_SET, "set multiset"),
    ("write `unknown` (format version 3)", "void null nulltype none"),
    (_STRUCT, "row record tuple named_struct message"),
    ("write `map<string, string>`", "dict dictionary"),
)
_HINTS = {word: hint for hint, words in _WORDS for word in words.split()}

_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), hint)
    for pattern, hint in (
        (r"double\s+precision\b", "write `double`"),
        (r"(national\s+)?char(acter)?\s+(varying|large\s+object)\b", _LENGTH),
        (r"national\s+char(acter)?\b", _LENGTH),
        (r"(binary\s+varying|binary\s+large\s+object|long\s+raw)\b", _BYTES),
        (r"timestamp\s*(\(\s*[0-9]+\s*\))?\s*with\s+(local\s+)?time\s+zone\b", "write `timestamptz`"),
        (r"timestamp\s*(\(\s*[0-9]+\s*\))?\s*without\s+time\s+zone\b", "write `timestamp`"),
        (r"time\s*(\(\s*[0-9]+\s*\))?\s*with(out)?\s+time\s+zone\b", "write `time`, which has no zone"),
        (r"timestamp(tz)?\s*\(\s*9\s*\)", "write `timestamp_ns` or `timestamptz_ns` (format version 3)"),
        (
            r"(timestamp|timestamptz|time)\s*\(\s*[0-9]+\s*\)",
            "remove the precision: it is always microseconds",
        ),
        (r"(tiny|small|medium|big)?int(eger)?(\s*\(\s*[0-9]+\s*\))?\s+unsigned\b", _UNSIGNED),
        (r"[^\W\d]\w*(\s*\([0-9\s,]*\))?\s*\[[0-9]*\]", "write a list as `list<string>`"),
        (
            r"(bigint|long|int|integer|string|boolean|date|float|double|uuid)\s*\(\s*[0-9]+\s*\)",
            "remove the length",
        ),
        (r"binary\s*\(\s*[0-9]+\s*\)", _BYTES),
    )
)
_FIXED = re.compile(r"fixed\s*\[", re.IGNORECASE)


def foreign_word(word: str) -> str | None:
    """The type to write for a foreign word, in lower case."""
    return _HINTS.get(word)


def foreign_words() -> Iterable[str]:
    """All foreign words."""
    return _HINTS


def foreign_phrase(text: str, at: int) -> tuple[str, str] | None:
    """A foreign type of several words or with arguments at this position, and the type to write for it."""
    if _FIXED.match(text, at):
        return None
    for pattern, hint in _PHRASES:
        if found := pattern.match(text, at):
            return found[0], hint
    return None


TypeSystem: TypeAlias = Literal["sql", "spark", "arrow", "odcs"]
"""SQL in ``data_type`` of dbt and ``physicalType`` of a contract; Spark's schema in JSON; Arrow's names;
``logicalType`` of the Open Data Contract Standard."""

_OPEN = "?"
"""The word has several meanings, so that a new column cannot have it."""

_MEANINGS: Mapping[TypeSystem, tuple[tuple[str, str], ...]] = {
    "sql": (
        ("boolean", "boolean bool bit logical"),
        ("int long", "int integer int4 int32 tinyint smallint mediumint short byte int2 int16"),
        ("long int", "bigint long int64 bigserial"),
        ("long int", "int8"),
        ("float double", "float real float4 float32"),
        ("double float", "double float8 float64"),
        ("string", "string text varchar char character nvarchar nchar varchar2 nvarchar2 bpchar clob citext"),
        ("string variant", "json jsonb"),
        ("binary fixed", "binary varbinary bytes bytea blob"),
        ("fixed binary", "fixed"),
        ("date", "date"),
        ("time", "time"),
        ("timestamp timestamp_ns", "timestamp_ntz datetime datetime2 timestamp_without_time_zone"),
        ("timestamp_ns", "timestamp_ns"),
        (
            "timestamptz timestamptz_ns",
            "timestamptz timestamp_tz timestamp_ltz datetimeoffset timestamp_with_time_zone",
        ),
        ("timestamptz_ns", "timestamptz_ns"),
        ("? timestamp timestamptz timestamp_ns timestamptz_ns", "timestamp"),
        ("? decimal long int double", "decimal numeric number dec bignumeric"),
        ("uuid", "uuid guid uniqueidentifier"),
        ("variant", "variant super"),
        ("unknown", "unknown"),
    ),
    "spark": (
        ("boolean", "boolean"),
        ("int", "byte short integer"),
        ("long", "long"),
        ("float", "float"),
        ("double", "double"),
        ("string uuid", "string varchar char"),
        ("binary fixed", "binary"),
        ("date", "date"),
        ("timestamptz timestamptz_ns", "timestamp timestamp_ltz"),
        ("timestamp timestamp_ns", "timestamp_ntz"),
        ("time", "time"),
        ("variant", "variant"),
        ("unknown", "void null"),
    ),
    "arrow": (
        ("boolean", "bool"),
        ("int", "int8 int16 int32 uint8 uint16"),
        ("long", "int64 uint32"),
        ("float", "halffloat float"),
        ("double", "double"),
        ("string", "string large_string string_view utf8 large_utf8"),
        ("binary", "binary large_binary binary_view"),
        ("date", "date32 date64"),
        ("time", "time32 time64"),
        ("timestamp", "timestamp"),
        ("timestamptz", "timestamptz"),
        ("timestamp_ns timestamp", "timestamp_ns"),
        ("timestamptz_ns timestamptz", "timestamptz_ns"),
        ("uuid", "uuid"),
        ("unknown", "null"),
    ),
    "odcs": (
        ("string uuid binary variant", "string"),
        ("long int", "integer"),
        ("? double float decimal long int", "number"),
        ("boolean", "boolean"),
        ("date timestamp timestamptz timestamp_ns timestamptz_ns", "date"),
        ("time", "time"),
        ("? timestamp timestamptz timestamp_ns timestamptz_ns", "timestamp"),
    ),
}
_BY_WORD = {
    system: {word: meaning.split() for meaning, words in rows for word in words.split()}
    for system, rows in _MEANINGS.items()
}


class TypeMeaning(Frozen):
    """What a word of another tool means.

    :param first: the type of a new column; ``None`` where the word has several meanings.
    :param accepted: the names of all types that it may mean, ``decimal`` and ``fixed`` without arguments.
    """

    first: str | None
    accepted: frozenset[str]


def iceberg_types(system: TypeSystem, word: str) -> TypeMeaning | None:
    """The meaning of a word, in lower case; ``None`` where Iceberg has no such type."""
    found = _BY_WORD[system].get(word)
    if found is None:
        return None
    return TypeMeaning(None if found[0] == _OPEN else found[0], frozenset(found) - {_OPEN})
