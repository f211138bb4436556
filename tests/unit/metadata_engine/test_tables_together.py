"""The tables of a migration in one transaction: on a project of real files and a SQLite catalog."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from icemigrate.catalog import CatalogSettings
from icemigrate.catalog.sqlite_reader import SqliteCatalog
from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.reconcile import plan_reconcile, reconcile
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.commands.status import status
from icemigrate.errors import EngineError, IcemigrateError, LockLost
from icemigrate.execution import table_groups
from icemigrate.execution.engine_choice import transaction_engine_obstacle
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.failures import Undone
from icemigrate.iceberg.json_text import Json
from icemigrate.iceberg.names import TableName
from icemigrate.metadata_engine.apply_updates import InvalidUpdate
from icemigrate.metadata_engine.engine import MetadataEngine
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.location_swaps import LocationSwap, swap_conflict
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.metadata_engine.sqlite_store import open_sqlite_store
from icemigrate.metadata_engine.table_commit import CommitDraft
from icemigrate.metadata_engine.table_store import CommitRefused, StoredTable, TableCommit
from icemigrate.metadata_engine.uncertain_outcome import LostAnswer
from icemigrate.project import Project, open_project
from icemigrate.render.json_documents import plan_document
from icemigrate.render.plan_markdown import plan_markdown
from icemigrate.render.plan_text import plan_text
from icemigrate.render.terminal_style import PLAIN_STYLE
from tests.support.rest_tables import rest_tables
from tests.support.small_commits import columns, created, set_properties, with_column

SCHEMA = Path(__file__).parents[3] / "schemas" / "plan.schema.json"
NAMES = [TableName.parse(f"db.t{number:02}") for number in range(20)]
SOME = NAMES[:3]


class Killed(BaseException):
    """The process ends here."""


class Lake:
    """A project whose catalog is read and changed beside it.

    :ivar sent: the names of the tables of each commit of several tables.
    :ivar before: called before each of these commits; by default does nothing.
    :ivar after: called after each of them.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.sent: list[list[str]] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        folder = project.root / ".icemigrate"
        settings = CatalogSettings("local", "sqlite", str(folder / "catalog.db"), f"{folder}/warehouse")
        self.store = open_sqlite_store(settings)

    def write(self, version: int, names: Sequence[TableName], column: str) -> None:
        """Write a migration that adds a column to tables, and creates those that are missing."""
        path = self.project.root / "migrations" / f"{version:04}_step.yaml"
        path.parent.mkdir(exist_ok=True)
        entries = (f"  - name: {name}\n    columns: [{{name: {column}, type: int}}]\n" for name in names)
        path.write_text("tables:\n" + "".join(entries), encoding="utf-8")

    def make(self, names: Sequence[TableName]) -> None:
        """Create tables, and write a migration that adds a column to each."""
        self.write(1, names, "a")
        self.apply()
        self.sent.clear()
        self.write(2, names, "b")

    def apply(self) -> None:
        apply(self.project, plan(self.project).plan)

    def rollback(self) -> None:
        rollback(self.project, plan_rollback(self.project).plan)

    def table(self, name: TableName) -> StoredTable:
        table = self.store.load(name)
        assert table is not None
        return table

    def columns(self, names: Sequence[TableName] = SOME) -> list[list[str]]:
        return [columns(self.table(name)) for name in names]

    def add_column(self, name: TableName, column: str) -> None:
        """What another client adds."""
        self.store.commit([with_column(self.table(name), name, column)])

    def set(self, name: TableName, **properties: str) -> None:
        """What another client sets."""
        self.store.commit([set_properties(self.table(name), name, **properties)])

    def drop_last_column(self, name: TableName) -> None:
        """What another client drops."""
        table = self.table(name)
        schema = next(s for s in table.json["schemas"] if s["schema-id"] == table.json["current-schema-id"])
        updates: tuple[Json, ...] = (
            {"action": "add-schema", "schema": {**schema, "fields": schema["fields"][:-1]}},
            {"action": "set-current-schema", "schema-id": -1},
        )
        self.store.commit([TableCommit(name, table, updates)])

    def files(self) -> dict[str, bytes]:
        """The files of all tables but the history, and their content."""
        folder = self.project.root / ".icemigrate" / "warehouse" / "db"
        return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    @property
    def state(self) -> str:
        """The state of the last migration."""
        return status(self.project).migrations[-1].state


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """Three tables, and a pending migration that adds a column to each."""
    monkeypatch.setattr("icemigrate.metadata_engine.uncertain_outcome.PAUSES_S", (0.0, 0.0, 0.0))
    (tmp_path / "icemigrate.yaml").write_text("project: market\n", encoding="utf-8")
    lake = Lake(dataclasses.replace(open_project(tmp_path), apply_with="metadata"))
    original = SqlTableStore.commit

    def commit(self: SqlTableStore, commits: Sequence[TableCommit], *rest: Any) -> tuple[StoredTable, ...]:
        if len(commits) < 2:
            return original(self, commits, *rest)
        lake.sent.append(sorted(commit.name.name for commit in commits))
        lake.before()
        made = original(self, commits, *rest)
        lake.after()
        return made

    monkeypatch.setattr(SqlTableStore, "commit", commit)
    lake.make(SOME)
    yield lake
    lake.store.close()


