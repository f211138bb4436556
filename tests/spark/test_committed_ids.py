"""An undo takes away the fields that the migration's own commits added, and no field of another client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate.changes.drop_column import DropColumn
from icemigrate.commands.apply import apply
from icemigrate.commands.plan import plan
from icemigrate.commands.rollback import plan_rollback, rollback
from icemigrate.errors import EngineError, ExitCode, StalePlan
from icemigrate.events import Event, MigrationStarted, StatementStarted, TablePublishing, TableVerified
from icemigrate.execution.environment_session import open_environment
from icemigrate.execution.failures import Undone
from icemigrate.history.journal import LockedJournal
from icemigrate.iceberg.names import TableName
from icemigrate.planning.undo import DEFAULT_UNDO_OPTIONS, UndoOptions
from tests.support.spark_project import OwnProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTIAL = UndoOptions(partial=True)
TRADES = TableName(("shop",), "trades")
MAKE = """
tables:
  - {name: shop.trades, columns: [{name: id, type: long}]}
  - {name: shop.quotes, columns: [{name: id, type: long}]}
"""
ADD = """
tables:
  - {name: shop.trades, columns: [{name: venue, type: string}, {name: legs, type: "struct<a: int>"}]}
"""
FILL = """
allow: [destructive]
tables:
  - name: shop.trades
    columns: [{name: venue, type: string}]
    retype: {id: {to: string, using: cast(id as string)}}
    backfill: [{set: {venue: "'x'"}}]
"""


class Killed(BaseException):
    """The process ends here: nothing of it runs any more."""


class Shop(OwnProject):
    """A shop whose two tables are made."""

    def __init__(self, folder: Path, first: SparkSession, settings: str) -> None:
        super().__init__(folder, first, "shop", "ids", settings)
        self.publishes_at_once = "direct" not in settings
        self.file("0001_make", MAKE)
        self.apply()

    def file(self, name: str, text: str) -> None:
        (self.folder / "migrations" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def apply(self, listen: Callable[[Event], None] = lambda event: None) -> None:
        made = plan(self.opened)
        assert made.ready, made
        apply(self.opened, made.plan, spark=self.spark, on_event=listen, lock_timeout_s=60)

    def rollback(self, options: UndoOptions = DEFAULT_UNDO_OPTIONS) -> list[str]:
        """Take the last version back; the plan's notes."""
        made = plan_rollback(self.opened, options=options, spark=self.spark)
        assert made.ready, made.diagnostics
        rollback(self.opened, made.plan, options=options, spark=self.spark, lock_timeout_s=60)
        return [note for m in made.plan.migrations for t in m.tables for note in t.notes]

    def add(self, column: str) -> None:
        """Another client adds a column."""
        self.spark.sql(f"ALTER TABLE {self.catalog}.shop.trades ADD COLUMN {column} string")

    def insert(self) -> None:
        self.spark.sql(f"INSERT INTO {self.catalog}.shop.trades VALUES (1)")

    def columns(self) -> dict[str, int]:
        with open_environment(self.opened, None) as world:
            table = world.catalog.load([TRADES])[TRADES]
            assert table is not None
            return {f.name: f.id for f in table.schema.fields}

    def created(self) -> list[int]:
        """What the history says that the last version added to the trades."""
        with open_environment(self.opened, None) as world:
            history = world.history()
            record = history.undo_record(history.applied[-1].version)
        assert record is not None
        return sorted(record.tables[0].created or ())


def before_the_commit(kind: type[Event], act: Callable[[], object]) -> Callable[[Event], None]:
    """Acts once, at the first event of a kind."""
    done: list[Event] = []

    def listen(event: Event) -> None:
        if isinstance(event, kind) and not done:
            done.append(event)
            act()

    return listen


def fail() -> None:
    raise EngineError("no space left on device")


def kill(*_: Any) -> None:
    raise Killed


