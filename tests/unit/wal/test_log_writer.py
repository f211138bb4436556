"""Writers and readers of a log, with threads, faults and killed processes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import UsageError
from icemigrate.wal import BadEntry, Entry, EntryKind, Fsync, Writer
from icemigrate.wal.log_folder import OPEN, LogError, seal_abandoned, sealed_segments
from icemigrate.wal.segment_format import HEADER_SIZE, decode_segment

ROOT = Path(__file__).parents[3]


def payloads(folder: Path) -> list[bytes]:
    """The payloads of all sealed segments, which are whole."""
    found = []
    for path in sealed_segments(folder):
        content = decode_segment(path.read_bytes())
        assert content.is_sealed
        assert content.damaged == ()
        found += [stored.entry.payload for stored in content.entries]
    return found


@pytest.mark.parametrize("fsync", Fsync)
def test_what_is_appended_is_read_after_closing(tmp_path: Path, fsync: Fsync) -> None:
    with Writer(tmp_path / "log", fsync=fsync) as log:
        log.append("acme", EntryKind.TRACES, b"one", time_ns=7)
        log.append_all(Entry("acme", EntryKind.LOGS, 8, text) for text in (b"two", b"three"))
        assert sealed_segments(tmp_path / "log") == ()
    assert payloads(tmp_path / "log") == [b"one", b"two", b"three"]
    assert not list((tmp_path / "log").glob(f"*{OPEN}"))
    log.close()
    with pytest.raises(UsageError):
        log.append("acme", EntryKind.LOGS, b"late")


def test_one_invalid_entry_refuses_all_of_its_append(tmp_path: Path) -> None:
    with Writer(tmp_path) as log:
        with pytest.raises(BadEntry):
            log.append_all([Entry("a", EntryKind.LOGS, 1, b"x"), Entry("a.b", EntryKind.LOGS, 1, b"x")])
        log.append("a", EntryKind.LOGS, b"y")
    assert payloads(tmp_path) == [b"y"]


def test_large_and_old_segments_are_sealed(tmp_path: Path) -> None:
    with Writer(tmp_path, segment_bytes=1000, segment_seconds=0.2) as log:
        for number in range(30):
            log.append("a", EntryKind.LOGS, b"%03d" % number * 30)
        assert len(sealed_segments(tmp_path)) > 2
        deadline = time.monotonic() + 20
        while len(payloads(tmp_path)) < 30 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(payloads(tmp_path)) == 30, "an old segment is sealed although nothing is appended"


def test_writers_and_threads_share_a_folder(tmp_path: Path) -> None:
    def write(log: Writer, name: int) -> None:
        for number in range(50):
            log.append("a", EntryKind.LOGS, b"%d-%d" % (name, number))

    with Writer(tmp_path, segment_bytes=600) as one, Writer(tmp_path, segment_bytes=600) as two:
        threads = [threading.Thread(target=write, args=((one, two)[n % 2], n)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(payloads(tmp_path)) == sorted(b"%d-%d" % (n, i) for n in range(6) for i in range(50))


def test_segments_of_running_writers_stay_open(tmp_path: Path) -> None:
    with Writer(tmp_path) as log:
        log.append("a", EntryKind.LOGS, b"x")
        assert seal_abandoned(tmp_path) == ()
    assert payloads(tmp_path) == [b"x"]


KILLED = """
import sys
from icemigrate.wal import EntryKind, Fsync, Writer
log = Writer(sys.argv[1], fsync=Fsync.NEVER, segment_bytes=40_000)
number = 0
while True:
    log.append("a", EntryKind.LOGS, b"%d " % number * 50)
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("acknowledged", [1, 60, 333])
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path, acknowledged: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    complete = [int(line) for line in lines if line.endswith("\n")]
    seal_abandoned(tmp_path)
    assert seal_abandoned(tmp_path) == ()
    read = [int(payload.split()[0]) for payload in payloads(tmp_path)]
    assert read == list(range(len(read)))
    assert len(complete) <= len(read) <= len(complete) + 1


