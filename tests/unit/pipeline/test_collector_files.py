"""Files of the Collector's file exporter: each request is in the log once, whenever a process is killed."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icemigrate.errors import UsageError
from icemigrate.frozen import replace
from icemigrate.otlp.export_requests import decode_request, parse_protobuf
from icemigrate.pipeline.collected_segments import COLLECTOR, collect, read_progress
from icemigrate.pipeline.collector_records import OpenFile
from icemigrate.pipeline.segment_entries import segment_rows
from icemigrate.project.telemetry_sources import FileSource, parse_source
from icemigrate.wal.entries import LONGEST_PAYLOAD, Entry, EntryKind, PayloadEncoding
from icemigrate.wal.log_folder import LogError, sealed_segments, write_sealed
from icemigrate.wal.segment_format import decode_segment
from tests.support.collector_exporter import FORMATS, Exporter, frame, json_request, with_length
from tests.support.log_streams import Killed, LogStream, Process, count_steps


@pytest.fixture
def exporter(tmp_path: Path) -> Exporter:
    return Exporter(tmp_path / "otel" / "traces.json")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def source(exporter: Exporter, options: str = "?kind=traces") -> FileSource:
    return parse_source(f"file:{exporter.path}{options}", Path("/"))


def rows(log: Path) -> list[dict[str, Any]]:
    """What a batch reads of the log."""
    names = ("tenant", "kind", "encoding", "time_ns", "segment", "offset", "payload", "problem")
    return [
        dict(zip(names, row, strict=True))
        for path in sealed_segments(log)
        for row in segment_rows(path.name, path.read_bytes())
    ]


def spans(log: Path) -> list[tuple[str, int]]:
    """The tenants and numbers of spans in the log."""
    return sorted(
        (row["tenant"], int(span["spanId"], 16))
        for row in rows(log)
        if row["problem"] is None
        for resource in decode_request(
            row["payload"], EntryKind(row["kind"]), PayloadEncoding(row["encoding"])
        )["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    )


def problems(log: Path) -> list[tuple[str, bytes]]:
    """The problems in the log, without the place, and the bytes."""
    return [(row["problem"].partition(": ")[2], row["payload"]) for row in rows(log) if row["problem"]]


@pytest.mark.parametrize("name", FORMATS)
def test_requests_are_read_once_as_the_file_grows_and_is_rotated(
    name: str, exporter: Exporter, log: Path
) -> None:
    encode, write = FORMATS[name]
    written = [
        write(encode(("acme", n), ("globex", n)) if n % 2 else encode(("acme", n))) for n in range(1, 9)
    ]
    wanted = sorted([("acme", n) for n in range(1, 9)] + [("globex", n) for n in range(1, 9) if n % 2])
    cuts = [len(b"".join(written[:3])) + 7, len(b"".join(written[:6]))]
    content = b"".join(written)
    exporter.write(content[: cuts[0]])
    assert collect([source(exporter)], log) == 1
    assert spans(log) == [one for one in wanted if one[1] <= 3], "half a request is not read"
    assert collect([source(exporter)], log) == 0
    exporter.write(content[cuts[0] : cuts[1]])
    exporter.rotate()
    assert collect([source(exporter)], log) == 1
    exporter.write(content[cuts[1] :])
    collect([source(exporter)], log)
    exporter.rotate()
    collect([source(exporter)], log)
    assert spans(log) == wanted
    assert problems(log) == []


def test_the_end_of_a_line_can_be_in_the_next_file(exporter: Exporter, log: Path) -> None:
    for number in (1, 2):
        exporter.write(json_request(("acme", number)))
        collect([source(exporter)], log)
        exporter.rotate()
        exporter.write(b"\n")
    exporter.write(json_request(("acme", 3)) + b"\n")
    collect([source(exporter)], log)
    assert spans(log) == [("acme", 1), ("acme", 2), ("acme", 3)]
    assert problems(log) == []


@pytest.mark.parametrize("name", FORMATS)
def test_damage_is_reported_once_and_the_other_requests_are_read(
    name: str, exporter: Exporter, log: Path
) -> None:
    encode, write = FORMATS[name]
    one, two, three = (write(encode(("acme", n))) for n in (1, 2, 3))
    torn = two[: len(two) // 2]
    exporter.write(one + torn + three)  # as a process that is killed, and another one
    collect([source(exporter)], log)
    exporter.rotate()
    collect([source(exporter)], log)
    assert spans(log) == [("acme", 1), ("acme", 3)]
    ((_, data),) = problems(log)
    assert data == torn
    exporter.write(torn)
    collect([source(exporter)], log)
    assert len(problems(log)) == 1, "it may be written still"
    exporter.rotate()
    collect([source(exporter)], log)
    assert [data for _, data in problems(log)] == [torn, torn]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"resourceSpans":[}\n', "the request is no JSON object: "),
        (b"[]\n", "the request is no JSON object: Expected `object`"),
        (b"\xff\xfe\n", "the request is no JSON object: "),
        (b'{"resourceProfiles":[]}\n', "the request has none of `resourceSpans`, "),
        (b'{"resourceSpans":{}}\n', "`resourceSpans` is no list"),
        (b'{"resourceSpans":[{}]}\n', "a resource has no text in the attribute `tenant.id`"),
        (b'{"resourceSpans":[7]}\n', "a resource cannot be read: Expected `object`"),
        (json_request(("../x", 1)) + b"\n", "'../x' cannot be the id of a tenant"),
        (json_request(("a.b", 1)) + b"\n", "'a.b' cannot be the id of a tenant"),
        (with_length(frame(b"x")), "the record is neither JSON nor Protocol Buffers"),
        (with_length(frame(b"{}")[:-1] + b"?"), "the frame of Zstandard"),
        (with_length(b"\x0a\x7f"), "the payload is no Protocol Buffers message: "),
        (b"\x04\x00\x00\x01\x0a", "the length 67108865 of a record is invalid"),
        (frame(b"{}\n")[:-1], "the file ends within a frame of Zstandard"),
        (with_length(b"\x0a\x02")[:-1], "the file ends within a record"),
        (b'{"resourceSpans":[', "the request is no JSON object: Input data was truncated"),
    ],
)
def test_what_cannot_be_read_is_kept_with_the_reason(
    content: bytes, problem: str, exporter: Exporter, log: Path
) -> None:
    exporter.write(content)
    name = exporter.rotate().name
    assert collect([source(exporter)], log) == 1
    ((row,)) = rows(log)
    assert row["problem"].startswith(f"{name}, up to byte {len(content)}: {problem}")
    assert row["payload"] in (content, content.removesuffix(b"\n"))
    assert row["tenant"] is None


def test_a_request_without_a_tenant_does_not_stop_the_others_in_its_line(
    exporter: Exporter, log: Path
) -> None:
    exporter.write(json_request(("acme", 1), (None, 2), ("../x", 3), ("globex", 4), ("acme", 5)) + b"{}\n")
    exporter.rotate()
    exporter.write(json_request(("acme", 1), (None, 2), ("../x", 3), ("globex", 4), ("acme", 5)) + b"\n{}\n")
    collect([source(exporter)], log)
    assert spans(log) == [("acme", 1), ("acme", 5), ("globex", 4)]
    assert [reason.partition(":")[0] for reason, _ in problems(log)] == [
        "the request is no JSON object",
        "a resource has no text in the attribute `tenant.id`",
        "'../x' cannot be the id of a tenant",
    ]
    assert [data for _, data in problems(log)][1:] == [json_request((None, 2)), json_request(("../x", 3))]


def test_long_lines(exporter: Exporter, log: Path) -> None:
    long = json_request(("acme", 1)).replace(b'"scope":{}', b'"scope":{"name":"%b"}' % (b"x" * 10_000_000))
    too_long = b"y" * (LONGEST_PAYLOAD + 10)
    exporter.write(long + b"\n" + too_long + b"\n" + json_request(("acme", 2)) + b"\n")
    assert collect([source(exporter)], log) == 2
    assert spans(log) == [("acme", 1), ("acme", 2)]
    assert b"".join(data for _, data in problems(log)) == too_long


def test_a_frame_that_is_too_long_is_not_read_whole(
    exporter: Exporter, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icemigrate.pipeline.collector_records._LARGEST_FRAME", 1000)
    long = b"\x50\x2a\x4d\x18" + (2000).to_bytes(4, "little") + bytes(2000)  # decoders skip its content
    exporter.write(long + frame(json_request(("acme", 1)) + b"\n"))
    collect([source(exporter)], log)
    assert spans(log) == [("acme", 1)]
    assert problems(log) == [("the frame of Zstandard has more than 1,000 bytes", long)]


HOSTILE = {
    # Each of them looks like a long record in Protocol Buffers.
    "proto": b"\x00\x00\x40\x00\x0a\xff\x7f" * 20_000,
    # Each of them looks like a frame that has the blocks of the next one, too.
    "json native flushed": (b"\x28\xb5\x2f\xfd\x00\x00" + bytes(300)) * 2_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_search_behind_hostile_bytes_is_bounded(
    name: str, exporter: Exporter, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = list[int]()

    def parse(data: bytes, kind: EntryKind) -> object:
        work.append(len(data))
        return parse_protobuf(data, kind)

    def read(file: OpenFile, offset: int, size: int) -> bytes:
        work.append(64)
        return read_file(file, offset, size)

    read_file = OpenFile.read
    monkeypatch.setattr("icemigrate.pipeline.collector_records.parse_protobuf", parse)
    monkeypatch.setattr(OpenFile, "read", read)
    monkeypatch.setattr("icemigrate.pipeline.record_search._MOST_WORK", 1_000_000)
    encode, write = FORMATS[name]
    one, damage, two = write(encode(("acme", 1))), HOSTILE[name], write(encode(("acme", 2)))
    exporter.write(one + damage + two)
    exporter.rotate()
    collect([source(exporter)], log)
    assert sum(work) < 1_000_000 + 20 * len(damage)
    assert spans(log)[0] == ("acme", 1)
    assert b"".join(data for _, data in problems(log)).startswith(damage)


def test_the_tenant_is_given_or_in_the_path(tmp_path: Path, log: Path) -> None:
    for name in ("acme", "globex", "a.b"):
        folder = Exporter(tmp_path / "by" / name / "traces.json")
        folder.write(json_request((None, 1)) + b"\n")
        folder.rotate()
        folder.write(json_request((None, 2)) + b"\n")
        Exporter(tmp_path / "in" / f"{name}-traces.jsonl").write(json_request(("other", 3)) + b"\n")
    (tmp_path / "by" / "acme" / "traces.json.bak").write_bytes(b"not a file of the source\n")
    sources = (
        f"file:{tmp_path}/by/*/traces.json",
        "file:in/*-traces.jsonl",
        "file:by/acme/traces.json?tenant=initech",
    )
    collect([parse_source(one, tmp_path) for one in sources], log)
    assert spans(log) == [(tenant, n) for tenant in ("acme", "globex") for n in (1, 2, 3)]
    assert {reason for reason, _ in problems(log)} == {"'a.b' cannot be the id of a tenant"}
    assert len(problems(log)) == 3
    log = tmp_path / "other"
    collect([parse_source(sources[-1], tmp_path)], log)
    assert spans(log) == [("initech", 1), ("initech", 2)]


def test_the_star_of_a_name_can_be_all_of_it(tmp_path: Path, log: Path) -> None:
    rotated = Exporter(tmp_path / "json" / "acme.json")
    rotated.write(json_request((None, 1)) + b"\n")
    rotated.rotate()
    rotated.write(json_request((None, 2)) + b"\n")
    Exporter(tmp_path / "plain" / "globex").write(json_request((None, 3)) + b"\n")
    collect([parse_source(one, tmp_path) for one in ("file:json/*.json", "file:plain/*")], log)
    assert spans(log) == [("acme", 1), ("acme", 2), ("globex", 3)]


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_link_gives_no_tenant_the_requests_of_another(tmp_path: Path, log: Path, is_folder: bool) -> None:
    other = Exporter(tmp_path / "otel" / "globex" / "traces.json")
    other.write(json_request((None, 1)) + b"\n")
    link = tmp_path / "otel" / "acme"
    if not is_folder:
        link.mkdir()
        link /= "traces.json"
    link.symlink_to(other.path.parent if is_folder else other.path)
    with pytest.raises(LogError, match=r"acme/traces\.json is not read: a symbolic link can lead to"):
        collect([parse_source("file:otel/*/traces.json", tmp_path)], log)
    assert spans(log) == []
    # An operator's link to the folder of all tenants is followed.
    link.unlink()
    (tmp_path / "linked").symlink_to(tmp_path / "otel")
    collect([parse_source("file:linked/*/traces.json", tmp_path)], log)
    assert spans(log) == [("globex", 1)]


@pytest.mark.parametrize("first", ["a/traces.json", "b/logs.json", "t/*/traces.json"])
def test_progress_outlives_runs_that_do_not_find_a_file(
    first: str, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another source, in a folder of both sources, or in one that cannot be listed for a while."""
    name = first.replace("*", "acme")
    Exporter(tmp_path / name).write(json_request(("acme", 1)) + b"\n")
    other = Exporter(tmp_path / "b" / "traces.json")
    one, two = (parse_source(f"file:{path}", tmp_path) for path in (first, "b/traces.json"))
    collect([one], log)
    now_s, scandir = time.time(), os.scandir

    def list_folder(path: Any) -> Any:
        if str(path).endswith("acme"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", list_folder)
        for day in range(1, 20):
            patch.setattr(time, "time", lambda day=day: now_s + day * 86_400)
            other.write(json_request(("other", day)) + b"\n")
            # A search of a folder that cannot be listed finds no file.
            collect([replace(one, path=f"{one.path}.no"), two] if "*" in first else [two], log)
    collect([one], log)
    assert spans(log).count(("acme", 1)) == 1


def test_progress_of_a_file_that_is_missing_for_days_is_removed(
    exporter: Exporter, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter.write(json_request(("acme", 1)) + b"\n")
    rotated = exporter.rotate()
    now_s, counts = time.time(), list[int]()
    for day in range(6):
        monkeypatch.setattr(time, "time", lambda day=day: now_s + day * 86_400)
        exporter.write(json_request(("acme", 2 + day)) + b"\n")
        collect([source(exporter)], log)
        rotated.unlink(missing_ok=True)
        counts.append(len(read_progress(log / COLLECTOR).files))
    assert counts == [2, 2, 2, 1, 1, 1]
    assert spans(log) == [("acme", n) for n in range(1, 8)]


def test_a_file_that_is_emptied_is_read_from_its_beginning(exporter: Exporter, log: Path) -> None:
    for first in (1, 3, 7):
        content = b"".join(json_request(("acme", n)) + b"\n" for n in range(first, 2 * first))
        exporter.path.write_bytes(content)
        collect([source(exporter)], log)
    assert spans(log) == [("acme", n) for n in (1, 3, 4, 5, *range(7, 14))]


def test_protocol_buffers_need_a_kind_and_nothing_is_passed_over(exporter: Exporter, log: Path) -> None:
    encode, write = FORMATS["proto"]
    exporter.write(write(encode(("acme", 1))))
    with pytest.raises(UsageError) as error:
        collect([source(exporter, "")], log)
    assert error.value.message.startswith(f"the file {exporter.path}: the requests are in Protocol Buffers")
    assert collect([source(exporter)], log) == 1
    assert spans(log) == [("acme", 1)]


def test_what_cannot_be_opened_is_one_error(exporter: Exporter, log: Path, tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"the folder .*/none cannot be read: no such file"):
        collect([parse_source("file:none/*.json", tmp_path)], log)
    exporter.path.unlink()
    os.mkfifo(exporter.path)
    assert collect([source(exporter)], log) == 0, "a named pipe is no file of the exporter"
    (log / COLLECTOR / "progress.json").write_bytes(b"{")
    with pytest.raises(LogError, match=r"progress\.json cannot be read: it is damaged"):
        collect([source(exporter)], log)


def test_a_segment_that_no_progress_names_is_not_published(exporter: Exporter, log: Path) -> None:
    (log / COLLECTOR).mkdir(parents=True)
    left = Entry("acme", EntryKind.TRACES, 1, json_request(("acme", 1)))
    write_sealed(log / COLLECTOR / "1.wal", [left])  # as a process that is killed, with another source
    exporter.write(b"\n\n\n\n")
    assert collect([source(exporter)], log) == 1
    assert rows(log) == []


def test_no_request_is_lost_or_repeated_whenever_a_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icemigrate.pipeline.collected_segments.SEGMENT_BYTES", 100)
    kills = kill_at = 0
    while kills == kill_at:
        exporter = Exporter(tmp_path / f"{kill_at}" / "otel" / "traces.json")
        stream = LogStream(tmp_path / f"{kill_at}" / "log")
        files = source(exporter)
        with monkeypatch.context() as patch:
            count_steps(patch, stream)
            _count_replacements(patch, stream)
            exporter.write(
                json_request(("acme", 1)) + b"\n" + json_request(("acme", 2), ("globex", 2)) + b"\n{"
            )
            stream.process = Process(kill_at)
            was_killed = _was_killed(stream, files)
            stream.process = Process()
            exporter.write(json_request(("acme", 3))[1:] + b"\n")
            exporter.rotate()
            exporter.write(b"no request\n")
            stream.process = Process(kill_at)
            was_killed += _was_killed(stream, files)
            stream.process = Process()
            collect([files], stream.log)
        kills += was_killed > 0
        assert spans(stream.log) == [("acme", 1), ("acme", 2), ("acme", 3), ("globex", 2)]
        assert len(problems(stream.log)) == 1
        assert Counter(path.suffix for path in (stream.log / COLLECTOR).iterdir()) == {".json": 1}
        for path in sealed_segments(stream.log):
            assert decode_segment(path.read_bytes()).is_sealed
        kill_at += 1
    assert kills > 25


def _count_replacements(patch: pytest.MonkeyPatch, stream: LogStream) -> None:
    """Let the replacement of a file, and the creation of a folder, be a step of the process, too."""
    for name in ("replace", "mkdir"):
        real = getattr(Path, name)

        def call(*args: Any, real: Callable[..., Any] = real, **options: Any) -> Any:
            stream.process.step()
            return real(*args, **options)

        patch.setattr(Path, name, call)


def _was_killed(stream: LogStream, files: FileSource) -> bool:
    """Run to the end or until the process is killed; whether it was."""
    try:
        collect([files], stream.log)
    except Killed:
        for number in tuple(stream.process.opened):
            os.close(number)
        return True
    return False
