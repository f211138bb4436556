"""Types as text: what is read, what is refused and with which hint."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icemigrate.iceberg.other_tool_types import foreign_words
from icemigrate.iceberg.schema_json import type_from_json, type_to_json
from icemigrate.iceberg.type_text import DEPTH_LIMIT, TypeSyntaxError, format_type, parse_type
from icemigrate.iceberg.types import (
    PRIMITIVES,
    UNASSIGNED,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    walk_fields,
)


def field(name: str, type_: Type, required: bool = False, doc: str | None = None) -> Field:
    return Field(UNASSIGNED, name, type_, required, doc)


INT, LONG, STRING = Primitive("int"), Primitive("long"), Primitive("string")


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_every_primitive_is_read_and_written_under_its_own_name(name: str) -> None:
    assert parse_type(name) == Primitive(name)
    assert format_type(Primitive(name)) == name


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("  long  ", LONG),
        ("LONG", LONG),
        ("bigint", LONG),
        ("integer", INT),
        ("real", Primitive("float")),
        ("timestamp_ntz", Primitive("timestamp")),
        ("timestamp_ltz", Primitive("timestamptz")),
        ("decimal(18,6)", Decimal(18, 6)),
        ("decimal ( 18 , 6 )", Decimal(18, 6)),
        ("numeric(1,0)", Decimal(1, 0)),
        ("fixed[16]", Fixed(16)),
        ("fixed( 16 )", Fixed(16)),
        ("geometry", Geometry()),
        ("geometry(OGC:CRS84)", Geometry()),
        ("geometry( EPSG:3857 )", Geometry("EPSG:3857")),
        ("geometry(epsg:3857)", Geometry("epsg:3857")),
        ("geography(srid:4326, karney)", Geography("srid:4326", "karney")),
        ("geography", Geography()),
        ("geography(OGC:CRS84)", Geography()),
        ("geography(OGC:CRS84, spherical)", Geography()),
        ("geography(OGC:CRS84, Karney)", Geography(None, "karney")),
        ("Geography(EPSG:4326,  ANDOYER)", Geography("EPSG:4326", "andoyer")),
        ("list<geography(EPSG:4326, SPHERICAL)>", List(field("element", Geography("EPSG:4326")))),
        ("list<string>", List(field("element", STRING))),
        ("array<required string>", List(field("element", STRING, True))),
        ("list<string not null>", List(field("element", STRING, True))),
        (
            "map<string, required long>",
            Map(field("key", STRING, True), field("value", LONG, True)),
        ),
        ("map<required string, long>", Map(field("key", STRING, True), field("value", LONG))),
        ("struct<>", Struct(())),
        (
            "struct<a: required int 'it''s', `b.``c`: list<int>, required: long not null comment 'd'>",
            Struct(
                (
                    field("a", INT, True, "it's"),
                    field("b.`c", List(field("element", INT))),
                    field("required", LONG, True, "d"),
                )
            ),
        ),
        ("struct<café: int ''>", Struct((field("café", INT, doc=""),))),
    ],
)
def test_what_is_read(text: str, type_: Type) -> None:
    assert parse_type(text) == type_


@pytest.mark.parametrize(
    ("text", "in_metadata"),
    [
        ("geometry", "geometry(OGC:CRS84)"),
        ("geometry(EPSG:3857)", "geometry(EPSG:3857)"),
        ("geography", "geography(OGC:CRS84, spherical)"),
        ("geography(EPSG:4326, Spherical)", "geography(EPSG:4326, spherical)"),
        ("geography(OGC:CRS84, KARNEY)", "geography(OGC:CRS84, karney)"),
        ("geography(EPSG:4326, andoyer)", "geography(EPSG:4326, andoyer)"),
    ],
)
def test_what_a_file_says_is_what_iceberg_makes_of_it(text: str, in_metadata: str) -> None:
    type_ = parse_type(text)
    assert type_from_json(in_metadata) == type_
    assert type_from_json(type_to_json(type_)) == type_
    assert parse_type(format_type(type_)) == type_


@pytest.mark.parametrize(
    ("text", "offset", "message", "hint"),
    [
        ("", 0, "expected a type, found the end", None),
        ("decimal(\u0663,\u0662)", 8, "expected", None),
        ("fixed[\uff11\uff16]", 6, "expected", None),
        ("strng", 0, "unknown type `strng`", "did you mean `string`?"),
        ("list<strng>", 5, "unknown type `strng`", "did you mean `string`?"),
        ("varchar(10)", 0, "unknown type `varchar`", "write `string`"),
        ("double precision", 0, "unknown type `double precision`", "write `double`"),
        ("map<string, double  precision>", 12, "`double  precision`", "write `double`"),
        ("character varying(10)", 0, "unknown type `character varying`", "write `string`"),
        ("text", 0, "unknown type `text`", "write `string`"),
        ("int8", 0, "unknown type `int8`", "`long` for 8 bytes (Postgres)"),
        ("numeric", 0, "needs a precision", "decimal(18,6)"),
        ("datetime", 0, "unknown type `datetime`", "`timestamptz` (with)"),
        ("jsonb", 0, "unknown type `jsonb`", "`variant`"),
        ("timestamp(6) with time zone", 0, "`timestamp(6) with time zone`", "write `timestamptz`"),
        ("timestamp(6)", 0, "`timestamp(6)`", "remove the precision"),
        ("timestamp(9)", 0, "`timestamp(9)`", "`timestamp_ns`"),
        ("time without time zone", 0, "`time without time zone`", "write `time`"),
        ("bigint unsigned", 0, "`bigint unsigned`", "no unsigned"),
        ("text[]", 0, "unknown type `text[]`", "`list<string>`"),
        ("array(varchar)", 0, "needs type arguments", "list<string>"),
        ("row(a int, b varchar)", 0, "unknown type `row`", "`struct<a: int, b: string>`"),
        ("binary(16)", 0, "unknown type `binary(16)`", "`fixed(16)`"),
        ("bytea", 0, "unknown type `bytea`", "`binary`"),
        ("tinyint", 0, "unknown type `tinyint`", "write `int`"),
        ("short", 0, "unknown type `short`", "write `int`"),
        ("timestamp with time zone", 0, "timestamp with time zone", "write `timestamptz`"),
        ("timestamp with local time zone", 0, "timestamp with local time zone", "write `timestamptz`"),
        ("list<timestamp without time zone>", 5, "timestamp without time zone", "write `timestamp`"),
        ("decimal", 0, "needs a precision", "decimal(18,6)"),
        ("decimal(9)", 9, "also needs a scale", "decimal(9,0)"),
        ("decimal(9,)", 10, "expected the scale, found `)`", None),
        ("decimal(39,1)", 0, "1 to 38, not 39", None),
        ("decimal(0,0)", 0, "1 to 38, not 0", None),
        ("decimal(4,5)", 0, "must not exceed its precision", None),
        ("decimal(4,2", 11, "expected `)`, found the end", None),
        ("fixed", 0, "needs a length", "fixed[16]"),
        ("fixed[0]", 0, "must be at least 1", None),
        ("fixed[16)", 8, "expected `]`, found `)`", None),
        ("int(11)", 0, "unknown type `int(11)`", "remove the length"),
        ("variant(3)", 7, "takes no arguments", "write `variant`"),
        ("geometry(a, b)", 0, "one argument", None),
        ("geography(a, b, c)", 0, "at most two arguments", None),
        ("geography(a, karny)", 0, "unknown edge algorithm `karny`", "did you mean `karney`?"),
        ("geography(a, b)", 0, "unknown edge algorithm `b`", "one of spherical, vincenty, thomas"),
        ("geography(karney)", 0, "`karney` is not a reference system", "`geography(OGC:CRS84, karney)`"),
        ("geometry(", 9, "expected `)`", None),
        ("geometry()", 9, "empty argument", None),
        ("list", 0, "needs type arguments", "list<string>"),
        ("map<string>", 0, "a map needs two types", "map<string, string>"),
        ("struct", 0, "needs type arguments", "struct<a: int, b: string>"),
        ("struct<a int>", 7, "expected a field name", "`name: type`"),
        ("struct<a: int,>", 14, "expected a field name", None),
        ("struct<a: int b: int>", 14, "expected `,`, found `b`", None),
        ("struct<zip-code: int>", 7, "needs backticks", "`zip-code`"),
        ("struct<a: int, a: long>", 15, "two fields named `a`", None),
        ("long required", 5, "unexpected `required`", "`required: true`"),
        ("long not null", 5, "unexpected `not null`", "`required: true`"),
        ("long, int", 4, "unexpected `, int`", None),
        ("list<" * 70 + "int" + ">" * 70, 325, f"deeper than {DEPTH_LIMIT}", None),
    ],
)
def test_what_is_refused(text: str, offset: int, message: str, hint: str | None) -> None:
    with pytest.raises(TypeSyntaxError) as caught:
        parse_type(text)
    assert message in str(caught.value)
    assert caught.value.offset == offset
    assert caught.value.hint is None if hint is None else hint in (caught.value.hint or "")


@pytest.mark.parametrize("word", foreign_words())
def test_what_is_written_for_a_type_of_others_is_a_type(word: str) -> None:
    with pytest.raises(TypeSyntaxError, match="unknown type") as caught:
        parse_type(word)
    for written in re.findall("`(.*?)`", caught.value.hint or "")[:1]:
        parse_type(written.replace("precision, scale", "18, 6"))


def test_the_deepest_type_is_read() -> None:
    text = "list<" * DEPTH_LIMIT + "int" + ">" * DEPTH_LIMIT
    assert sum(1 for _ in walk_fields(parse_type(text))) == DEPTH_LIMIT


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
docs = st.none() | st.text(st.characters(codec="utf-8"), max_size=8)
primitives = st.one_of(
    st.sampled_from(sorted(PRIMITIVES)).map(Primitive),
    st.tuples(st.integers(1, 38), st.integers(0, 38)).map(lambda p: Decimal(p[0], min(p))),
    st.integers(1, 10**6).map(Fixed),
    st.sampled_from([Geometry(), Geometry("a:1"), Geography(), Geography("x"), Geography("x", "vincenty")]),
)


def structs(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.builds(field, names, types, st.booleans(), docs)
    return st.lists(fields, max_size=4, unique_by=lambda f: f.name).map(lambda fs: Struct(tuple(fs)))


def nested(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        structs(types),
        st.builds(lambda t, r: List(field("element", t, r)), types, st.booleans()),
        st.builds(
            lambda k, v, r: Map(field("key", k, True), field("value", v, r)), types, types, st.booleans()
        ),
    )


@given(st.recursive(primitives, nested, max_leaves=12))
def test_text_reads_back_as_the_same_type(type_: Type) -> None:
    assert parse_type(format_type(type_)) == type_


@given(st.text(st.sampled_from("listmapruc<>(),: '`10dn"), max_size=40))
def test_any_text_is_read_or_refused_with_a_place_inside_it(text: str) -> None:
    assert 0 <= offset_of_mistake(text) <= len(text)


def offset_of_mistake(text: str) -> int:
    try:
        type_ = parse_type(text)
    except TypeSyntaxError as mistake:
        return mistake.offset
    assert parse_type(format_type(type_)) == type_
    return 0