def once(act: Callable[[], None]) -> Callable[[], None]:
    """An action that is done at the first call only."""
    left = [act]
    return lambda: left.pop()() if left else None


def test_apply_and_rollback_change_all_tables_in_one_commit(lake: Lake) -> None:
    lake.apply()
    assert lake.columns() == [["a", "b"]] * 3
    assert all("icemigrate-market-0002" in lake.table(name).json["refs"] for name in SOME)
    assert all(len(lake.table(name).json["metadata-log"]) == 1 for name in SOME)
    lake.rollback()
    assert lake.columns() == [["a"]] * 3
    assert lake.sent == [["t00", "t01", "t02"]] * 2


def test_a_redo_and_a_reconciliation_are_one_commit_too(lake: Lake) -> None:
    lake.apply()
    lake.rollback()
    apply(lake.project, plan(lake.project, redo="0002").plan)
    for name in SOME:
        lake.drop_last_column(name)
    lake.sent.clear()
    reconcile(lake.project, plan_reconcile(lake.project).plan)
    assert lake.columns() == [["a", "b"]] * 3
    assert lake.sent == [["t00", "t01", "t02"]]


def test_a_faster_writer_of_one_table_repeats_all_changes(lake: Lake) -> None:
    before = lake.files()
    lake.before = once(lambda: lake.set(SOME[1], theirs="1"))
    lake.apply()
    assert lake.columns() == [["a", "b"]] * 3
    assert lake.table(SOME[1]).json["properties"]["theirs"] == "1"
    assert len(lake.sent) == 2
    # One metadata file and one manifest list for each table, and the file of the other client.
    assert len(lake.files().keys() - before.keys()) == 2 * 3 + 1


