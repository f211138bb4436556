"""Random edits of real metadata files: nothing that was not edited is lost."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icemigrate.frozen import replace
from icemigrate.model.json_form import BadMetadata
from icemigrate.model.metadata import TableMetadata, dump, parse, table_from_json, to_table
from icemigrate.model.names import TableName
from icemigrate.model.schema import Schema
from icemigrate.model.table import Ref
from icemigrate.model.table_json import table_from_json_form, table_to_json
from icemigrate.model.types import (
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
    renumber,
)
from tests.metadata_samples import SAMPLES, sample

NAME = TableName(("db",), "t")
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
def schemas(draw: st.DrawFn, schema_id: int = 50) -> Schema:
    """A schema with fresh ids; identifiers from among its columns."""
    numbers = iter(range(1_000, 10_000))
    root = renumber(Struct(draw(_fields(TYPES))), lambda: next(numbers))
    assert isinstance(root, Struct)
    ids = draw(st.frozensets(st.sampled_from([f.id for f in root.fields])))
    return Schema(root.fields, ids, schema_id)


@st.composite
def edited(draw: st.DrawFn) -> TableMetadata:
    """A real file's metadata after a few edits."""
    metadata = parse(sample(draw(FILES)))
    changes: dict[str, Any] = {}
    edits = draw(st.sets(st.sampled_from(("schema", "properties", "location", "refs", "snapshots"))))
    if "schema" in edits:
        changes |= {"schemas": (*metadata.schemas, draw(schemas())), "current_schema_id": 50}
    if "properties" in edits:
        changes["properties"] = draw(st.dictionaries(TEXT, TEXT, max_size=3))
    if "location" in edits:
        changes["location"] = draw(TEXT)
    if "snapshots" in edits:
        changes |= {"snapshots": (), "refs": {}, "current_snapshot_id": None}
    elif "refs" in edits and metadata.snapshots:
        target = draw(st.sampled_from([snapshot.id for snapshot in metadata.snapshots]))
        changes["refs"] = {**metadata.refs, draw(TEXT): Ref("tag", target, draw(st.none() | st.integers(1)))}
    return replace(metadata, **changes)


@given(FILES, st.dictionaries(TEXT.map("x-".__add__), JSON, max_size=3))
def test_unknown_keys_are_kept_wherever_they_stand(file: str, unknown: dict[str, Any]) -> None:
    read = sample(file)
    places = [read, *read.get("schemas", ()), *read.get("snapshots", ()), *read["partition-specs"]]
    for place in places:
        place.update(unknown)
    before = copy.deepcopy(read)
    assert dump(parse(read)) == before


@given(edited())
def test_edited_metadata_is_written_and_read_again(metadata: TableMetadata) -> None:
    written = json.loads(json.dumps(dump(metadata)))
    assert parse(written) == metadata
    assert table_from_json(written, NAME) == to_table(metadata, NAME)


@given(edited())
def test_what_was_not_edited_stays_to_the_letter(metadata: TableMetadata) -> None:
    source, written = metadata.source, dump(metadata)
    before = parse(source)
    touched = {
        "schemas": metadata.schemas != before.schemas,
        "current-schema-id": metadata.schemas != before.schemas,
        "schema": metadata.schemas != before.schemas,
        "properties": metadata.properties != before.properties,
        "location": metadata.location != before.location,
        "refs": metadata.refs != before.refs,
        "snapshots": metadata.snapshots != before.snapshots,
        "current-snapshot-id": metadata.current_snapshot_id != before.current_snapshot_id,
    }
    # Version 1's one spec is written with its schema, in the form with ids.
    touched["partition-spec"] = touched["schema"]
    for key in source:
        if not touched.get(key):
            assert written[key] == source[key], key
    assert written["schemas"][: len(before.schemas)] == source["schemas"]


@given(edited())
def test_a_table_in_our_own_form_comes_back(metadata: TableMetadata) -> None:
    table = to_table(metadata, NAME)
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
        assert dump(parse(read)) == read
    with suppress(BadMetadata):
        assert table_from_json(read, NAME).name == NAME