def test_a_torn_tail_is_cut(tmp_path: Path) -> None:
    log = Writer(tmp_path)
    log.append("a", EntryKind.LOGS, b"whole")
    log.append("a", EntryKind.LOGS, b"torn")
    (path,) = tmp_path.glob(f"*{OPEN}")
    (tmp_path / f"0-copy{OPEN}").write_bytes(path.read_bytes()[:-2])
    (tmp_path / f"1-empty{OPEN}").write_bytes(b"ICEW")
    log.close()
    assert [path.name for path in seal_abandoned(tmp_path)] == ["0-copy.wal"]
    assert not [*tmp_path.glob(f"*{OPEN}")]
    assert sorted(payloads(tmp_path)) == [b"torn", b"whole", b"whole"]


def test_damaged_bytes_of_a_killed_writer_stay(tmp_path: Path) -> None:
    log = Writer(tmp_path)
    log.append("a", EntryKind.LOGS, b"x" * 100)
    (path,) = tmp_path.glob(f"*{OPEN}")
    data = path.read_bytes()
    log.append("a", EntryKind.LOGS, b"y" * 100)
    both = bytearray(path.read_bytes())
    both[HEADER_SIZE + 11] ^= 1  # the length of the first entry: behind the end
    log.close()
    cases = {
        "0-checksum": data[:-1] + b"?",
        "1-later-version": data[:7] + b"\x02" + data[8:],
        "2-garbage": data + b"\0" * 50,
        "3-length": bytes(both),
    }
    for name, content in cases.items():
        (tmp_path / f"{name}{OPEN}").write_bytes(content)
    assert [path.stem for path in seal_abandoned(tmp_path)] == [*cases]
    for name, content in cases.items():
        sealed = (tmp_path / f"{name}.wal").read_bytes()
        assert sealed.startswith(content)
        assert decode_segment(sealed).damaged
    (left,) = decode_segment((tmp_path / "3-length.wal").read_bytes()).entries
    assert left.entry.payload == b"y" * 100


def test_a_new_segment_that_a_reader_took_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A double: the reader comes between the creation of the file and its lock."""
    real, taken = fcntl.flock, list[Path]()

    def flock(number: int, operation: int) -> None:
        if not taken:
            taken.extend(tmp_path.glob(f"*{OPEN}"))
            seal_abandoned(tmp_path)
        real(number, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with Writer(tmp_path) as log:
        log.append("a", EntryKind.LOGS, b"x")
    assert len(taken) == 1
    assert not taken[0].exists()
    assert payloads(tmp_path) == [b"x"]


FULL = """
import resource, signal, sys
from icemigrate.errors import IcemigrateError
from icemigrate.wal import EntryKind, Writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = Writer(sys.argv[1])
log.append("a", EntryKind.LOGS, b"before")
resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))
try:
    log.append("a", EntryKind.LOGS, b"x" * 1000)
except IcemigrateError as error:
    print(error.message, "|", error.hint)
log.append("a", EntryKind.LOGS, b"after")
log.close()
"""


def test_a_full_disk_is_one_error_and_the_log_stays_whole(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert ran.stdout == (
        f"the log {tmp_path} cannot be written: file too large | "
        "check the free space, and the right to write there\n"
    )
    assert payloads(tmp_path) == [b"before", b"after"]


def test_a_failed_fsync_is_an_error_and_the_segment_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A double: no disk fails on request."""
    log = Writer(tmp_path)
    log.append("a", EntryKind.LOGS, b"durable")
    real = os.fsync

    def fail(number: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LogError, match="cannot be made durable: input/output error"):
        log.append("a", EntryKind.LOGS, b"unknown")
    monkeypatch.setattr(os, "fsync", real)
    log.append("a", EntryKind.LOGS, b"next")
    log.close()
    assert payloads(tmp_path) == [b"next"]
    seal_abandoned(tmp_path)
    assert sorted(payloads(tmp_path)) == [b"durable", b"next", b"unknown"]


def test_a_folder_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(LogError, match="cannot be created: "):
        Writer(file / "log")
    with pytest.raises(LogError, match="cannot be read: no such file or directory"):
        sealed_segments(tmp_path / "missing")
    with pytest.raises(UsageError):
        Writer(tmp_path, segment_seconds=0)


