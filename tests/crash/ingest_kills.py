"""Kills `ingest` and a writer of its log at random moments, and counts what the tables have then.

``python -m tests.crash.ingest_kills --kills 200`` prints, for each table, the acknowledged entries, the rows,
and a checksum of both.  Each acknowledged entry is in its table exactly once; the one entry that a killed
writer was writing is there once or not at all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from icemigrate.table_data.query_tables import query_table
from tests.support.killed_processes import ROOT, kill_process, output_of, start_process, wait_for_batch
from tests.support.table_project import TableProject

_TENANTS = tuple(f"tenant_{number:02d}" for number in range(20))
_KINDS = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}
_TABLES = """\
tables:
  - name: "otel.${tenant}_traces"
    for_each: {tenant: [%(tenants)s]}
    columns: [{name: name, type: string}, {name: attributes, type: "map<string, string>"}]
  - name: "otel.${tenant}_logs"
    for_each: {tenant: [%(tenants)s]}
    columns: [{name: event_name, type: string}, {name: attributes, type: "map<string, string>"}]
"""
_TEXT_COLUMNS = {"traces": "name", "logs": "event_name"}


@dataclass(frozen=True, slots=True)
class TableCount:
    """What one table has.

    :param acknowledged: entries that the writer knows to be in the log.
    :param rows: of the table.
    :param is_right: whether each of those entries is there once, and no other one but a last one of a writer.
    :param checksum: of the acknowledged numbers; the same as that of the rows.
    """

    name: str
    acknowledged: int
    rows: int
    is_right: bool
    checksum: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="be the writer: append to this log until the process ends")
    parser.add_argument("--life", type=int, default=0, help="the number of this writer")
    chosen = parser.parse_args(arguments)
    if chosen.write is not None:
        write_entries(chosen.write, chosen.life)
        return 0
    with TemporaryDirectory(prefix="icemigrate-kills-") as folder:
        counts, kills = kill_and_count(Path(folder), chosen.kills, chosen.seed)
    for count in counts:
        state = "right" if count.is_right else "WRONG"
        print(f"{count.name}: {count.acknowledged} entries, {count.rows} rows, {count.checksum}, {state}")
    total = sum(count.acknowledged for count in counts)
    print(f"{total} entries after {kills['ingest']} kills of ingest and {kills['writer']} of the writer")
    return 0 if all(count.is_right for count in counts) else 1


def kill_and_count(folder: Path, kills: int, seed: int) -> tuple[list[TableCount], Counter[str]]:
    """Write, drain, and kill both, until `ingest` was killed often enough; then drain the rest and count."""
    choose = random.Random(seed)
    project = TableProject.create(folder, _TABLES % {"tenants": ", ".join(_TENANTS)})
    log, done = folder / "log", Counter[str]()
    log.mkdir()
    longest = 10.0
    while done["ingest"] < kills:
        writer = start_process(
            "-m", "tests.crash.ingest_kills", "--write", str(log), "--life", str(done["writer"])
        )
        began = time.monotonic()
        ingest = start_process("-m", "icemigrate.cli", *_ingest(project, log), "--continuous", "1s")
        # Half of the moments are after the first batch of this run, whenever that begins.
        if choose.random() < 0.5 and wait_for_batch(lambda: _names(log / "checkpoint" / "offsets"), ingest):
            longest = time.monotonic() - began
            time.sleep(choose.uniform(0, 3))
        else:
            time.sleep(choose.uniform(0, longest))
        assert ingest.poll() is None, f"ingest ended: {output_of(ingest)}"
        kill_process(ingest, is_whole_group=choose.random() < 0.5)
        done["ingest"] += 1
        time.sleep(choose.uniform(0, 0.2))
        kill_process(writer, is_whole_group=False)
        done["writer"] += 1
        print(f"{done['ingest']} of {kills} kills", file=sys.stderr, flush=True)
    last = subprocess.run(
        [sys.executable, "-m", "icemigrate.cli", *_ingest(project, log)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert last.returncode == 0, last.stdout + last.stderr
    return list(_counts(project, log)), done


def _ingest(project: TableProject, log: Path) -> list[str]:
    tables = (f"--table={kind}=otel.${{tenant}}_{kind}" for kind in _KINDS)
    return ["ingest", str(log), *tables, "--project", str(project.folder), "--retention", "1m"]


def _names(folder: Path) -> set[str]:
    with suppress(FileNotFoundError):
        return {path.name for path in folder.iterdir()}
    return set()


def write_entries(log: Path, life: int) -> None:
    """Append entries until the process is killed, and write down each that was acknowledged."""
    from icemigrate.wal import EntryKind, Writer

    choose = random.Random(life)
    acknowledged = log.parent / f"acknowledged-{life}"
    with Writer(log, segment_seconds=0.5, segment_bytes=20_000) as writer, acknowledged.open("w") as notes:
        for number in range(sys.maxsize):
            tenant = _TENANTS[int(choose.paretovariate(1)) % len(_TENANTS)]
            kind = choose.choice(tuple(_KINDS))
            name = f"{life}-{number}"
            writer.append(tenant, EntryKind(kind), payload(kind, name))
            notes.write(f"{tenant}_{kind} {name}\n")
            notes.flush()
            time.sleep(choose.choice((0, 0, 0, 0.02)))


def payload(kind: str, name: str) -> bytes:
    """An export request with one row that has a name, and a text of random length."""
    outer, inner, rows = _KINDS[kind]
    filling = {"key": "filling", "value": {"stringValue": name * (len(name) ** 2)}}
    row = {"name" if kind == "traces" else "eventName": name, "attributes": [filling]}
    return json.dumps({outer: [{inner: [{rows: [row]}]}]}).encode()


def _counts(project: TableProject, log: Path) -> Iterator[TableCount]:
    known: dict[str, list[str]] = {}
    for notes in log.parent.glob("acknowledged-*"):
        # The last line of a killed writer may be cut.
        for line in notes.read_text().rpartition("\n")[0].splitlines():
            table, name = line.split(" ")
            known.setdefault(table, []).append(name)
    highest = Counter[str]()
    for name in (name for names in known.values() for name in names):
        life, number = name.split("-")
        highest[life] = max(highest[life], int(number))
    for tenant in _TENANTS:
        for kind, column in _TEXT_COLUMNS.items():
            name = f"{tenant}_{kind}"
            with project.tables() as session:
                found = query_table(session, f"otel.{name}")
            rows = Counter(found.column(column).to_pylist())
            acknowledged = known.get(name, [])
            extra = rows - Counter(acknowledged)
            unfinished = all(int(one.split("-")[1]) == highest[one.split("-")[0]] + 1 for one in extra)
            is_right = unfinished and not Counter(acknowledged) - rows and set(rows.values()) <= {1}
            whole = all(
                dict(attributes)["filling"] == text * (len(text) ** 2)
                for text, attributes in zip(
                    found.column(column).to_pylist(), found.column("attributes").to_pylist(), strict=True
                )
            )
            stored = sorted(text for text in rows if text not in extra)
            checksum = hashlib.sha256("\n".join(stored).encode()).hexdigest()[:12]
            same = checksum == hashlib.sha256("\n".join(sorted(acknowledged)).encode()).hexdigest()[:12]
            yield TableCount(
                f"otel.{name}", len(acknowledged), found.num_rows, is_right and whole and same, checksum
            )


if __name__ == "__main__":
    sys.exit(main())
