"""``diff``: what is written, left out and refused, for each kind of desired state."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from icemigrate.commands.check import check
from icemigrate.commands.diff import DiffOptions, diff
from icemigrate.commands.show import show
from icemigrate.errors import IcemigrateError, Mistakes, UsageError
from icemigrate.frozen import replace
from icemigrate.iceberg.names import TableName
from icemigrate.project import Project, open_project
from icemigrate.render.formats import render
from icemigrate.results.diff_results import DiffResult
from tests.support.embedded_project import Embedded

EVENTS = """\
namespaces: [demo]
tables:
  - name: demo.events
    columns:
      - {name: id, type: long, required: true}
      - {name: happened_at, type: timestamptz, required: true}
      - {name: kind, type: string}
    partition_by: [day(happened_at)]
"""
PLAIN = DiffOptions()


@pytest.fixture
def market(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    text = "project: market\nenvironments: {local: {catalog: {type: sqlite}}}\ndefault_environment: local\n"
    (tmp_path / "icemigrate.yaml").write_text(text, encoding="utf-8")
    Embedded(tmp_path).write("0001_events.yaml", EVENTS)
    return open_project(tmp_path)


def desired(market: Project, text: str, name: str = "desired.yaml") -> Path:
    path = market.root / name
    path.write_text(dedent(text), encoding="utf-8")
    return path


def changed(market: Project, *edits: tuple[str, str]) -> Path:
    """The output of `show`, edited."""
    text = show(market)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return desired(market, text)


def body(result: DiffResult) -> str:
    """The written file from its tables on."""
    return result.content[result.content.index("tables:") :]


def mistakes(market: Project, source: object, options: DiffOptions = PLAIN) -> list[str]:
    with pytest.raises(Mistakes) as caught:
        diff(market, source, options=options)
    assert not list(market.migrations_dir.glob("0002*"))
    return [str(d).partition("\n")[0] for d in caught.value.diagnostics]


TABLE = DiffOptions(("demo.events",))


def test_an_edited_table_becomes_the_next_file_and_then_nothing_is_left(market: Project) -> None:
    path = changed(
        market,
        (
            "{name: kind, type: string}",
            "{name: kind, type: string, description: why}\n      - {name: size, type: int}",
        ),
        ("day(", "month("),
    )
    result = diff(market, path)
    assert result.path == "migrations/0002_change_demo_events.yaml"
    assert (market.root / result.path).read_text(encoding="utf-8") == result.content
    assert body(result) == (
        "tables:\n  - name: demo.events\n    columns:\n      - {name: kind, description: why}\n"
        "      - {name: size, type: int}\n    partition_by: [month(happened_at)]\n"
    )
    assert check(market).ok
    assert diff(market, path).is_empty


def test_the_other_state_is_named_by_its_kinds_of_file(market: Project) -> None:
    with pytest.raises(UsageError) as error:
        diff(market)
    hint = error.value.hint or ""
    assert all(
        word in hint for word in ("`.yaml`", "Parquet", "Arrow", "dbt", "data contract", "`--from-env")
    )


def test_a_rename_needs_an_answer(market: Project) -> None:
    path = changed(market, ("name: kind", "name: source"))
    assert mistakes(market, path) == [
        "desired.yaml:6:16: error: `source of demo.events` is new and `kind` is missing: the column may be "
        "renamed [ambiguous-rename]"
    ]
    hinted = diff(market, path, options=DiffOptions(renames=("demo.events.kind=source",), dry_run=True))
    assert "renames: {kind: source}" in hinted.content
    assert diff(market, path, options=DiffOptions(dry_run=True), answer=lambda _: 0).content == hinted.content
    refused = diff(market, path, options=DiffOptions(no_renames=True, dry_run=True))
    assert refused.left_out == ("column kind of demo.events",)
    assert "drop_columns" not in refused.content
    assert diff(market, path, options=DiffOptions(dry_run=True), answer=lambda _: None) == refused


def test_drops_are_written_with_their_consent(market: Project) -> None:
    path = changed(market, ("      - {name: kind, type: string}\n", ""))
    left = diff(market, path)
    assert (left.path, left.left_out) == (None, ("column kind of demo.events",))
    result = diff(market, path, options=DiffOptions(include_drops=True))
    assert result.allow == ("destructive demo.events.kind",)
    assert "drop_columns: [kind]" in result.content
    assert check(market).ok


def test_tables_are_renamed_dropped_and_created(market: Project) -> None:
    path = changed(market, ("demo.events", "demo.visits"))
    assert mistakes(market, path) == [
        "desired.yaml:2:11: error: `demo.visits` is new and `demo.events` is missing: the table may be "
        "renamed [ambiguous-rename]"
    ]
    renamed = diff(market, path, options=DiffOptions(renames=("demo.events=demo.visits",), dry_run=True))
    assert "renamed_from: demo.events" in renamed.content
    both = diff(market, path, options=DiffOptions(no_renames=True, include_drops=True, dry_run=True))
    assert "    drop: true" in both.content
    assert both.left_out == ()
    kept = diff(market, path, options=DiffOptions(no_renames=True, dry_run=True))
    assert kept.left_out == ("table demo.events",)


def test_a_folder_holds_one_state(market: Project) -> None:
    folder = market.root / "tables"
    folder.mkdir()
    (folder / "events.yaml").write_text(show(market), encoding="utf-8")
    (folder / "people.yaml").write_text("tables: [{name: demo.people, columns: [{name: id, type: long}]}]\n")
    result = diff(market, folder, options=DiffOptions(dry_run=True))
    assert [one.table for one in result.tables] == ["demo.people"]
    (folder / "more.yaml").write_text("tables: [{name: demo.people, columns: [{name: id, type: lnog}]}]\n")
    assert [one.rpartition("[")[2] for one in mistakes(market, folder)] == ["listed-twice]", "bad-type]"]


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ("kind", "`--rename kind` is no rename"),
        ("demo.events.kidn=source", "`--rename demo.events.kidn=source`: `demo.events` has no column `kidn`"),
        (
            "demo.event=demo.visits",
            "`--rename demo.event=demo.visits`: there is no declared table `demo.event`",
        ),
        ("kind=origin", "`--rename demo.events.kind=origin`: the desired table has no column `origin`"),
        (
            "demo.events=demo.people",
            "`--rename demo.events=demo.people`: the desired state has no table `demo.people`",
        ),
    ],
)
def test_a_hint_that_fits_nothing_is_refused(market: Project, hint: str, message: str) -> None:
    path = changed(market, ("name: kind", "name: source"))
    with pytest.raises(UsageError) as caught:
        diff(market, path, options=DiffOptions(renames=(hint,)))
    assert caught.value.message == message


def test_what_no_migration_can_declare_is_reported_at_once(market: Project) -> None:
    path = changed(
        market,
        ("{name: happened_at, type: timestamptz", "{name: happened_at, type: date"),
        ("{name: kind, type: string}", "{name: kind, type: list<string>}"),
        ("    columns:", "    location: s3://lake/events\n    format_version: 1\n    columns:"),
    )
    found = mistakes(market, path)
    assert [one.rpartition("[")[2] for one in found] == [
        *("no-promotion]", "no-promotion]", "format-downgrade]", "location-changed]"),
    ]
    assert found[0].startswith("desired.yaml:7:16: error: `happened_at` of `demo.events` has the type")


def test_an_arrow_schema_states_columns_and_types(market: Project) -> None:
    schema = pyarrow.schema(
        [
            pyarrow.field("id", pyarrow.int64()),
            pyarrow.field("happened_at", pyarrow.timestamp("ns", tz="UTC")),
            pyarrow.field("kind", pyarrow.large_string(), nullable=False),
            pyarrow.field("tags", pyarrow.list_(pyarrow.struct([("a", pyarrow.int16())]))),
            pyarrow.field("amounts", pyarrow.map_(pyarrow.string(), pyarrow.decimal128(18, 6))),
        ]
    )
    result = diff(market, schema, options=DiffOptions(("demo.events",), dry_run=True))
    assert body(result) == (
        "tables:\n  - name: demo.events\n    columns:\n      - {name: kind, required: true}\n"
        "      - {name: tags, type: 'list<struct<a: int>>'}\n"
        "      - {name: amounts, type: 'map<string, decimal(18,6)>'}\n"
    ).replace("'", '"')
    pyarrow.parquet.write_table(schema.empty_table(), market.root / "rows.parquet")
    stored = diff(market, market.root / "rows.parquet", options=DiffOptions(("demo.events",), dry_run=True))
    assert stored.content == result.content
    with pyarrow.OSFile(str(market.root / "rows.arrow"), "wb") as sink:
        pyarrow.ipc.new_file(sink, schema).close()
    assert (
        diff(market, market.root / "rows.arrow", options=DiffOptions(("demo.events",), dry_run=True))
        == stored
    )


def test_arrow_types_without_an_equal_are_reported(market: Project) -> None:
    schema = pyarrow.schema([("id", pyarrow.decimal256(76, 0)), ("spent", pyarrow.duration("s"))])
    assert [one.rpartition("[")[2] for one in mistakes(market, schema, TABLE)] == ["unclear-type]"] * 2
    (market.root / "rows.parquet").write_bytes(b"PAR1 no footer")
    with pytest.raises(IcemigrateError, match="cannot be read"):
        diff(market, market.root / "rows.parquet", options=TABLE)


SPARK: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "happened_at", "type": "timestamp", "nullable": True, "metadata": {}},
        {"name": "kind", "type": "string", "nullable": True, "metadata": {"comment": "what happened"}},
        {
            "name": "tags",
            "type": {"type": "array", "elementType": "timestamp_ntz", "containsNull": False},
            "nullable": True,
            "metadata": {},
        },
    ],
}


def test_a_schema_of_spark_states_columns_and_types(market: Project) -> None:
    path = desired(market, json.dumps(SPARK), "schema.json")
    result = diff(market, path, options=DiffOptions(("demo.events",), dry_run=True))
    assert body(result) == (
        "tables:\n  - name: demo.events\n    columns:\n      - {name: kind, description: what happened}\n"
        "      - {name: tags, type: list<required timestamp>}\n"
    )

    class StructType:
        """What Spark's class has of it."""

        def fieldNames(self) -> list[str]:  # noqa: N802 (the name in PySpark)
            return [str(field["name"]) for field in SPARK["fields"]]

        def json(self) -> str:
            return json.dumps(SPARK)

    assert diff(market, StructType(), options=DiffOptions(("demo.events",), dry_run=True)) == result
    broken = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "interval"}, {"type": "long"}]})
    found = mistakes(market, desired(market, broken, "schema.json"), TABLE)
    assert [one.rpartition("[")[2] for one in found] == ["missing-key]"]