def test_new_tables_are_created_in_groups(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.apply()
    lake.sent.clear()
    monkeypatch.setattr(table_groups, "NEW_TABLES_PER_GROUP", 3)
    new = NAMES[3:10]
    lake.write(3, new, "a")
    lake.apply()
    assert lake.sent == [["t03", "t04", "t05"], ["t06", "t07", "t08"]]  # and the last one alone
    for name in new:
        json = lake.table(name).json
        assert columns(lake.table(name)) == ["a"]
        assert json["properties"]["icemigrate.owner"] == "market"
        (tag,) = json["refs"]
        (marker,) = json["snapshots"]
        assert (tag, json["refs"][tag]["snapshot-id"]) == ("icemigrate-market-0003", marker["snapshot-id"])
        assert marker["summary"]["icemigrate.version"] == "0003"
        assert json["last-updated-ms"] >= marker["timestamp-ms"]
    lake.rollback()
    assert [lake.store.load(name) for name in new] == [None] * 7


def test_one_commit_makes_a_new_table_as_several_do(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """With identifier fields, an order, partitions and a branch."""
    text = (
        'tables:\n  - name: "db.new${n}"\n    columns:\n'
        "      - {name: id, type: int, required: true}\n      - {name: at, type: date}\n"
        "    identifier: [id]\n    partition_by: [day(at)]\n    sort_by: [id]\n"
        "    properties: {owner.team: markets}\n    branches: {audit: {}}\n    for_each: {n: [1, 2]}\n"
    )
    lake.apply()
    made = list[Json]()
    for version, size in ((3, 256), (4, 1)):
        path = lake.project.root / "migrations" / f"{version:04}_new.yaml"
        path.write_text(text.replace("new$", f"new{version}_$"), encoding="utf-8")
        monkeypatch.setattr(table_groups, "NEW_TABLES_PER_GROUP", size)
        lake.apply()
        made.append(lake.table(TableName.parse(f"db.new{version}_1")).json)
    together, alone = made
    assert len(together["metadata-log"]) < len(alone["metadata-log"])
    for key in ("schemas", "partition-specs", "sort-orders", "current-schema-id", "last-column-id"):
        assert together[key] == alone[key]
    assert together["properties"].keys() == alone["properties"].keys()
    assert len(together["refs"]) == len(alone["refs"]) == 2


def test_a_group_that_another_client_precedes_creates_no_table(lake: Lake) -> None:
    lake.apply()
    new = NAMES[3:6]
    lake.write(3, new, "a")
    lake.before = once(lambda: [created(lake.store, new[1])].clear())
    with pytest.raises(Undone, match=r"there is a table or view `db\.t04` already"):
        lake.apply()
    assert [lake.store.load(name) is None for name in new] == [True, False, True]
    assert lake.state == "pending"


@pytest.mark.parametrize("then", ["apply", "rollback"])
@pytest.mark.parametrize("is_made", [True, False])
def test_a_creation_that_dies_is_finished_or_undone(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, is_made: bool, then: str
) -> None:
    """In the second of three groups."""

    def die() -> None:
        if len(lake.sent) == 2:
            raise Killed

    lake.apply()
    lake.sent.clear()
    new = NAMES[3:9]
    lake.write(3, new, "a")
    monkeypatch.setattr(table_groups, "NEW_TABLES_PER_GROUP", 2)
    setattr(lake, "after" if is_made else "before", die)
    with pytest.raises(Killed):
        lake.apply()
    there = 4 if is_made else 2
    assert [lake.store.load(name) is not None for name in new] == [True] * there + [False] * (6 - there)
    assert lake.state == "interrupted"
    lake.after = lake.before = lambda: None
    getattr(lake, then)()
    assert [lake.store.load(name) is not None for name in new] == [then == "apply"] * 6
    if then == "apply":
        assert all("icemigrate-market-0003" in lake.table(name).json["refs"] for name in new)
    assert lake.state == ("applied" if then == "apply" else "held")


def test_a_failed_migration_of_twenty_tables_leaves_no_trace(lake: Lake) -> None:
    lake.write(2, NAMES[3:], "a")
    lake.apply()
    lake.write(3, NAMES, "b")
    others, last = NAMES[:-1], NAMES[-1]
    before, locations = lake.files(), {name: lake.table(name).location for name in others}
    lake.before = once(lambda: lake.add_column(last, "b"))
    with pytest.raises(Undone, match="another client changed what this migration changes"):
        lake.apply()
    assert {name: lake.table(name).location for name in others} == locations
    after = lake.files()
    assert {file: after[file] for file in before} == before
    assert len(after) == len(before) + 1  # the metadata file of the other client
    assert "icemigrate-market-0003" not in lake.table(last).json["refs"]
    assert lake.state == "pending"


@pytest.mark.parametrize("number", [1, 3, 4, 6])
def test_a_file_that_cannot_be_written_leaves_no_trace(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Of six files: first the manifest lists of the tables, then their metadata files."""
    before, original, numbers = lake.files(), TableFiles.write, count(1)

    def write(self: TableFiles, location: str, *content: bytes) -> None:
        if "/db/" in location and next(numbers) == number:  # threads write them
            raise EngineError("the disk is full")
        original(self, location, *content)

    monkeypatch.setattr(TableFiles, "write", write)
    with pytest.raises(Undone, match="the disk is full"):
        lake.apply()
    assert lake.files() == before
    assert lake.state == "pending"
    lake.apply()
    assert lake.columns() == [["a", "b"]] * 3


@pytest.mark.parametrize(
    ("error", "left"), [(CommitRefused("no"), 0), (InvalidUpdate("no"), 0), (EngineError("no"), 3)]
)
def test_manifest_lists_stay_only_where_the_catalog_may_refer_to_them(
    lake: Lake, error: EngineError, left: int
) -> None:
    before = lake.files()

    def fail() -> None:
        raise error

    lake.before = fail
    with pytest.raises(Undone):
        lake.apply()
    assert len(lake.files().keys() - before.keys()) == left


def test_a_draft_that_fails_leaves_no_manifest_list(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an update does that does not fit the metadata, after the marker's snapshot was written."""
    before, original = lake.files(), CommitDraft.mark

    def mark(self: CommitDraft, *arguments: Any) -> None:
        original(self, *arguments)
        if self.base.table.name == SOME[-1]:
            raise InvalidUpdate("the metadata has no schema 7")

    monkeypatch.setattr(CommitDraft, "mark", mark)
    with pytest.raises(Undone, match="the metadata has no schema 7"):
        lake.apply()
    assert lake.files() == before


@pytest.mark.parametrize("is_made", [True, False])
def test_a_lost_answer_is_looked_up(lake: Lake, monkeypatch: pytest.MonkeyPatch, is_made: bool) -> None:
    lose_answers(monkeypatch, [is_made])
    lake.apply()
    assert lake.columns() == [["a", "b"]] * 3
    assert [len(lake.table(name).json["metadata-log"]) for name in SOME] == [1, 1, 1]


def test_an_outcome_that_stays_unknown_keeps_the_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lake.files()
    lose_answers(monkeypatch, [False] * 3)
    with pytest.raises(Undone, match=r"does not show whether the commit to `db\.t00`, `db\.t01`"):
        lake.apply()
    assert lake.columns() == [["a"]] * 3
    assert len(lake.files().keys() - before.keys()) == 2 * 3
    lake.apply()
    assert lake.columns() == [["a", "b"]] * 3


def lose_answers(monkeypatch: pytest.MonkeyPatch, made: list[bool]) -> None:
    """Lose the answers to transactions of several tables.

    :param made: of each in turn, whether the catalog makes it.
    """
    original = SqlTableStore._swap

    def swap(self: SqlTableStore, changes: Sequence[Any], *rest: Any) -> None:
        database = self._database
        writes = database.write

        def write(act: Any) -> Any:
            if not made or len(changes) < 2:
                return writes(act)
            if made.pop(0):
                writes(act)
            raise LostAnswer

        monkeypatch.setattr(database, "write", write)
        try:
            original(self, changes, *rest)
        finally:
            monkeypatch.setattr(database, "write", writes)

    monkeypatch.setattr(SqlTableStore, "_swap", swap)


def test_the_lock_is_asked_before_each_further_attempt(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lake.files()
    lose_answers(monkeypatch, [False] * 3)
    original, lost = MetadataEngine._require, list[bool]()

    def require(self: MetadataEngine) -> None:
        if lost:
            raise LockLost("another process took the lock over")
        original(self)

    monkeypatch.setattr(MetadataEngine, "_require", require)
    lake.before = lambda: lost.append(True)
    with pytest.raises(IcemigrateError, match="another process took the lock over"):
        lake.apply()
    assert lake.columns() == [["a"]] * 3
    # The catalog may still make the attempt whose answer was lost.
    assert len(lake.files().keys() - before.keys()) == 2 * 3


@pytest.mark.parametrize("then", ["apply", "rollback"])
@pytest.mark.parametrize("is_made", [True, False])
def test_a_run_that_dies_at_the_commit_is_finished_or_undone(lake: Lake, is_made: bool, then: str) -> None:
    def die() -> None:
        raise Killed

    setattr(lake, "after" if is_made else "before", once(die))
    with pytest.raises(Killed):
        lake.apply()
    assert lake.state == "interrupted"
    assert lake.columns() == [["a", "b"] if is_made else ["a"]] * 3
    (lake.apply if then == "apply" else lake.rollback)()
    assert lake.columns() == [["a", "b"] if then == "apply" else ["a"]] * 3
    assert lake.state == {"apply": "applied", "rollback": "held"}[then]


@pytest.mark.parametrize("is_made", [True, False])
def test_a_rollback_that_dies_at_the_commit_is_finished(lake: Lake, is_made: bool) -> None:
    lake.apply()

    def die() -> None:
        raise Killed

    setattr(lake, "after" if is_made else "before", once(die))
    with pytest.raises(Killed):
        lake.rollback()
    assert lake.columns() == [["a"] if is_made else ["a", "b"]] * 3
    lake.rollback()
    assert lake.columns() == [["a"]] * 3
    assert lake.state == "held"


def line_of(project: Project) -> str | None:
    """What the plan says about migrations whose tables are committed one after the other."""
    result = plan(project)
    found = [line for line in plan_text(result, PLAIN_STYLE).splitlines() if "before others" in line]
    assert len(found) == plan_markdown(result).count("before others")
    document = plan_document(result)
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert len(found) == len(document.get("table_by_table", ()))
    return found[0] if found else None


def test_the_plan_names_migrations_that_are_committed_table_by_table(lake: Lake) -> None:
    assert line_of(lake.project) is None
    begin = "Readers can see some tables changed before others: 0002"
    assert line_of(dataclasses.replace(lake.project, apply_with=None)) is None
    by_default = dataclasses.replace(lake.project, apply_with=None)
    with open_environment(by_default, None) as session:
        remote = dataclasses.replace(session.catalog.settings, warehouse="s3://lake/warehouse")
        session = dataclasses.replace(session, catalog=SqliteCatalog(remote))
        said = transaction_engine_obstacle(session, has_spark=False, has_history=False)
        assert said == "Spark commits one table at a time"
        assert transaction_engine_obstacle(session, has_spark=False) is None
    of_spark = dataclasses.replace(lake.project, apply_with="spark")
    assert line_of(of_spark) == f"{begin} (Spark commits one table at a time)."
    path = lake.project.root / "migrations" / "0002_step.yaml"
    path.write_text(f"{path.read_text()}  - {{name: db.new, columns: [{{name: a, type: int}}]}}\n")
    assert line_of(lake.project) == f"{begin} (`db.new`: create table with 1 column)."
    environment = "environments: {local: {catalog: {type: sqlite}, publish: direct}}\n"
    (lake.project.root / "icemigrate.yaml").write_text(f"project: market\n{environment}")
    direct = dataclasses.replace(open_project(lake.project.root), apply_with="metadata")
    assert line_of(direct) == f"{begin} (`publish: direct` makes one change at a time)."


@pytest.mark.parametrize("fault", ["", "before"])
def test_new_tables_of_a_server_are_created_by_several_requests_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("icemigrate.metadata_engine.uncertain_outcome.PAUSES_S", (0.0, 0.0, 0.0))
    with rest_tables() as server:
        server.root = str(tmp_path / "warehouse")
        catalog = f"{{type: rest, uri: {server.uri}, warehouse: {server.root}}}"
        (tmp_path / "icemigrate.yaml").write_text(
            f"project: market\nenvironments: {{lake: {{catalog: {catalog}}}}}\n",
            encoding="utf-8",
        )
        (tmp_path / "migrations").mkdir()
        entry = '{name: "db.${n}", for_each: {n: [a, b, c]}, columns: [{name: id, type: int}]}'
        (tmp_path / "migrations" / "0001_new.yaml").write_text(f"tables: [{entry}]\n", encoding="utf-8")
        project = dataclasses.replace(open_project(tmp_path), apply_with="metadata")
        planned = plan(project).plan
        server.faults = ["", "", fault]
        apply(project, planned)
        assert status(project).migrations[-1].state == "applied"
        for name in ("db.a", "db.b", "db.c"):
            json = server.tables[TableName.parse(name)]
            assert json["properties"]["icemigrate.owner"] == "market"
            assert "icemigrate-market-0001" in json["refs"]
        rollback(project, plan_rollback(project).plan)
        assert not {name for name in server.tables if name.namespace == ("db",)}


def test_a_conflict_of_many_new_tables_names_few() -> None:
    after = StoredTable("", {})
    swaps = [LocationSwap(TableName(("db",), f"t{number}"), None, after) for number in range(256)]
    assert "there is a table or view `db.t0` already" in swap_conflict(swaps[:1]).message
    found = swap_conflict(swaps).message
    assert found.startswith("one of `db.t0`, `db.t1`, ")
    assert found.endswith("`db.t9` and 246 more exists already; nothing was written")