@pytest.mark.parametrize("name", ["file", "dangling"])
def test_a_log_that_is_no_folder_is_one_error_without_a_cause(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    with pytest.raises(LogError) as error:
        Writer(tmp_path / name)
    assert error.value.message == f"the log {tmp_path / name} is not a folder"
    assert error.value.hint == "give the path of a folder"
    shown = "".join(traceback.format_exception(error.value))
    assert shown.count("Traceback") == 1
    with pytest.raises(LogError, match=r"the spool .* is not a folder"):
        Writer("memory://bucket/log", spool=tmp_path / name)
    assert (tmp_path / "file").read_bytes() == b"kept"


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"payload": "{}"}, "the payload is a text, and an entry takes bytes", '`payload.encode("utf-8")`'),
        ({"payload": {}}, "the payload is a value of type `dict`", "the bytes of an export request"),
        ({"payload": None}, "the payload is a value of type `NoneType`", "the bytes of an export request"),
        ({"payload": memoryview(b"x")}, "of type `memoryview`", "the bytes of an export request"),
        ({"kind": "trace"}, "'trace' is not a kind of an entry", "`EntryKind.TRACES`"),
        ({"kind": None}, "None is not a kind of an entry", "`EntryKind.TRACES`"),
        ({"encoding": "json"}, "'json' is not an encoding of an entry", "`PayloadEncoding.OTLP_JSON`"),
        ({"tenant": 7}, "the tenant 7 is not a text", "ASCII letters"),
        ({"time_ns": 1.5}, "the time 1.5 is not a whole number", "`time.time_ns()`"),
        ({"time_ns": "now"}, "the time 'now' is not a whole number", "`time.time_ns()`"),
        ({"time_ns": True}, "the time True is not a whole number", "`time.time_ns()`"),
    ],
)
def test_an_argument_of_a_wrong_type_is_one_error_and_writes_nothing(
    tmp_path: Path, options: dict[str, Any], message: str, hint: str
) -> None:
    given: dict[str, Any] = {"tenant": "a", "kind": EntryKind.LOGS, "payload": b"x", **options}
    with Writer(tmp_path) as log:
        with pytest.raises(BadEntry) as error:
            log.append(**given)
        assert message in error.value.message
        assert hint in (error.value.hint or "")
        assert "".join(traceback.format_exception(error.value)).count("Traceback") == 1
    assert payloads(tmp_path) == []


def test_an_entry_of_wrong_types_is_refused_too(tmp_path: Path) -> None:
    with Writer(tmp_path) as log:
        for wrong in (
            *({"kind": "log"}, {"kind": "logs"}, {"encoding": 1}, {"encoding": "otlp_json"}),
            {"payload": "x"},
        ):
            fields: dict[str, Any] = {"tenant": "a", "kind": EntryKind.LOGS, "time_ns": 1, "payload": b"x"}
            with pytest.raises(BadEntry):
                log.append_all([Entry(**{**fields, **wrong})])
        log.append("a", EntryKind.LOGS, bytearray(b"y"))  # type: ignore[arg-type]
        log.append("a", "logs", b"z")  # type: ignore[arg-type]
    assert payloads(tmp_path) == [b"y", b"z"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folder": None}, "`folder` is None, which is no path"),
        ({"folder": 7}, "`folder` is 7, which is no path"),
        ({"folder": b"log"}, "`folder` is b'log', which is no path"),
        ({"folder": "memory://bucket/log", "spool": 7}, "`spool` is 7, which is no path"),
        ({"fsync": "sometimes"}, "'sometimes' is no value of `fsync`"),
    ],
)
def test_a_wrong_argument_of_a_writer_is_one_error(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        Writer(**{"folder": tmp_path, **options})
    assert error.value.message == message
    assert error.value.hint
    assert "".join(traceback.format_exception(error.value)).count("Traceback") == 1


def test_a_link_is_no_segment(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"secret")
    folder = tmp_path / "log"
    folder.mkdir()
    for name in ("a.wal", f"b{OPEN}"):
        (folder / name).symlink_to(target)
    assert sealed_segments(folder) == ()
    assert seal_abandoned(folder) == ()
    assert target.read_bytes() == b"secret"