DBT = """\
version: 2
models:
  - name: events
    description: all events
    columns:
      - {name: kind, data_type: varchar(20), constraints: [{type: not_null}]}
      - {name: id, data_type: bigint}
      - {name: happened_at, data_type: timestamp}
      - name: items
        data_type: "array<struct<sku: string not null, price decimal(10,2)>>"
"""


def test_the_columns_of_a_dbt_model(market: Project) -> None:
    path = desired(market, DBT, "schema.yml")
    result = diff(market, path, options=DiffOptions(("demo.events",), dry_run=True))
    assert body(result) == (
        "tables:\n  - name: demo.events\n    columns:\n      - {name: kind, required: true}\n"
        '      - {name: items, type: "list<struct<sku: required string, price: decimal(10,2)>>"}\n'
    )
    path = desired(
        market, DBT + "      - {name: seen, data_type: timestamp}\n      - {name: size}\n", "schema.yml"
    )
    assert mistakes(market, path, TABLE) == [
        "schema.yml:11:33: error: the type of the new `seen` of `demo.events` is not clear [unclear-type]",
        "schema.yml:12:9: error: the type of the new `size` of `demo.events` is not clear [unclear-type]",
    ]


ODCS = """\
apiVersion: v3.0.2
kind: DataContract
id: x
schema:
  - name: people
    properties: [{name: id, logicalType: string}]
  - name: all events
    physicalName: demo.events
    properties:
      - {name: id, logicalType: integer, required: true, primaryKey: true}
      - {name: happened_at, logicalType: timestamp}
      - {name: kind, logicalType: string, description: what happened}
      - {name: amount, logicalType: number, physicalType: "NUMERIC(18, 6)"}
      - name: tags
        logicalType: array
        items: {logicalType: object, properties: [{name: a, logicalType: boolean, required: true}]}
"""


