"""A table that cannot be read: `status`, `drift` and `maintain` name it and go on with the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icemigrate.catalog.readable_tables import load_readable_tables
from icemigrate.cli import main
from icemigrate.errors import CatalogError, ExitCode, MetadataError
from icemigrate.execution.environment_session import open_environment
from icemigrate.iceberg.locations import copies_of, shared_with, table_locations, unreadable_locations
from icemigrate.iceberg.names import TableName
from icemigrate.project import open_project
from tests.support.embedded_project import Embedded

GOOD, BAD = TableName(("db",), "good"), TableName(("db",), "bad")
TABLES = """\
tables:
  - {name: db.good, columns: [{name: id, type: long}], retention: {snapshots: {max_age: 30d}}}
  - {name: db.bad, columns: [{name: id, type: long}], retention: {snapshots: {max_age: 30d}}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Embedded:
    shop = Embedded(tmp_path)
    shop.write("0001_two.yaml", TABLES)
    shop.apply()
    # A change by another client, which shows that the other table is still looked at.
    shop.edit("db.good", {"history.expire.max-snapshot-age-ms": "1"})
    return shop


def missing(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:40])


def without_schema(file: Path) -> None:
    document: dict[str, Any] = json.loads(file.read_text())
    del document["schemas"]
    file.write_text(json.dumps(document))


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


SHOWS_THE_OTHER_TABLE = {
    "status": "db.good differs",
    "drift": "~ db.good",
    "maintain --snapshots --dry-run": "db.good (snapshots): refused",
}


@pytest.mark.parametrize("damage", [missing, empty, cut_off, without_schema, a_folder])
@pytest.mark.parametrize("command", SHOWS_THE_OTHER_TABLE)
def test_the_others_are_still_shown(
    shop: Embedded, capsys: pytest.CaptureFixture[str], command: str, damage: Callable[[Path], None]
) -> None:
    damage(shop.metadata_file(BAD))
    assert main([*command.split(), "--project", str(shop.folder)]) == ExitCode.ERROR
    told = capsys.readouterr()
    assert "db.bad" in told.out
    assert "its metadata file" in told.out
    assert SHOWS_THE_OTHER_TABLE[command] in told.out
    assert told.err == ""
    main([*command.split(), "--project", str(shop.folder), "--format", "json"])
    assert "unreadable" in capsys.readouterr().out


SNAPSHOT = {"snapshot-id": 7, "timestamp-ms": 9, "sequence-number": 1, "manifest-list": "/none.avro"}
OLDER = SNAPSHOT | {"snapshot-id": 6}


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"snapshots": [SNAPSHOT, OLDER | {"summary": {"x": None}}]}, "snapshots[1]: summary"),
        ({"snapshots": [SNAPSHOT, OLDER | {"summary": 1}]}, "snapshots[1]: summary"),
        ({"snapshots": [SNAPSHOT, OLDER | {"schema-id": []}]}, "snapshots[1]: schema-id"),
        ({"snapshots": [SNAPSHOT, OLDER | {"timestamp-ms": "9"}]}, "snapshots[1]: timestamp-ms"),
        ({"snapshot-log": [{"snapshot-id": 7}]}, "snapshot-log[0]: `timestamp-ms` is missing"),
        ({"snapshot-log": [5]}, "snapshot-log[0] is not in the form"),
    ],
)
def test_a_damaged_older_snapshot_is_reported_by_commands_that_read_it(
    shop: Embedded, capsys: pytest.CaptureFixture[str], damage: dict[str, Any], why: str
) -> None:
    shop.write("0002_add.yaml", "tables: [{name: db.bad, columns: [{name: b, type: int}]}]\n")
    shop.apply()
    file = shop.metadata_file(BAD)
    whole = {**json.loads(file.read_text()), "snapshots": [SNAPSHOT], "current-snapshot-id": 7}
    file.write_text(json.dumps(whole | damage))
    with open_environment(open_project(shop.folder), None) as session:
        with pytest.raises(MetadataError) as caught:
            session.catalog.metadata_json(BAD)
        assert session.catalog.metadata_at(BAD, str(file)) is None
    assert f"table `db.bad`: its metadata file {file} is damaged: {why}" in caught.value.message
    for command in ("rollback --dry-run", "plan", "status", "drift", "maintain --snapshots --dry-run"):
        main([*command.split(), "--project", str(shop.folder)])
        shown = capsys.readouterr()
        assert "bug" not in shown.out + shown.err, command


def test_a_table_that_nothing_declares_keeps_no_renamed_table_from_being_found(
    shop: Embedded, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger = TableName(("db",), "stranger")
    shop.engine.tables[stranger] = shop.engine.tables[BAD].__class__(
        name=stranger, schema=shop.engine.tables[BAD].schema
    )
    shop.drop("db.bad")
    missing(shop.metadata_file(stranger))
    assert main(["drift", "--project", str(shop.folder)]) == ExitCode.CONFLICT
    assert "db.bad: missing from the catalog" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["drift --accept", "plan --reconcile"])
def test_what_cannot_be_read_is_neither_declared_nor_restored(
    shop: Embedded, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    missing(shop.metadata_file(BAD))
    assert main([*command.split(), "--project", str(shop.folder)]) == ExitCode.ERROR
    assert "table `db.bad`: its metadata file" in capsys.readouterr().err
    assert not (shop.folder / "migrations" / "0002_accept_drift.yaml").exists()


class _Catalog:
    """Answers for two tables; the catalog itself may fail."""

    def __init__(self, error: CatalogError, *, is_down: bool = False) -> None:
        self.error, self.is_down, self.asked = error, is_down, 0

    def load(self, names: Any, known: Any = None) -> Any:
        self.asked += 1
        if self.is_down or BAD in names:
            raise self.error
        return dict.fromkeys(names)


def test_a_catalog_that_is_down_is_no_unreadable_table() -> None:
    down: Any = _Catalog(CatalogError("no answer"), is_down=True)
    names = [TableName(("db",), f"t{number}") for number in range(64)]
    with pytest.raises(CatalogError, match="no answer"):
        load_readable_tables(down, names)
    assert down.asked < 16, "each request may take as long as the timeout"


def test_a_right_that_one_table_lacks_is_about_that_table() -> None:
    catalog: Any = _Catalog(CatalogError("forbidden", "ask for the right"))
    found = load_readable_tables(catalog, [GOOD, BAD])
    assert found.tables == {GOOD: None}
    assert found.unreadable == {BAD: "forbidden (ask for the right)"}
    one: Any = _Catalog(MetadataError("damaged"))
    assert load_readable_tables(one, [BAD]).unreadable == {BAD: "damaged"}


def test_an_unreadable_table_may_be_a_copy_where_its_metadata_is_in_the_same_folder() -> None:
    mine = table_locations(GOOD, {"location": "s3://lake/db/good"}, "s3://lake/db/good/metadata/v1.json")
    copy = unreadable_locations(BAD, "s3a://lake/db/good/metadata/v2.json")
    other = unreadable_locations(BAD, "s3://lake/db/bad/metadata/v2.json")
    assert list(copies_of(mine, [mine, copy]))
    assert list(shared_with(mine, [mine, copy]))
    assert not list(copies_of(mine, [mine, other]))
    assert not list(shared_with(mine, [mine, other]))
