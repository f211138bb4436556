"""icemigrate's own form of a table (the rest of it is a property test)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from icemigrate.frozen import replace
from icemigrate.iceberg.metadata import table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.schema import Schema
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.table_json import table_from_json_form, table_from_text, table_to_json, table_to_text
from icemigrate.iceberg.types import Field, Primitive
from tests.support.metadata_samples import sample

NAME = TableName(("db",), "t")


def test_the_form_can_be_read_by_who_knows_a_metadata_file() -> None:
    json = table_to_json(table_from_json(sample("spark-v2"), NAME))
    assert json["name"] == "db.t"
    assert json["schema"] in sample("spark-v2")["schemas"]
    assert json["spec"] in sample("spark-v2")["partition-specs"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "t"}, "table 't' .*has no namespace"),
        ({"name": 5}, "table 5 is not in the form"),
        ({"schema": {}}, "table 'db.t': 'fields' is missing"),
        ({"spec": None}, "table 'db.t' is not in the form"),
        ({"refs": []}, "table 'db.t' is not in the form"),
        ({"schema": {"fields": [{"id": 1, "name": "a", "required": True, "type": "x"}]}}, "unknown type 'x'"),
    ],
)
def test_what_is_not_in_the_form_is_refused(change: dict[str, Any], message: str) -> None:
    json = table_to_json(table_from_json(sample("spark-v2"), NAME))
    with pytest.raises(BadMetadata, match=message):
        table_from_json_form(json | change)


@pytest.mark.parametrize("json", [None, [], "text"])
def test_what_is_no_object_is_refused(json: Any) -> None:
    with pytest.raises(BadMetadata, match="the table is not in the form"):
        table_from_json_form(json)


@pytest.mark.parametrize("default", [None, 1e16, 1.5, 1, True, "a"])
def test_a_text_has_the_numbers_of_defaults_as_python_writes_them(default: Any) -> None:
    column = replace(Field(1, "a", Primitive("double")), write_default=default)
    table = Table(TableName(("db",), "t"), Schema((column,)))
    text = table_to_text(table)
    assert json.loads(text)["schema"] == table_to_json(table)["schema"]
    assert default is None or f'"write-default":{json.dumps(default)}' in text
    assert table_from_text(text.encode()) == table