def test_an_object_of_a_data_contract(market: Project) -> None:
    path = desired(market, ODCS, "contract.yaml")
    result = diff(market, path, options=DiffOptions(("demo.events",), dry_run=True))
    assert body(result) == (
        "tables:\n  - name: demo.events\n    columns:\n      - {name: kind, description: what happened}\n"
        '      - {name: amount, type: "decimal(18,6)"}\n'
        '      - {name: tags, type: "list<struct<a: required boolean>>"}\n'
    )
    wrong = ODCS.replace("logicalType: integer", "logicalType: serial").replace("name: kind,", "")
    found = mistakes(market, desired(market, wrong, "contract.yaml"), TABLE)
    assert [one.rpartition("[")[2] for one in found] == ["bad-value]", "missing-key]"]


def test_a_schema_needs_one_table(market: Project) -> None:
    with pytest.raises(UsageError) as caught:
        diff(market, desired(market, DBT, "schema.yml"))
    assert caught.value.hint == "`--table NAME` says which one"
    new = diff(market, pyarrow.schema([("id", pyarrow.int64())]), options=DiffOptions(("demo.people",)))
    assert [one.table for one in new.tables] == ["demo.people"]


def test_another_environment_is_compared_without_what_belongs_to_its_catalog(market: Project) -> None:
    embedded = Embedded(market.root)
    embedded.apply()
    assert diff(market, from_environment="local").is_empty
    embedded.edit("demo.events", {"owner.team": "trading"})
    embedded.write("0002_people.yaml", "tables: [{name: demo.people, columns: [{name: id, type: long}]}]\n")
    result = diff(market, from_environment="local", options=DiffOptions(dry_run=True))
    assert body(result) == "tables:\n  - name: demo.events\n    properties: {owner.team: trading}\n"
    assert result.left_out == ("table demo.people",)
    with pytest.raises(UsageError):
        diff(market, from_environment="prod")


