"""Metadata files: what is read and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from json import dumps
from typing import Any

import pytest

from icemigrate.catalog.metadata_files import decode_metadata
from icemigrate.frozen import replace
from icemigrate.iceberg.metadata import FORM, table_from_json
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partitioning import Transform
from icemigrate.iceberg.schema_json import BadMetadata
from icemigrate.iceberg.table import Ref, Snapshot, Table
from icemigrate.iceberg.table_json import table_from_text, table_to_text
from icemigrate.iceberg.types import Geography, Geometry, Primitive, is_nested, map_fields
from tests.support.metadata_samples import sample

NAME = TableName(("db",), "t")
Json = dict[str, Any]


def test_a_table_of_spark_is_read_in_full() -> None:
    table = table_from_json(sample("spark-v3"), NAME)
    assert table.format_version == 3
    assert [(f.name, f.required) for f in table.schema.fields][:3] == [
        ("id", True),
        ("label", False),
        ("amount", False),
    ]
    assert table.schema.identifier_ids == {1, 4}
    added = table.schema.find(("with_default",))
    assert added is not None
    assert (added.initial_default, added.write_default, added.required) == (7, 7, True)
    types = {f.name: f.type for f in table.schema.fields}
    assert types["geo"] == Geometry()
    assert types["geog"] == Geography()
    assert types["ns"] == Primitive("timestamptz_ns")
    assert [str(f.transform) for f in table.spec.fields] == ["day", "truncate[4]"]
    assert len(table.older_specs) == 2
    assert [f.direction for f in table.sort_order.fields] == ["asc", "desc"]
    assert table.properties["comment"] == "Described"
    assert table.properties["team"] == "café"
    assert table.refs["end of year"].max_ref_age_ms == 30 * 86_400_000
    assert table.refs["audit"] == Ref(
        "branch", table.refs["audit"].snapshot_id, 7 * 86_400_000, 2 * 86_400_000, 3
    )
    assert table.last_partition_id == 1002
    assert table.snapshot is not None
    assert table.snapshot.total_records == 0
    assert not table.has_rows


def test_a_variant_column_is_read() -> None:
    table = table_from_json(sample("spark-v3-variant"), NAME)
    assert [f.type for f in table.schema.fields] == [Primitive(n) for n in ("int", "variant", "unknown")]


def test_reserved_properties_are_none_of_the_tables() -> None:
    json = sample("spark-v2-empty")
    json["properties"] = {"format-version": "2", "uuid": "x", "kept": "1"}
    assert table_from_json(json, NAME).properties == {"kept": "1"}


def test_old_version_1_has_one_schema_and_one_spec() -> None:
    json = sample("spark-v1")
    for key in ("schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id"):
        del json[key]
    for key in ("sort-orders", "default-sort-order-id", "table-uuid", "refs"):
        json.pop(key, None)
    json["partition-spec"] = [{"name": "at_day", "transform": "day", "source-id": 4}]
    table = table_from_json(json, NAME)
    assert table.uuid is None
    assert [f.id for f in table.spec.fields] == [1000]
    assert table.last_partition_id == 1000
    assert table.sort_order.fields == ()


def test_an_unknown_count_of_rows_is_not_zero() -> None:
    json = sample("spark-v2")
    for snapshot in json["snapshots"]:
        del snapshot["summary"]["total-records"]
    table = table_from_json(json, NAME)
    assert isinstance(table.snapshot, Snapshot)
    assert table.snapshot.total_records is None
    assert table.has_rows


def _delete(key: str) -> Callable[[Json], object]:
    return lambda json: json.pop(key)


def _set(key: str, value: Any) -> Callable[[Json], object]:
    return lambda json: json.update({key: value})


def _in_schema(change: Callable[[Json], object]) -> Callable[[Json], object]:
    def edit(json: Json) -> None:
        change(next(s for s in json["schemas"] if s["schema-id"] == json["current-schema-id"]))

    return edit


CORRUPTIONS: dict[str, tuple[Callable[[Json], object], str]] = {
    "no version": (_delete("format-version"), "`format-version` is missing"),
    "version of the future": (_set("format-version", 4), "`format-version` is 4; supported are 1 to 3"),
    "version 0": (_set("format-version", 0), "`format-version` is 0"),
    "version in words": (_set("format-version", "2"), "`format-version` is '2', not a whole number"),
    "version true": (_set("format-version", True), "`format-version` is True, not a whole number"),
    "no uuid": (_delete("table-uuid"), "`table-uuid` is missing"),
    "no location": (_delete("location"), "`location` is missing"),
    "location of a wrong type": (_set("location", ["x"]), "`location` is ['x'], not a string"),
    "no schemas": (_delete("schemas"), "`schemas` is missing"),
    "schemas no list": (_set("schemas", {}), "`schemas` is {}, not a list"),
    "current schema nowhere": (
        _set("current-schema-id", 77),
        "`current-schema-id` is 77, which none of `schemas`",
    ),
    "no current schema": (_delete("current-schema-id"), "`current-schema-id` is missing"),
    "schema twice": (lambda j: j["schemas"].append(j["schemas"][0]), "`schemas` has the id 0 twice"),
    "schema no object": (lambda j: j["schemas"].append(5), "is not in the form"),
    "default spec nowhere": (_set("default-spec-id", 77), "`default-spec-id` is 77, which none of"),
    "spec twice": (
        lambda j: j["partition-specs"].append(j["partition-specs"][0]),
        "`partition-specs` has the id 0 twice",
    ),
    "spec without fields": (
        lambda j: j["partition-specs"][0].pop("fields"),
        "partition-specs[0]: `fields` is missing",
    ),
    "spec id in words": (
        lambda j: j["partition-specs"][0].update({"spec-id": "a"}),
        "partition-specs[0]: its id is 'a'",
    ),
    "transform a number": (
        lambda j: j["partition-specs"][0]["fields"][0].update(transform=5),
        "partition-specs[0] is not in the form",
    ),
    "partition field id in words": (
        lambda j: j["partition-specs"][0]["fields"][0].update({"field-id": "a"}),
        "partition-specs[0], field 'at_day': its id is 'a'",
    ),
    "order nowhere": (_set("default-sort-order-id", 77), "`default-sort-order-id` is 77"),
    "order without direction": (
        lambda j: j["sort-orders"][1]["fields"][0].pop("direction"),
        "sort-orders[1]: `direction` is missing",
    ),
    "order id in words": (
        lambda j: j["sort-orders"][0].update({"order-id": "a"}),
        "sort-orders[0]: its id is 'a'",
    ),
    "snapshot nowhere": (
        _set("current-snapshot-id", 77),
        "`current-snapshot-id` is 77, which none of `snapshots`",
    ),
    "snapshot twice": (
        lambda j: j["snapshots"].append(j["snapshots"][0]),
        "`snapshots` has a snapshot id twice",
    ),
    "snapshot without an id": (
        lambda j: j["snapshots"][0].pop("snapshot-id"),
        "snapshots: `snapshot-id` is missing",
    ),
    "snapshot without a time": (
        lambda j: j["snapshots"][-1].pop("timestamp-ms"),
        "the current snapshot: object missing required field `timestamp-ms`",
    ),
    "snapshots an object": (_set("snapshots", {}), "`snapshots` is {}, not a list"),
    "reference to nowhere": (
        lambda j: j["refs"]["audit"].update({"snapshot-id": 77}),
        "refs.audit: none of `snapshots` has the id 77",
    ),
    "reference without a kind": (
        lambda j: j["refs"]["audit"].pop("type"),
        "refs.audit: object missing required field `type`",
    ),
    "property a number": (_set("properties", {"a": 1}), "property `a` is 1, not a string"),
    "field without a type": (
        _in_schema(lambda s: s["fields"][2].pop("type")),
        "fields[2] (amount): `type` is missing",
    ),
    "unknown type": (
        _in_schema(lambda s: s["fields"][2].update(type="money")),
        "fields[2] (amount): unknown type 'money'",
    ),
    "unknown nesting": (
        _in_schema(lambda s: s["fields"][2].update(type={"type": "bag"})),
        "fields[2] (amount): unknown type 'bag'",
    ),
    "struct without fields": (
        _in_schema(lambda s: s["fields"][2].update(type={"type": "struct"})),
        "fields[2] (amount): `fields` is missing",
    ),
    "fields no list": (_in_schema(lambda s: s.update(fields=5)), "is not in the form"),
    "field no object": (_in_schema(lambda s: s["fields"].append(None)), "(None) is not in the form"),
    "field id twice": (_in_schema(lambda s: s["fields"][2].update(id=1)), "field id 1 is there twice"),
    "field name twice": (_in_schema(lambda s: s["fields"][2].update(name="id")), "field 'id' is there twice"),
    "field id negative": (
        _in_schema(lambda s: s["fields"][2].update(id=-1)),
        "the id of field 'amount' is -1, and none is negative",
    ),
    "field id in words": (
        _in_schema(lambda s: s["fields"][2].update(id="3")),
        "field 'amount' ('3') has an id",
    ),
    "required in words": (
        _in_schema(lambda s: s["fields"][2].update(required="no")),
        "field 'amount' (3) has an id",
    ),
    "description a number": (
        _in_schema(lambda s: s["fields"][2].update(doc=3)),
        "the description of field 'amount'",
    ),
    "identifier nowhere": (
        _in_schema(lambda s: s.update({"identifier-field-ids": [77]})),
        "identifier field 77 is not one of its fields",
    ),
    "identifiers nested": (
        _in_schema(lambda s: s.update({"identifier-field-ids": [[1]]})),
        "is not in the form",
    ),
}


def _beside_what_is_known(json: Json) -> object:
    return table_from_json(json, NAME, table_from_json(sample("spark-v2"), NAME))


def _as_catalogs_do(json: Json) -> Table:
    """The table of a file, its columns still text, beside what the history keeps of it."""
    known = table_from_text(table_to_text(table_from_json(sample("spark-v2"), NAME)).encode())
    return table_from_json(decode_metadata(_text(json).encode(), FORM), NAME, known)


def _text(json: Json) -> str:
    return dumps(json, separators=(",", ":"))


@pytest.mark.parametrize(
    "read",
    [lambda json: table_from_json(json, NAME), _beside_what_is_known, _as_catalogs_do],
    ids=["json", "known", "text"],
)
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_damage_is_named(corruption: str, read: Callable[[Json], object]) -> None:
    damage, message = CORRUPTIONS[corruption]
    json = sample("spark-v2")
    damage(json)
    with pytest.raises(BadMetadata) as raised:
        read(json)
    assert message in str(raised.value)


def test_columns_that_are_known_are_taken_over() -> None:
    known = table_from_json(sample("spark-v2"), NAME)
    again = table_from_json(sample("spark-v2"), NAME, known)
    assert again == known
    assert all(a is b for a, b in zip(again.schema.fields, known.schema.fields, strict=True))
    json = sample("spark-v2")
    fields = json["schemas"][-1]["fields"]
    fields[0]["doc"] = "another"
    changed = table_from_json(json, NAME, known)
    assert changed == table_from_json(json, NAME)
    assert changed.schema.fields[0] is not known.schema.fields[0]
    assert changed.schema.fields[1] is known.schema.fields[1]
    # A column that stands there twice is known twice, and still one too many.
    fields.append(fields[1])
    with pytest.raises(BadMetadata, match="there twice"):
        table_from_json(json, NAME, known)


def _in_another_order(json: Any) -> Any:
    """As another writer may put the keys of the same objects."""
    if isinstance(json, dict):
        return {key: _in_another_order(json[key]) for key in sorted(json)}
    return [_in_another_order(item) for item in json] if isinstance(json, list) else json


@pytest.mark.parametrize("name", ["spark-v1", "spark-v2", "spark-v3", "pyiceberg-v2"])
def test_columns_are_known_however_they_are_written(name: str) -> None:
    json = sample(name)
    there = table_from_json(json, NAME)
    known = table_from_text(table_to_text(there).encode())
    for text in (_text(json), dumps(json, indent=2), _text(_in_another_order(json))):
        read = table_from_json(decode_metadata(text.encode(), FORM), NAME, known)
        assert read == there
        assert all(a is b for a, b in zip(read.schema.fields, known.schema.fields, strict=True))
    nested = next(f for f in there.schema.fields if is_nested(f.type))
    other = replace(nested, type=map_fields(nested.type, lambda f: replace(f, doc="another")))
    changed = replace(known, schema=replace(known.schema, fields=(other,)))
    assert table_from_json(decode_metadata(_text(json).encode(), FORM), NAME, changed) == there


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        (("schemas", "schema"), "both `schemas` and `schema` are missing"),
        (("partition-specs", "partition-spec"), "both `partition-specs` and `partition-spec` are missing"),
        (("current-schema-id",), "`current-schema-id` is missing"),
        (("default-spec-id",), "`default-spec-id` is missing"),
    ],
)
def test_version_1_needs_one_of_two(remove: tuple[str, ...], message: str) -> None:
    json = sample("spark-v1")
    for key in remove:
        del json[key]
    with pytest.raises(BadMetadata, match=message):
        table_from_json(json, NAME)


@pytest.mark.parametrize("json", [None, [], "text", 5])
def test_a_file_that_holds_something_else(json: Any) -> None:
    with pytest.raises(BadMetadata, match=r"the file contains .*, not an object"):
        table_from_json(json, NAME)


def test_a_damaged_older_schema_is_not_read() -> None:
    json = sample("spark-v2")
    del json["schemas"][0]["fields"][0]["type"]
    assert json["current-schema-id"] != 0
    assert table_from_json(json, NAME) == table_from_json(sample("spark-v2"), NAME)


def test_what_a_later_specification_adds_is_ignored() -> None:
    json = sample("spark-v3")
    json["future"] = {"a": [1]}
    json["schemas"][-1]["future"] = True
    json["schemas"][-1]["fields"][0]["future"] = 1
    json["refs"]["main"]["future"] = 2
    assert table_from_json(json, NAME) == table_from_json(sample("spark-v3"), NAME)


def test_a_table_without_snapshots_has_no_rows() -> None:
    json = sample("spark-v2") | {"snapshots": [], "refs": {}, "current-snapshot-id": -1}
    table = table_from_json(json, NAME)
    assert table.snapshot is None
    assert not table.has_rows


def test_a_type_nested_without_end_is_refused() -> None:
    json = sample("spark-v2-empty")
    type_: Any = "int"
    for i in range(5_000):
        type_ = {"type": "list", "element-id": i + 10, "element": type_, "element-required": False}
    json["schemas"][0]["fields"][0]["type"] = type_
    with pytest.raises(BadMetadata, match="nested too deeply"):
        table_from_json(json, NAME)
    json["schemas"][0]["fields"][0]["type"] = "deep"
    deep = '{"type":"list","element-id":9,"element-required":false,"element":' * 5_000 + '"int"' + "}" * 5_000
    text = _text(json).replace('"deep"', deep)
    with pytest.raises(BadMetadata, match="nested too deeply"):
        table_from_json(decode_metadata(text.encode(), FORM), NAME)


def test_a_transform_that_nobody_knows_is_kept() -> None:
    json = sample("spark-v2")
    json["partition-specs"][0]["fields"][0]["transform"] = "zorder[3]"
    table = table_from_json(json, NAME)
    specs = (table.spec, *table.older_specs)
    assert any(Transform("zorder[3]") in [f.transform for f in spec.fields] for spec in specs)