@pytest.fixture(params=["", ", publish: direct", ", record: history"], ids=["tags", "direct", "no-tags"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark, request.param)


@pytest.fixture
def tagged(tmp_path: Path, spark: SparkSession) -> Shop:
    return Shop(tmp_path, spark, "")


def adding(shop: Shop, then: Callable[[], object] = lambda: None) -> Callable[[Event], None]:
    """Another client adds a column between the plan and the commit; `then` runs once it is verified."""
    return both(
        before_the_commit(TablePublishing, lambda: shop.add("theirs")),
        before_the_commit(TableVerified, then),
    )


def both(*listeners: Callable[[Event], None]) -> Callable[[Event], None]:
    def listen(event: Event) -> None:
        for one in listeners:
            one(event)

    return listen


def test_a_failure_after_the_commit_drops_our_columns_and_not_theirs(tagged: Shop) -> None:
    tagged.file("0002_add", ADD)
    with pytest.raises(Undone):
        tagged.apply(adding(tagged, fail))
    assert tagged.columns() == {"id": 1, "theirs": 2}
    tagged.apply()
    ours = tagged.columns()
    assert list(ours) == ["id", "theirs", "venue", "legs"]
    tagged.rollback()
    assert tagged.columns() == {"id": 1, "theirs": 2}


@pytest.mark.parametrize("is_begun", [False, True], ids=["before-the-intent", "behind-the-intent"])
def test_a_column_that_another_client_adds_right_before_the_table_is_read_moves_no_step_to_another_field(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    """The later steps of a `retype` name fields by the ids that the plan foresaw."""
    shop.insert()
    shop.file("0002_fill", FILL)
    begin, done = LockedJournal.begin, list[None]()

    def add(self: LockedJournal, *given: Any) -> Any:
        began = begin(self, *given)
        if not done:
            done.append(shop.add("theirs"))
        return began

    listen: Callable[[Event], None] = lambda event: None  # noqa: E731
    if is_begun:
        monkeypatch.setattr(LockedJournal, "begin", add)
    else:
        listen = before_the_commit(MigrationStarted, lambda: shop.add("theirs"))
    with pytest.raises((Undone, StalePlan), match="another client added a column"):
        shop.apply(listen)
    assert shop.columns() == {"id": 1, "theirs": 2}
    shop.apply()
    assert list(shop.columns()) == ["id", "theirs", "venue"]
    assert shop.columns()["theirs"] == 2


def test_a_run_that_dies_after_the_commit_is_undone_by_what_it_committed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.file("0002_add", ADD)
    listen = adding(shop, kill) if shop.publishes_at_once else before_the_commit(TableVerified, kill)
    with pytest.raises(Killed):
        shop.apply(listen)
    ours = shop.columns()
    assert {"venue", "legs"} <= ours.keys()
    shop.add("later")
    shop.rollback()
    assert shop.columns().keys() == {"id", "later"} | (ours.keys() & {"theirs"})


def test_a_run_that_dies_before_it_can_record_the_commit_is_undone_by_what_it_committed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.file("0002_add", ADD)
    monkeypatch.setattr(LockedJournal, "correct_undo_record", kill)
    listen = adding(shop, kill) if shop.publishes_at_once else before_the_commit(TableVerified, kill)
    with pytest.raises(Killed):
        shop.apply(listen)
    monkeypatch.undo()
    assert {"venue", "legs"} <= shop.columns().keys()
    shop.rollback()
    assert shop.columns().keys() == {"id"} | ({"theirs"} if shop.publishes_at_once else set())


def test_a_run_is_undone_by_what_it_committed_also_where_its_table_was_renamed_since(
    tagged: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagged.file("0002_add", ADD)
    monkeypatch.setattr(LockedJournal, "correct_undo_record", kill)
    with pytest.raises(Killed):
        tagged.apply(adding(tagged))
    monkeypatch.undo()
    assert list(tagged.columns()) == ["id", "theirs", "venue", "legs"]
    tagged.spark.sql(f"ALTER TABLE {tagged.catalog}.shop.trades RENAME TO shop.moved")
    made = plan_rollback(tagged.opened, spark=tagged.spark)
    changes = [planned.change for m in made.plan.migrations for planned in m.changes()]
    assert [c.path for c in changes if isinstance(c, DropColumn)] == [("venue",), ("legs",)]


def test_a_column_that_another_client_adds_after_the_run_died_is_not_dropped(tagged: Shop) -> None:
    tagged.file("0002_add", ADD)
    with pytest.raises(Killed):
        tagged.apply(before_the_commit(TablePublishing, kill))
    tagged.add("theirs")
    tagged.add("venue")
    notes = tagged.rollback()
    assert tagged.columns() == {"id": 1, "theirs": 2, "venue": 3}
    assert "stays: venue (field id 3); this migration did not add it" in notes


def test_a_column_that_another_client_adds_before_the_run_is_continued_is_not_dropped(tagged: Shop) -> None:
    tagged.file("0002_add", ADD)
    with pytest.raises(Killed):
        tagged.apply(before_the_commit(TablePublishing, kill))
    tagged.add("venue")
    tagged.apply()
    assert tagged.columns() == {"id": 1, "venue": 2, "legs": 3}
    assert tagged.created() == [3, 4]
    tagged.rollback()
    assert tagged.columns() == {"id": 1, "venue": 2}


def test_a_swap_that_was_planned_for_other_ids_is_refused_and_planned_again(tagged: Shop) -> None:
    tagged.insert()
    tagged.file("0002_fill", FILL)
    with pytest.raises(Undone, match="did not get the field id") as failed:
        tagged.apply(before_the_commit(TablePublishing, lambda: tagged.add("theirs")))
    assert failed.value.exit_code == ExitCode.CONFLICT
    assert tagged.columns() == {"id": 1, "theirs": 2}
    tagged.apply()
    assert tagged.columns().keys() == {"id", "theirs", "venue"}
    tagged.rollback()
    assert tagged.columns() == {"id": 1, "theirs": 2}


def test_columns_that_rows_were_being_written_to_are_undone_by_what_was_committed(tagged: Shop) -> None:
    tagged.insert()
    tagged.file("0002_fill", FILL)

    def listen(event: Event) -> None:
        if isinstance(event, StatementStarted) and event.text.startswith("UPDATE"):
            raise Killed

    with pytest.raises(Killed):
        tagged.apply(listen)
    tagged.add("theirs")
    tagged.rollback()
    assert tagged.columns().keys() == {"id", "theirs"}


def test_a_field_of_an_unknown_origin_is_left_and_named(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, spark, ", record: history")
    properties = "'write.metadata.previous-versions-max'='1'"
    shop.spark.sql(f"ALTER TABLE {shop.catalog}.shop.trades SET TBLPROPERTIES ({properties})")
    shop.file("0002_add", ADD)
    monkeypatch.setattr(LockedJournal, "correct_undo_record", kill)
    with pytest.raises(Killed):
        shop.apply()
    monkeypatch.undo()
    shop.add("more")
    shop.add("yet_more")
    made = plan_rollback(shop.opened, spark=shop.spark)
    assert [p.rule for m in made.plan.migrations for p in m.problems] == ["unproved-field"]
    shop.rollback(PARTIAL)
    assert shop.columns().keys() == {"id", "venue", "legs", "more", "yet_more"}


@pytest.mark.parametrize(
    ("settings", "migration", "theirs"),
    [
        (", record: history", ADD, "venue string, legs struct<a: int>"),
        ("", FILL, "venue string"),
        # A statement of Spark names no run: only the type tells.
        (", publish: direct", ADD, "venue int, legs struct<a: int>"),
    ],
    ids=["no-tags", "data-step", "direct"],
)
def test_columns_like_ours_that_another_client_adds_after_a_crash_are_theirs(
    tmp_path: Path, spark: SparkSession, settings: str, migration: str, theirs: str
) -> None:
    """The run dies before it commits; then another client adds the very columns of the migration."""
    shop = Shop(tmp_path, spark, settings)
    shop.insert()
    shop.file("0002_add", migration)
    kind = StatementStarted if "direct" in settings else TablePublishing
    with pytest.raises(Killed):
        shop.apply(before_the_commit(kind, kill))
    assert list(shop.columns()) == ["id"]
    shop.spark.sql(f"ALTER TABLE {shop.catalog}.shop.trades ADD COLUMNS ({theirs})")
    there = shop.columns()
    notes = shop.rollback()
    assert shop.columns() == there
    assert any("venue (field id 2); this migration did not add it" in note for note in notes)
