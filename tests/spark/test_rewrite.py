"""``rewrite: {partitions: old}`` on real tables: planned, done, cut short, gone on with, taken back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from icemigrate import Project
from icemigrate.data_steps.rewrite import REWRITE_OPTIONS
from icemigrate.errors import EngineError, IcemigrateError
from icemigrate.events import Event, FilesRewritten, StatementStarted
from icemigrate.execution.failures import Interrupted
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.render.plan_text import plan_text
from icemigrate.render.terminal_style import TerminalStyle
from icemigrate.spark import rewrite_files
from tests.support.undo_project import UndoWorld

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CREATE = """
tables:
  - name: db.t
    format_version: FORMAT
    columns:
      - {name: id, type: long}
      - {name: note, type: string}
      - {name: at, type: timestamp}
    partition_by: [day(at)]
    properties: {write.distribution-mode: none, write.delete.mode: MODE}
"""
BUCKETS = 'tables: [{name: db.t, partition_by: ["bucket(2, id) as b"]}]'
REWRITE = "tables: [{name: db.t, rewrite: {partitions: old}}]"
BOTH = 'tables: [{name: db.t, partition_by: ["bucket(2, id) as b"], rewrite: {partitions: old}}]'
NAME = TableName(("db",), "t")


class Mill:
    """A project with one table in ten days' files."""

    def __init__(self, folder: Path, spark: SparkSession, format_version: int = 2) -> None:
        self.world = UndoWorld(folder, spark)
        self.heard: list[Event] = []
        mode = "merge-on-read" if format_version > 1 else "copy-on-write"
        self.apply("0001", CREATE.replace("FORMAT", str(format_version)).replace("MODE", mode))
        self.insert(0, 100)
        self.world.sql("DELETE FROM @ WHERE id = 7", NAME)

    def apply(self, version: str, text: str) -> Any:
        self.world.file(version, text)
        return self.again()

    def again(self) -> Any:
        return self.world.project.apply(spark=self.world.spark, on_event=self.heard.append)

    def insert(self, begin: int, end: int) -> None:
        at = "timestampadd(HOUR, CAST(id AS INT), TIMESTAMP_NTZ '2026-01-01 00:00:00')"
        rows = f"range({begin}, {end}, 1, 1)"
        self.world.sql(f"INSERT INTO @ SELECT id, concat('n', id), {at} FROM {rows}", NAME)

    def rows(self) -> list[tuple[Any, ...]]:
        found = self.world.spark.sql(f"SELECT * FROM {self.world.catalog}.db.t ORDER BY id").collect()
        return [tuple(row) for row in found]

    def files(self) -> dict[str, int]:
        """Data files, each with its spec."""
        table = f"{self.world.catalog}.db.t.data_files"
        found = self.world.spark.sql(f"SELECT file_path, spec_id FROM {table}").collect()
        return {row[0]: row[1] for row in found}

    def of_spec(self, spec: int) -> set[str]:
        return {path for path, found in self.files().items() if found == spec}

    @property
    def calls(self) -> list[str]:
        return [e.text for e in self.heard if isinstance(e, StatementStarted) and e.text.startswith("CALL")]

    @property
    def progress(self) -> list[int]:
        return [e.remaining for e in self.heard if isinstance(e, FilesRewritten)]


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two or three of the small files make a group."""
    monkeypatch.setitem(REWRITE_OPTIONS, "max-file-group-size-bytes", "3000")
    monkeypatch.setattr(rewrite_files, "_GROUP_BYTES", 3000)


@pytest.mark.parametrize("format_version", [1, 3])
def test_files_of_the_old_way_are_rewritten_and_no_others(
    tmp_path: Path, spark: SparkSession, format_version: int
) -> None:
    mill = Mill(tmp_path, spark, format_version)
    mill.apply("0002", BUCKETS)
    mill.insert(200, 210)
    new, old, rows = mill.of_spec(1), mill.of_spec(0), mill.rows()
    assert len(new) >= 2
    assert len(old) == 5
    mill.world.file("0003", REWRITE)
    planned = mill.world.project.plan()
    share = planned.plan.migrations[0].tables[0].old_files
    assert share is not None
    assert (share.files, share.all_files) == (5, 5 + len(new))
    assert f"files: {share} with the old partitioning, which are rewritten" in plan_text(
        planned, TerminalStyle()
    )
    assert mill.again().applied == ("0003",)
    assert mill.rows() == rows
    assert mill.of_spec(0) == set()
    assert mill.of_spec(1) > new, "files that lie right stay as they are"
    assert mill.progress == [5, 0]
    assert mill.world.project.status().tables[0].old_files is None
    # Rows are equal, so there is nothing that an undo would have to do.
    assert mill.world.project.rollback(spark=mill.world.spark).rolled_back == ("0003",)
    assert mill.world.project.rollback(spark=mill.world.spark).rolled_back == ("0002",)
    assert [str(f.transform) for f in mill.world.actual(NAME).spec.live] == ["day"]
    assert mill.rows() == rows


def test_where_all_files_lie_the_old_way_one_call_does_it(tmp_path: Path, spark: SparkSession) -> None:
    mill = Mill(tmp_path, spark)
    rows = mill.rows()
    result = mill.apply("0002", BOTH.replace("rewrite:", "sort_by: [id desc], rewrite:"))
    assert result.applied == ("0002",)
    (call,) = mill.calls
    assert ".system.rewrite_data_files(table => 'db.t', strategy => 'sort'" in call
    assert mill.rows() == rows
    assert set(mill.files().values()) == {1}
    snapshots = mill.world.spark.sql(f"SELECT operation FROM {mill.world.catalog}.db.t.snapshots").collect()
    assert sum(row[0] == "replace" for row in snapshots) == 1


def test_a_run_that_was_cut_short_goes_on_where_it_was(
    tmp_path: Path, spark: SparkSession, small_groups: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = Mill(tmp_path, spark)
    rows = mill.rows()
    mill.world.file("0002", BOTH)
    with monkeypatch.context() as patch:
        engine = type(mill.world.engine)
        patch.setattr(engine, "rewrite_old_files", _dying_after(1, engine.rewrite_old_files))
        with pytest.raises(IcemigrateError):
            mill.again()
    done = set(mill.files()) - mill.of_spec(0)
    left = len(mill.of_spec(0))
    assert done
    assert left
    mill.heard.clear()
    assert mill.again().applied == ("0002",)
    assert mill.progress[0] == left
    assert mill.progress[-1] == 0
    assert len(mill.progress) > 2, "group by group"
    assert done <= set(mill.files()), "what was rewritten is not rewritten again"
    assert set(mill.files().values()) == {1}
    assert mill.rows() == rows


def _dying_after(commits: int, real: Callable[..., int]) -> Callable[..., int]:
    """The real thing, whose listener fails behind so many commits."""

    def rewrite(engine: Any, name: TableName, call: str, is_sorted: bool, on_progress: Any) -> int:
        told: list[OldSpecFiles] = []

        def listen(share: OldSpecFiles) -> None:
            on_progress(share)
            told.append(share)
            if len(told) > commits:
                raise IcemigrateError("the power is gone")

        return real(engine, name, call, is_sorted, listen)

    return rewrite


_FILL = 'backfill: [{set: {note: "upper(note)"}}]'


@pytest.mark.parametrize(
    "texts",
    [[BOTH.replace("rewrite:", f"{_FILL}, rewrite:")], [f"tables: [{{name: db.t, {_FILL}}}]", BOTH]],
    ids=["in the same", "in the next"],
)
def test_rows_that_a_migration_filled_go_back_though_their_files_were_rewritten(
    tmp_path: Path, spark: SparkSession, texts: list[str]
) -> None:
    """What only writes files again writes no rows: nobody's rows would be lost."""
    mill = Mill(tmp_path, spark)
    rows = mill.rows()
    for version, text in enumerate(texts, 2):
        mill.apply(f"{version:04}", f"allow: [destructive]\n{text}")
    assert mill.rows() == [(i, note.upper(), at) for i, note, at in rows]
    assert set(mill.files().values()) == {1}
    rolled_back = mill.world.project.rollback(to="0001", spark=mill.world.spark).rolled_back
    assert set(rolled_back) == {f"{version:04}" for version, _ in enumerate(texts, 2)}
    assert mill.rows() == rows
    assert set(mill.files().values()) == {0}


