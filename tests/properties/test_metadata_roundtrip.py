"""Random edits of real metadata files."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata, schema_to_json
from icemigrate.iceberg.table_json import table_from_json_form, table_to_json
from icemigrate.iceberg.types import (
    PRIMITIVES,
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
    renumber_fields,
)
from tests.support.metadata_samples import SAMPLES, sample

NAME = TableName(("db",), "t")
EDITED = 50
"""The id of the schema that an edit adds."""
FILES = st.sampled_from(SAMPLES)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
LEAVES = (
    st.sampled_from(sorted(PRIMITIVES)).map(Primitive)
    | st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))
    | st.integers(1, 64).map(Fixed)
    | st.sampled_from((None, "EPSG:4326")).map(Geometry)
    | st.sampled_from((Geography(), Geography("EPSG:4326"), Geography("EPSG:4326", "karney")))
)


def _fields(types: st.SearchStrategy[Type]) -> st.SearchStrategy[tuple[Field, ...]]:
    field = st.builds(
        Field,
        id=st.just(0),
        name=TEXT,
        type=types,
        required=st.booleans(),
        doc=st.none() | st.text(max_size=5),
        initial_default=JSON,
        write_default=JSON,
    )
    return st.lists(field, min_size=1, max_size=4, unique_by=lambda f: f.name).map(tuple)


def _nested(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return (
        _fields(types).map(Struct)
        | st.builds(lambda t, r: List(Field(0, "element", t, r)), types, st.booleans())
        | st.builds(
            lambda k, v, r: Map(Field(0, "key", k, True), Field(0, "value", v, r)),
            types,
            types,
            st.booleans(),
        )
    )


TYPES: st.SearchStrategy[Type] = st.recursive(LEAVES, _nested, max_leaves=5)


@st.composite
def schemas(draw: st.DrawFn, schema_id: int = EDITED) -> Schema:
    """A schema with fresh ids; identifiers from among its columns."""
    numbers = iter(range(1_000, 10_000))
    root = renumber_fields(Struct(draw(_fields(TYPES))), lambda: next(numbers))
    assert isinstance(root, Struct)
    ids = draw(st.frozensets(st.sampled_from([f.id for f in root.fields])))
    return Schema(root.fields, ids, schema_id)


@st.composite
def edited(draw: st.DrawFn) -> Any:
    """A real file after a few edits."""
    read = sample(draw(FILES))
    edits = draw(st.sets(st.sampled_from(("schema", "properties", "location", "refs", "snapshots"))))
    if "schema" in edits:
        schema = schema_to_json(draw(schemas()))
        read |= {"schemas": [*read["schemas"], schema], "current-schema-id": EDITED}
    if "properties" in edits:
        read["properties"] = draw(st.dictionaries(TEXT, TEXT, max_size=3))
    if "location" in edits:
        read["location"] = draw(TEXT)
    if "snapshots" in edits:
        read |= {"snapshots": [], "refs": {}, "current-snapshot-id": None}
    elif "refs" in edits and read.get("snapshots"):
        target = draw(st.sampled_from([snapshot["snapshot-id"] for snapshot in read["snapshots"]]))
        tag = {"type": "tag", "snapshot-id": target, "max-ref-age-ms": draw(st.none() | st.integers(1))}
        read["refs"] = {**read.get("refs", {}), draw(TEXT): tag}
    return read


@given(FILES, st.dictionaries(TEXT.map("x-".__add__), JSON, max_size=3))
def test_unknown_keys_are_ignored_wherever_they_are(file: str, unknown: dict[str, Any]) -> None:
    read = sample(file)
    places = [read, *read.get("schemas", ()), *read.get("snapshots", ()), *read["partition-specs"]]
    for place in places:
        place.update(unknown)
    assert table_from_json(read, NAME) == table_from_json(sample(file), NAME)


@given(edited())
def test_what_was_edited_is_read(read: Any) -> None:
    table = table_from_json(read, NAME)
    assert table.location == read["location"]
    current = next(s for s in read["schemas"] if s["schema-id"] == read["current-schema-id"])
    assert [f.name for f in table.schema.fields] == [f["name"] for f in current["fields"]]
    if table.schema.id == EDITED:
        assert schema_to_json(table.schema) == current
    # The tag that fences a table and the reserved properties are left out.
    assert set(table.refs) <= set(read.get("refs", {}))
    assert table.properties.items() <= read.get("properties", {}).items()


@given(edited())
def test_a_table_in_our_own_form_comes_back(read: Any) -> None:
    table = table_from_json(read, NAME)
    assert table_from_json_form(json.loads(json.dumps(table_to_json(table)))) == table


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A real file with one value, anywhere, replaced or taken away."""
    read = sample(draw(FILES))
    place: Any = read
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return read
        key = draw(st.sampled_from(keys))
        if isinstance(place[key], (dict, list)) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        if draw(st.booleans()):
            del place[key]
        else:
            place[key] = draw(JSON)
        return read


@given(damaged())
def test_damage_is_either_harmless_or_a_named_fault(read: Any) -> None:
    """Never another exception: whatever stands in the file, the reader says what is wrong with it."""
    with suppress(BadMetadata):
        assert table_from_json(read, NAME).name == NAME
