"""Spellings of other tools and of metadata files: the hint has the text to write, and that text is read."""

from __future__ import annotations

import re

import pytest

from icemigrate.files.parse.term_text import TermSyntaxError, parse_partition, parse_sort
from icemigrate.iceberg.type_text import TypeSyntaxError, parse_type
from tests.support.replayed_migrations import replay_text

TABLE = "tables: [{name: db.t, columns: [{name: id, type: long}], properties: {%s: x}}]"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("bucket[16](id)", "bucket(16, id)"),
        ("truncate[4](name)", "truncate(4, name)"),
        ("date(ts)", "day(ts)"),
        ("date_hour(ts)", "hour(ts)"),
        ("Adapter Name", "`Adapter Name`"),
        ("Adapter Name as adapter", "`Adapter Name` as adapter"),
    ],
)
def test_partition_terms(text: str, right: str) -> None:
    with pytest.raises(TermSyntaxError) as error:
        parse_partition(text)
    assert (right if "`" in right else f"`{right}`") in (error.value.hint or "")
    parse_partition(right)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("bucket[16](id) desc", "bucket(16, id)"),
        ("Adapter Name desc", "`Adapter Name` desc"),
        ("a b c desc nulls last", "`a b c` desc nulls last"),
    ],
)
def test_sort_terms(text: str, right: str) -> None:
    with pytest.raises(TermSyntaxError) as error:
        parse_sort(text)
    assert (right if "`" in right else f"`{right}`") in (error.value.hint or "")
    parse_sort(right)


def test_void_is_no_term() -> None:
    with pytest.raises(TermSyntaxError) as error:
        parse_partition("void(x)")
    assert "remove the term" in (error.value.hint or "")


@pytest.mark.parametrize("text", ["map<int>", "list<map<decimal(9,2)>>", "map< string >"])
def test_a_map_has_two_types(text: str) -> None:
    with pytest.raises(TypeSyntaxError) as error:
        parse_type(text)
    found = re.search(r"`(map<string, .*>)`", error.value.hint or "")
    assert found is not None
    parse_type(found[1])


@pytest.mark.parametrize(
    "key", ["table_type", "metadata_location", "previous_metadata_location", "Table_Type"]
)
def test_what_catalogs_keep_in_properties_is_reserved(key: str) -> None:
    from icemigrate.iceberg.table_properties import reserved_property_hint

    assert reserved_property_hint(key) == "the catalog sets it; remove the property"


@pytest.mark.parametrize("kind", ["fpp", "ndv", "enabled"])
def test_properties_of_a_column_follow_it(kind: str) -> None:
    prefix = f"write.parquet.bloom-filter-{kind}.column."
    first = replay_text(
        "tables: [{name: db.t, columns: [{name: id, type: long}, {name: s, type: 'struct<x: int, y: int>'}], "
        f"properties: {{{prefix}id: '1', {prefix}s.x: '2'}}}}]"
    )
    (made,) = first.wanted
    assert made.table is not None
    from icemigrate.iceberg.declared_sides import DeclaredState

    state = DeclaredState({made.name: made.table})
    renamed = replay_text("tables: [{name: db.t, renames: {id: key}, drop_columns: [s.x]}]", state)
    (table,) = renamed.wanted
    assert table.table is not None
    assert table.table.properties == {f"{prefix}key": "1"}