def test_a_table_that_an_environment_has_already_is_adopted(market: Project) -> None:
    embedded = Embedded(market.root)
    embedded.apply()
    events = embedded.engine.tables[TableName.parse("demo.events")]
    other = TableName.parse("demo.other")
    embedded.engine.tables[other] = replace(events, name=other, uuid=None, properties={})
    embedded.save()
    result = diff(market, from_environment="local", options=DiffOptions(dry_run=True))
    assert body(result).startswith("tables:\n  - name: demo.other\n    adopt: true\n    columns:\n")


@pytest.mark.parametrize("text", ["", "tables: [", "a: &a [*a]", "- 1", "models: 3", "kind: DataContract"])
def test_a_file_of_another_form_is_an_error_with_a_position(market: Project, text: str) -> None:
    assert all(one.startswith("desired.yaml:1:") for one in mistakes(market, desired(market, text), TABLE))


def test_a_cast_is_written_with_a_check_and_without_its_consent(market: Project) -> None:
    result = diff(market, changed(market, ("{name: kind, type: string}", "{name: kind, type: int}")))
    assert result.content.splitlines()[1:4] == [
        "# Review: `retype` replaces a column of demo.events: kind string → int.",
        "# The check fails where a cast back gives another value; remove it only if that is intended.",
        "# Then consent to it, as a line of this file: allow: [destructive demo.events.kind]",
    ]
    values = "select kind from {table} where not (try_cast(try_cast(kind as INT) as STRING) <=> kind) limit 5"
    assert [line.strip() for line in body(result).splitlines()] == [
        *("tables:", "- name: demo.events", "retype:", "kind:", "to: int", "using: cast(kind as INT)"),
        *("checks:", "- name: kind keeps its values", f"after: {values}"),
    ]
    assert (result.allow, result.review) == ((), ("destructive demo.events.kind",))
    assert "  allow: [destructive demo.events.kind]" in render(result)
    assert any("destructive demo.events.kind" in str(one) for one in check(market).diagnostics)
    assert diff(market, market.root / "desired.yaml").is_empty