def test_a_run_that_fails_says_that_values_are_lost_which_no_snapshot_keeps_any_more(
    tmp_path: Path, spark: SparkSession, small_groups: None
) -> None:
    mill = Mill(tmp_path, spark)
    settings = mill.world.folder / "icemigrate.yaml"
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace("{catalog:", "{record: history, catalog:"), encoding="utf-8")
    mill.world.project = Project(mill.world.folder)
    mill.apply("0002", BUCKETS)
    drop = "allow: [destructive]\ntables: [{name: db.t, drop_columns: [note], rewrite: {partitions: old}}]"
    mill.world.file("0003", drop)

    def fail(event: Event) -> None:
        if isinstance(event, FilesRewritten) and event.remaining <= 2:
            keep_one = (
                f"CALL {mill.world.catalog}.system.expire_snapshots(table => 'db.t', retain_last => 1, "
            )
            mill.world.spark.sql(
                f"{keep_one} older_than => TIMESTAMP '{datetime.now() + timedelta(days=1)}')"
            )
            raise EngineError("the disk is full")

    with pytest.raises(Interrupted, match="rows have no value of note in their files: it may be lost"):
        mill.world.project.apply(spark=spark, on_event=fail)


def test_a_run_that_fails_behind_a_drop_says_what_its_undo_would_lose(
    tmp_path: Path, spark: SparkSession, small_groups: None
) -> None:
    mill = Mill(tmp_path, spark)
    mill.apply("0002", BUCKETS)
    mill.insert(200, 210)
    rows = mill.rows()
    drop = "allow: [destructive]\ntables: [{name: db.t, drop_columns: [note], rewrite: {partitions: old}}]"
    mill.world.file("0003", drop)

    def fail(event: Event) -> None:
        if isinstance(event, FilesRewritten) and event.remaining <= 2:
            raise EngineError("the disk is full")

    with pytest.raises(Interrupted, match="lost the value of note when their files were rewritten"):
        mill.world.project.apply(spark=spark, on_event=fail)
    assert mill.again().applied == ("0003",)
    assert mill.rows() == [(id_, at) for id_, _, at in rows]
