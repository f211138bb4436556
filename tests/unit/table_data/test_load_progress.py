"""What the long commands of `table` show while they run, with DuckDB's statements at a given share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from icemigrate.diagnostics import format_size
from icemigrate.system.activity import Activity, show_activities
from icemigrate.table_data.insert_rows import insert_files
from icemigrate.table_data.load_database import LoadDatabase, open_load_database
from icemigrate.table_data.row_changes import update_data
from icemigrate.table_data.snapshot_expiry import expire_snapshots
from icemigrate.table_data.upsert_rows import upsert_files
from tests.support.written_tables import WrittenTables, _shared, written

__all__ = ["_shared", "written"]
TABLE = """
columns: [{name: id, type: long}, {name: name, type: string}]
partition_by: ["bucket(2, id)"]
"""


class Recorder:
    """A display that keeps the text of each activity at its end.

    :ivar texts: in the order of the ends.
    """

    def __init__(self) -> None:
        self.texts = list[str]()

    def begin(self, activity: Activity) -> None:
        self.texts.append(activity.describe())

    def end(self, activity: Activity) -> None:
        self.texts.append(activity.describe())

    @contextmanager
    def hidden(self, _column: int, _end_line: Callable[[], None] | None) -> Iterator[None]:
        yield


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    monkeypatch.setattr(LoadDatabase, "share", lambda _db: 0.5)
    display = Recorder()
    with show_activities(display):
        yield display


def test_each_stage_shows_its_amount_of_the_total(written: WrittenTables, recorder: Recorder) -> None:
    session, table = written.session, written.create(TABLE)
    path = written.file("a.csv", "id,name\n" + "".join(f"{n},{n:090}\n" for n in range(1_000)))

    insert_files(session, table, [path])
    update_data(session, table, {"name": "'x'"}, "id = 1")
    upsert_files(session, table, [path], ["id"])
    expire_snapshots(session, table, 0)
    half, whole = format_size(Path(path).stat().st_size // 2), format_size(Path(path).stat().st_size)
    for expected in (
        f"Reading rows for {table}: {half} of {whole}",
        f"Writing rows of {table} by partition: 500 of 1,000 rows",
        rf"Adding data files to {table}: (\S+ k?B) of \1",
        f"Searching rows of {table}: 500 of 1,000 rows",
        rf"Writing files of {table} again: \S+ k?B of \S+ k?B",
        f"Comparing rows of {table}: 500 of 1,000 rows",
        rf"Writing files of {table}: \S+ k?B of \S+ k?B",
        r"Deleting files: ([0-9]+) of \1 files",
    ):
        # On a slow machine, the rate and the remaining time follow.
        assert any(re.match(rf"{expected}(,|$)", text) for text in recorder.texts), expected


def test_duckdb_knows_the_share_of_a_running_statement() -> None:
    with open_load_database() as db:
        assert db.share() is None
        seen, is_over = list[float](), Event()

        def watch() -> None:
            while not is_over.wait(0.001):
                if (share := db.share()) is not None:
                    seen.append(share)

        watcher = Thread(target=watch)
        watcher.start()
        db.run("CREATE TABLE numbers AS SELECT range AS number FROM range(3000000)")
        while not any(share > 0 for share in seen):
            db.query("SELECT max(md5(number::VARCHAR)) FROM numbers")
        is_over.set()
        watcher.join()
    assert all(0 <= share <= 1 for share in seen)
