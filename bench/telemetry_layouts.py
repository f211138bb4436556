"""What a query of an observer reads, for several layouts of a table of traces or logs.

``python -m bench.telemetry_layouts`` writes the spans of one tenant, two days in batches as ``ingest`` writes
them, to tables with different partitions and orders; and prints for each layout the files, their bytes, and
what each query opens.  Each query is run once before it is measured.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path

from demo.telemetry_load import TelemetryLoad
from icemigrate.cli import main as icemigrate
from icemigrate.frozen import Frozen
from icemigrate.otlp.telemetry_columns import read_columns
from icemigrate.otlp.telemetry_types import TELEMETRY_TYPES
from icemigrate.pipeline.telemetry_arrow import ArrowRows
from icemigrate.project import open_project
from icemigrate.table_data.load_database import open_load_database
from icemigrate.table_data.load_target import load_target
from icemigrate.table_data.parquet_output import copy_to_table, write_parquet
from icemigrate.table_data.query_explain import explain_query
from icemigrate.table_data.query_tables import open_sql_query
from icemigrate.table_data.row_commit import RowChange, commit_rows
from icemigrate.table_data.table_session import TableSession, open_tables
from icemigrate.wal import Entry, EntryKind

_TYPES = TELEMETRY_TYPES[EntryKind.TRACES]


class _Layout(Frozen):
    """A layout of a table, in the words of a migration file."""

    name: str
    partition_by: str = "[]"
    sort_by: str = "[]"


LAYOUTS = (
    _Layout("unpartitioned"),
    _Layout("day", "[day(start_time)]"),
    _Layout("hour", "[hour(start_time)]"),
    _Layout("day_by_time", "[day(start_time)]", "[start_time]"),
    _Layout("day_by_service", "[day(start_time)]", "[service_name, start_time]"),
    _Layout("day_by_trace", "[day(start_time)]", "[trace_id]"),
)
QUERIES = {
    "a trace by id": "SELECT name FROM {table} WHERE trace_id = unhex('{trace}')",
    "a trace by id and day": "SELECT name FROM {table} WHERE trace_id = unhex('{trace}') "
    "AND start_time < TIMESTAMPTZ '2026-01-02 00:00:00Z'",
    "a service in an hour": "SELECT name, attributes FROM {table} WHERE service_name = 'cart' "
    "AND start_time >= TIMESTAMPTZ '2026-01-01 10:00:00Z' "
    "AND start_time < TIMESTAMPTZ '2026-01-01 11:00:00Z'",
    "p99 by operation of a day": "SELECT name, quantile_cont(duration_ns, 0.99) FROM {table} "
    "WHERE start_time >= TIMESTAMPTZ '2026-01-02 00:00:00Z' GROUP BY name",
}


def create(folder: Path) -> AbstractContextManager[TableSession]:
    """The tables of a project, one of each layout."""
    (folder / "migrations").mkdir(parents=True)
    (folder / "icemigrate.yaml").write_text("project: layouts\n", encoding="utf-8")
    columns = "".join(f'      - {{name: {name}, type: "{type_}"}}\n' for name, type_ in _TYPES.items())
    entries = (
        f"  - name: otel.{one.name}\n    columns:\n{columns}    partition_by: {one.partition_by}\n"
        + (f"    sort_by: {one.sort_by}\n" if one.sort_by != "[]" else "")
        for one in LAYOUTS
    )
    (folder / "migrations" / "0001_tables.yaml").write_text("tables:\n" + "".join(entries), encoding="utf-8")
    command = ["apply", "--auto-approve", "--quiet", "--apply-with", "metadata", "--project", str(folder)]
    assert not icemigrate(command)
    return open_tables(open_project(folder))


def append(session: TableSession, name: str, entries: Sequence[Entry]) -> None:
    """Write a batch as `ingest` does."""
    target = load_target(session.load(name))
    rows = ArrowRows(_TYPES, target.columns)
    for one in entries:
        rows.add(read_columns(one.payload, one.kind, one.encoding), len(one.payload))
    with open_load_database() as db:
        db.connection.register("telemetry", rows.take())
        files = write_parquet(db, "SELECT * FROM telemetry", target, is_checked=True)
        written = copy_to_table(files, target, session.store.files)
    commit_rows(session, name, lambda table, _: RowChange(table, written))


def measure(session: TableSession, query: str) -> str:
    """What a query reads, in words."""
    for _ in range(2):
        with open_sql_query(session, query) as opened:
            began = time.perf_counter()
            found = opened.connection.execute(opened.sql).fetchall()
            seconds = time.perf_counter() - began
    with open_sql_query(session, query) as opened:
        (read,) = explain_query(session, opened).tables
    return f"{read.files_read} of {read.files} files, {len(found)} rows in {1000 * seconds:.0f} ms"


def _spans(load: TelemetryLoad) -> Iterator[Entry]:
    return (entry for entry in load.entries() if entry.kind is EntryKind.TRACES)


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=4000, help="of 100 items each, half of them spans")
    parser.add_argument("--batches", type=int, default=48, help="of the two days")
    given = parser.parse_args()
    load = TelemetryLoad(given.requests, tenants=1, seconds=2 * 86_400)
    with tempfile.TemporaryDirectory() as name, create(Path(name)) as session:
        entries, size = _spans(load), given.requests // 2 // given.batches
        spans, trace = 0, ""
        while batch := list(islice(entries, size)):
            spans += len(batch) * load.items
            columns = read_columns(batch[0].payload, batch[0].kind, batch[0].encoding).columns
            trace = trace or columns["trace_id"][0].hex()  # type: ignore[index]
            for one in LAYOUTS:
                append(session, f"otel.{one.name}", batch)
        print(f"{spans:,} spans in {given.batches} batches")
        for one in LAYOUTS:
            with open_sql_query(session, f"SELECT count(*) FROM otel.{one.name}") as opened:
                (table,) = explain_query(session, opened).tables
            print(f"{one.name}: {table.files} files, {table.bytes / 1e6:.1f} MB", flush=True)
            for what, query in QUERIES.items():
                print(f"  {what}: {measure(session, query.format(table=f'otel.{one.name}', trace=trace))}")


if __name__ == "__main__":
    main()
