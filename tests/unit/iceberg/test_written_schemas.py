"""Schemas of a metadata file that stay text."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from icemigrate.catalog.metadata_files import decode_metadata
from icemigrate.iceberg.json_text import Raw
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.written_schemas import PARTS, WrittenSchema, written_schema
from icemigrate.metadata_engine.equal_parts import reused_schema_id
from icemigrate.metadata_engine.metadata_file_names import metadata_content
from tests.support.metadata_samples import sample

SAMPLES = ["spark-v1", "spark-v2", "spark-v3", "pyiceberg-v2"]
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 7,
    "fields": [{"id": 1, "name": "ä", "required": False, "type": "string"}],
}


def _as_parts(text: str) -> Any:
    return decode_metadata(text.encode(), PARTS)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_is_written_again_has_the_same_values_and_the_same_text_of_schemas(
    name: str, indent: int | None
) -> None:
    values = {**sample(name), "of-a-later-release": {"a": [1.5, None, "\ud7ff"]}}
    values["schemas"][0]["of-a-later-release"] = True
    text = json.dumps(values, indent=indent)
    read = _as_parts(text)
    assert all(isinstance(schema, WrittenSchema) for schema in read["schemas"])
    content = b"".join(metadata_content(read))
    if content.startswith(b"\x1f\x8b"):  # the codec of the table
        content = gzip.decompress(content)
    assert json.loads(content) == values
    assert all(
        bytes(schema.text) in content and bytes(schema.text) in text.encode() for schema in read["schemas"]
    )
    assert read == values


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(SCHEMA, separators=(",", ":")),
        json.dumps(SCHEMA, indent=1),
        json.dumps(dict(reversed(SCHEMA.items()))),
    ],
    ids=["as Java writes it", "indented", "in another order"],
)
def test_a_schema_is_the_same_however_it_is_written(text: str) -> None:
    schema = WrittenSchema(Raw(text.encode()))
    assert (schema["schema-id"], schema.get("schema-id", 0), schema.width) == (7, 7, 1)
    assert schema == SCHEMA
    assert {**schema} == SCHEMA
    assert reused_schema_id([schema], {**SCHEMA, "schema-id": 0}) == 7
    assert reused_schema_id([schema], {**SCHEMA, "fields": [*SCHEMA["fields"]] * 2}) is None


def test_a_schema_gets_its_text_once() -> None:
    schema = written_schema(SCHEMA)
    assert json.loads(schema.text) == SCHEMA
    assert written_schema(schema) is schema
    surrogate = {**SCHEMA, "doc": "\ud800"}
    assert written_schema(surrogate)["doc"] == "\ud800"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[1]", TypeError),
        ("5", TypeError),
        ('{"fields": tru}', BadMetadata),
        ("[" * 5000 + "]" * 5000, BadMetadata),
    ],
)
def test_a_damaged_schema_is_refused_when_it_is_read(text: str, error: type[Exception]) -> None:
    schema = WrittenSchema(text.encode())
    assert schema.width is None
    with pytest.raises(error):
        schema["fields"]
    assert reused_schema_id([schema], SCHEMA) is None


@pytest.mark.parametrize("text", ["[]", "5", '{"schemas": 5}', '{"schemas": [5, "a"]}', '{"a": NaN}'])
def test_other_json_is_read_as_it_is(text: str) -> None:
    read = _as_parts(text)
    assert json.dumps(read, default=lambda schema: json.loads(bytes(schema.text))) == json.dumps(
        json.loads(text)
    )
