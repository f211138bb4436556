"""`table describe`, `files`, `partitions` and `manifests` of real tables."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from icemigrate.errors import ExitCode, MetadataError
from icemigrate.table_data.file_lists import list_files, list_manifests, list_partitions
from icemigrate.table_data.partition_texts import PartitionTexts
from icemigrate.table_data.table_description import describe_table
from tests.support.table_project import TableProject
from tests.support.table_rows import append_rows, foreign_table

EVENTS = """\
tables:
  - name: sales.events
    columns:
      - {name: id, type: long, required: true, description: the id}
      - {name: at, type: timestamptz}
      - {name: kind, type: string}
      - {name: ok, type: boolean}
      - {name: price, type: "decimal(9,2)"}
      - {name: place, type: "struct<lat: double, lon: double>"}
    partition_by: [day(at), kind, ok, "bucket(4, id)", price]
    sort_by: [id desc]
    identifier: [id]
"""


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> TableProject:
    """Six snapshots: rows of one day in one partition each time, and of another day."""
    project = TableProject.create(tmp_path_factory.mktemp("events"), EVENTS)
    for number in range(6):
        first = {"id": 1, "at": datetime(2026, 11, 1, tzinfo=timezone.utc), "kind": "a/b", "ok": True}
        other = {"id": 2, "at": datetime(2026, 11, 2 + number, tzinfo=timezone.utc)}
        append_rows(project, [{**first, "price": Decimal("-1.50")}, other], "sales.events")
    foreign_table(project, "sales.events").manage_snapshots().create_tag(
        foreign_table(project, "sales.events").current_snapshot().snapshot_id, "checked"
    ).commit()
    return project


def test_a_description_has_ids_terms_and_sizes(events: TableProject) -> None:
    with events.tables() as tables:
        found = describe_table(tables, "sales.events")
    columns = {column.path: column for column in found.columns}
    assert (columns["id"].field_id, columns["id"].required, columns["id"].is_identifier) == (1, True, True)
    assert (columns["id"].doc, columns["place.lat"].type, columns["place"].type) == (
        "the id",
        "double",
        "struct",
    )
    assert [field.term for field in found.partition_by] == ["day(at)", "kind", "ok", "bucket(4, id)", "price"]
    assert [term.term for term in found.sort_by] == ["id desc"]
    sizes = found.sizes
    assert (sizes.rows, sizes.data_files, sizes.partitions, sizes.manifests) == (12, 12, 7, 6)
    assert sizes.data_bytes == found.growth[-1].size_bytes
    assert [point.rows for point in found.growth] == [2, 4, 6, 8, 10, 12]
    assert found.tags == 2


def test_health_names_findings_and_commands(events: TableProject) -> None:
    with events.tables() as tables:
        found = describe_table(tables, "sales.events", at=datetime.now(timezone.utc) + timedelta(days=400))
    health = {one.finding: one for one in found.health}
    assert health.keys() == {"small-files", "old-snapshots", "old-metadata"}
    assert health["small-files"].text.startswith("6 data files in 1 partition are smaller")
    assert health["small-files"].hint == "`icemigrate table compact sales.events`"
    assert health["old-snapshots"].text == "5 snapshots are older than 5d and can expire"
    assert health["old-snapshots"].hint == "`icemigrate table expire sales.events --days 5`"


def test_files_partitions_and_manifests(events: TableProject) -> None:
    with events.tables() as tables:
        files = list_files(tables, "sales.events", limit=3)
        partitions = list_partitions(tables, "sales.events", limit=2)
        manifests = list_manifests(tables, "sales.events")
        first = describe_table(tables, "sales.events").growth[0].snapshot_id
        older = list_files(tables, "sales.events", snapshot=str(first))
    assert (len(files.files), files.total, files.rows, older.total) == (3, 12, 12, 2)
    largest, other = partitions.partitions
    assert largest.partition == "at_day=2026-11-01/kind=a/b/ok=true/id_bucket_4=0/price=-1.50"
    assert (largest.files, largest.rows, partitions.total) == (6, 6, 7)
    assert "kind=null/ok=null" in other.partition
    assert [manifest.added_files for manifest in manifests.manifests] == [2] * 6


@pytest.mark.parametrize("command", ["files", "partitions", "manifests"])
def test_lists_are_bounded(events: TableProject, capsys: pytest.CaptureFixture[str], command: str) -> None:
    capsys.readouterr()
    assert events.run("table", command, "sales.events", "--limit", "2") == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[-1].endswith("2 are shown: `--limit 0` shows all.")
    assert events.run("table", command, "sales.events", "--limit", "0", "--format", "json") == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert len(document[command]) == document["total"] > 2


def test_the_plot_and_its_picture(
    events: TableProject, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capsys.readouterr()
    assert events.run("table", "describe", "sales.events", "--plot") == ExitCode.OK
    shown = capsys.readouterr().out
    assert "rows: 12" in shown
    assert "█" in shown
    path = tmp_path / "growth.svg"
    assert events.run("table", "describe", "sales.events", "-o", str(path)) == ExitCode.OK
    root = ElementTree.parse(path).getroot()
    description = root.findtext("{http://www.w3.org/2000/svg}desc") or ""
    assert description.startswith("rows from 2 to 12; data files from 2 to 12; size from")
    assert events.run("table", "describe", "sales.events", "-o", "x.png") == ExitCode.USAGE
    assert "write a name that ends in `.svg`" in capsys.readouterr().err


def test_a_damaged_manifest_is_one_error(tmp_path: Path) -> None:
    project = TableProject.create(tmp_path, EVENTS)
    append_rows(project, [{"id": 1}], "sales.events")
    (manifest,) = tmp_path.rglob("sales/events/metadata/*-m0.avro")
    manifest.write_bytes(manifest.read_bytes()[:-9])
    with (
        project.tables() as tables,
        pytest.raises(MetadataError, match=r"manifest .* cannot be read: it has"),
    ):
        describe_table(tables, "sales.events")


def test_a_table_without_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = TableProject.create(tmp_path, EVENTS)
    capsys.readouterr()
    for command in ("files", "partitions", "manifests"):
        assert project.run("table", command, "sales.events") == ExitCode.OK
        assert capsys.readouterr().out == f"table `sales.events` has no {command}\n"
    assert project.run("table", "describe", "sales.events", "--plot") == ExitCode.OK
    assert "No snapshot of main has numbers to plot." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("type_", "transform", "value", "text"),
    [
        ("timestamptz", "year", 56, "2026"),
        ("timestamptz", "month", 682, "2026-11"),
        ("timestamptz", "month", -1, "1969-12"),
        ("timestamptz", "hour", 498_571, "2026-11-16-19"),
        ("date", "identity", 20_784, "2026-11-27"),
        ("date", "day", 9_000_000, "day 9000000"),
        ("decimal(9,2)", "truncate[100]", b"\xff\x6a", "-1.50"),
        ("string", "truncate[2]", "ab", "ab"),
        ("binary", "identity", b"\x00\xff", "00ff"),
        ("boolean", "identity", False, "false"),
        ("double", "identity", 0.5, "0.5"),
        ("uuid", "identity", b"\x01" * 16, "01010101-0101-0101-0101-010101010101"),
        ("long", "bucket[4]", 3, "3"),
        ("string", "identity", None, "null"),
        ("string", "void", "x", ""),
    ],
)
def test_partition_values_as_text(type_: str, transform: str, value: object, text: str) -> None:
    metadata = {
        "current-schema-id": 0,
        "schemas": [
            {
                "schema-id": 0,
                "type": "struct",
                "fields": [{"id": 1, "name": "c", "type": type_, "required": False}],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [{"source-id": 1, "field-id": 1000, "transform": transform, "name": "p"}],
            }
        ],
    }
    shown = PartitionTexts(metadata).text(0, {1000: value})
    assert shown == (f"p={text}" if text else "")
