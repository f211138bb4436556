"""Over mutated files: nothing raises, and our reading of the schemas agrees with the jsonschema library."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from icemigrate.diagnostics import has_errors
from icemigrate.files.parse.json_schemas import compile_schema, load_schema, schema_folder, schema_text
from icemigrate.files.parse.schema_validation import validate_node
from icemigrate.files.parse.source_text import SourceText, decode_source
from icemigrate.files.parse.yaml_composer import parse_yaml
from icemigrate.files.parse.yaml_nodes import to_data
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.project import read_project
from tests.unit.files.examples import EVERYTHING, LISTS, PROJECT, source

DOCUMENTS = {"migration": EVERYTHING, "project": PROJECT}
KEYS = sorted({key for name in DOCUMENTS for key in load_schema(name).homes} | {"colums", "", "a b", "a.b"})
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 2_000_000),
        st.sampled_from([0.5, 1.0, 2.0, 3.5, 1e300, float("inf")]),
        st.sampled_from(
            ["", "a", "m.t", "30d", "30 d", "no", "true", "1", "2", "${x}", "destructive m", "rest", "sc://x"]
        ),
        st.text(max_size=5),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


def spots(data: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    if isinstance(data, (dict, list)):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            found.append((data, key))
            found.extend(spots(data[key]))
    return found


@st.composite
def mutated(draw: st.DrawFn, text: str) -> Any:
    """A sound document after up to three changes anywhere in it."""
    data = copy.deepcopy(to_data(parse_yaml(source(text)).node))  # type: ignore[arg-type]
    for _ in range(draw(st.integers(1, 3))):
        places = spots(data)
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(["delete", "replace", "rename", "insert"])):
            case "delete":
                del container[key]
            case "replace":
                container[key] = draw(VALUES)
            case "rename" if isinstance(container, dict):
                container[draw(st.sampled_from(KEYS))] = container.pop(key)
            case _ if isinstance(container, dict):
                container[draw(st.sampled_from(KEYS))] = draw(VALUES)
            case _:
                container.insert(key, draw(VALUES))
    return data


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
@settings(max_examples=120, deadline=None)
@given(draws=st.data())
def test_both_readings_of_the_schema_agree(name: str, draws: st.DataObject) -> None:
    data = draws.draw(mutated(DOCUMENTS[name]))
    node = parse_yaml(source(yaml.safe_dump(data, allow_unicode=True, sort_keys=False))).node
    if node is None:
        return
    ours = validate_node(node, load_schema(name))
    library = Draft202012Validator(json.loads(schema_text(name)))
    assert bool(ours) == (not library.is_valid(to_data(node))), ours


@st.composite
def scribbled(draw: st.DrawFn, text: str) -> bytes:
    """A sound file after up to four slips of the hand."""
    data = text.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 12)))
        odd = [
            b"\t",
            b"\n",
            b"\r",
            b":",
            b": ",
            b"- ",
            b"{",
            b"}",
            b"[",
            b"]",
            b"'",
            b'"',
            b"&a ",
            b"*a",
            b"<<: ",
            b"#",
            b"|",
        ]
        put = draw(
            st.sampled_from(
                [*odd, b"---\n", b"...\n", b"!!int ", b"!x ", b"\x00", b"\xff", b"${", b"\xef\xbb\xbf", b"? "]
            )
        )
        data = data[:start] + draw(st.sampled_from([b"", put, put + data[start:end]])) + data[end:]
    return data


@settings(max_examples=250, deadline=None)
@given(data=scribbled(EVERYTHING))
def test_no_migration_raises(data: bytes) -> None:
    found = decode_source(data, "f.yaml")
    if not isinstance(found, SourceText):
        return
    read = read_migration(found, Version.parse("1"), "x", LISTS)
    assert isinstance(read.migration, MigrationFile) != has_errors(read.diagnostics)
    lines = found.text.split("\n")
    for one in read.diagnostics:
        assert one.place is not None
        assert 1 <= one.place.line <= len(lines) + 1
        assert one.place.column >= 1
    if read.migration is not None:
        assert len(read.migration.checksum) == 64


@settings(max_examples=120, deadline=None)
@given(data=mutated(EVERYTHING))
def test_no_mutated_migration_raises(data: Any) -> None:
    read = read_migration(source(yaml.safe_dump(data, allow_unicode=True)), Version.parse("1"), "x", LISTS)
    assert isinstance(read.migration, MigrationFile) != has_errors(read.diagnostics)


@settings(max_examples=120, deadline=None)
@given(data=st.one_of(scribbled(PROJECT), mutated(PROJECT).map(lambda data: yaml.safe_dump(data).encode())))
def test_no_project_raises(data: bytes) -> None:
    found = decode_source(data, "icemigrate.yaml")
    if isinstance(found, SourceText):
        read = read_project(found, Path("/market"))
        assert (read.project is None) == has_errors(read.diagnostics)


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_the_schemas_are_schemas_and_describe_everything(name: str) -> None:
    document = json.loads(schema_text(name))
    Draft202012Validator.check_schema(document)
    bare = [spot for spot in described(document, name) if spot is not None]
    assert bare == []


def described(body: dict[str, Any], where: str) -> list[str | None]:
    """Where a title or a description is missing."""
    found = [None if "$ref" in body or {"title", "description"} <= body.keys() else where]
    for key in ("properties", "$defs"):
        for name, inner in body.get(key, {}).items():
            found.extend(described(inner, f"{where}/{name}"))
    for key in ("items", "additionalProperties"):
        if isinstance(body.get(key), dict):
            found.extend(described(body[key], f"{where}/{key}"))
    for index, inner in enumerate(body.get("anyOf", ())):
        found.extend(described(inner, f"{where}/{index}"))
    return found


def test_the_examples_are_sound_to_the_library() -> None:
    for name, text in DOCUMENTS.items():
        library = Draft202012Validator(json.loads(schema_text(name)))
        assert list(library.iter_errors(to_data(parse_yaml(source(text)).node))) == []  # type: ignore[arg-type]


def test_both_files_mean_the_same_by_a_retention() -> None:
    theirs = json.loads(schema_text("migration"))["$defs"]
    ours = json.loads(schema_text("project"))["$defs"]
    assert ours["duration"] == theirs["duration"]
    assert ours["retention"]["properties"]["rows"] == theirs["retention"]["properties"]["rows"]
    snapshots = ours["retention"]["properties"]["snapshots"]["anyOf"][0]
    assert snapshots == theirs["snapshotRetention"]


def test_the_schemas_are_found() -> None:
    assert (schema_folder() / "migration.schema.json").is_file()


@pytest.mark.parametrize(
    "document",
    [
        {"not": {}},
        {"properties": {"a": {"$ref": "#/$defs/a", "type": "string"}}, "$defs": {"a": {}}},
        {"anyOf": [{"type": "string"}, {"type": ["string", "null"]}]},
        {"anyOf": [{"type": "string"}, {}]},
    ],
)
def test_a_schema_that_is_beyond_us_is_a_bug(document: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        compile_schema(document)