def test_a_required_column_that_is_cast_stays_required_without_a_hazard(market: Project) -> None:
    path = changed(
        market, ("{name: id, type: long, required: true}", "{name: id, type: string, required: true}")
    )
    result = diff(market, path)
    assert (result.allow, result.review) == ((), ("destructive demo.events.id",))
    assert "because" not in result.content
    (table,) = result.tables
    assert table.changes[-1] == "~ id required again"
    assert not any(one.code == "IM105" for one in check(market).diagnostics)


def test_the_consent_of_a_cast_has_a_place_beside_the_others(market: Project) -> None:
    path = changed(
        market,
        ("{name: id, type: long, required: true}", "{name: id, type: string, required: true}"),
        ("{name: kind, type: string}", "{name: kind, type: string, required: true}"),
    )
    result = diff(market, path)
    allow = "allow: [incompatible demo.events.kind, destructive demo.events.id]"
    assert f"# Then consent to it, instead of the line `allow` below: {allow}" in result.content
    shown = render(result)
    assert f"instead of its line `allow`:\n  {allow}" in shown
    assert shown.endswith(
        "Next: review it, then run `icemigrate check --fix`, which updates the lock file.\n"
    )
    assert result.path is not None
    file = market.root / result.path
    lines = [allow if line.startswith("allow:") else line for line in result.content.splitlines()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert not [one for one in check(market).diagnostics if one.code == "missing-allow"]


NESTED = """\
  - name: demo.people
    format_version: 3
    columns:
      - {name: id, type: long, default: 7}
      - {name: address, type: "struct<zip: int, tags: list<int>>"}
      - {name: born, type: timestamp, required: true}
"""


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (("zip: int", "zip: string"), "address.zip int → string"),
        (("born, type: timestamp", "born, type: date"), "born timestamp → date"),
        (("born, type: timestamp", "born, type: uuid"), None),
        (("list<int>", "list<string>"), None),
        (("id, type: long", "id, type: int"), None),
    ],
)
def test_what_retype_cannot_replace_stays_an_error(
    market: Project, edit: tuple[str, str], expected: str | None
) -> None:
    Embedded(market.root).write("0001_events.yaml", EVENTS + NESTED)
    path = changed(market, edit)
    if expected is None:
        assert [one.rpartition("[")[2] for one in mistakes(market, path)] == ["no-promotion]"]
    else:
        assert f"replaces a column of demo.people: {expected}." in diff(market, path).content


def test_a_column_is_renamed_and_retyped(market: Project) -> None:
    path = changed(market, ("{name: kind, type: string}", "{name: source, type: double, required: true}"))
    result = diff(market, path, options=DiffOptions(renames=("kind=source",)))
    assert "renames: {kind: source}" in result.content
    assert "using: cast(source as DOUBLE)" in result.content
    assert result.review == ("destructive demo.events.source",)
    assert diff(market, path).is_empty
