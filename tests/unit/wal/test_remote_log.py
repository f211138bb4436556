"""A log on a remote storage: its paths, its writers and its lock."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from icemigrate.errors import MissingExtra, UsageError
from icemigrate.redaction import MASK, redact_secrets
from icemigrate.system.process_identity import process_identity
from icemigrate.wal import EntryKind, Writer, log_lock, segment_upload, storage_path
from icemigrate.wal.log_folder import OPEN, LogError, read_segment, sealed_segments
from icemigrate.wal.log_lock import lock_log
from icemigrate.wal.segment_format import decode_segment
from icemigrate.wal.storage_path import AnyPath, StoragePath, open_path
from tests.support.storage_folders import ObjectStorage, bucket, use_storage


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    monkeypatch.setattr(segment_upload, "_FIRST_WAIT_SECONDS", 0.01)
    return use_storage(monkeypatch, tmp_path / "storage")


@pytest.fixture
def quick_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lock, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(log_lock, "_RENEW_SECONDS", 0.02)


def payloads(log: AnyPath) -> list[bytes]:
    segments = [decode_segment(read_segment(path)) for path in sealed_segments(log)]
    assert all(segment.is_sealed and not segment.damaged for segment in segments)
    return [stored.entry.payload for segment in segments for stored in segment.entries]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log", Path("log")),
        ("/var/log", Path("/var/log")),
        ("file:///var/log", Path("/var/log")),
        ("s3://bucket/a/b/", StoragePath("s3://bucket/a/b")),
        ("hdfs://name:8020/log", StoragePath("hdfs://name:8020/log")),
    ],
)
def test_a_path_is_local_or_a_url(text: str, expected: AnyPath) -> None:
    assert open_path(text) == expected


@pytest.mark.parametrize(
    "text", ["s3://key:hidden-word@bucket/log", "s3:///log", "s3://b/l?x=1", "s3://b//l"]
)
def test_a_url_that_names_no_folder_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_path(text)
    assert "hidden-word" not in str(refused.value)


def test_a_scheme_that_no_library_knows_is_one_error() -> None:
    with pytest.raises(UsageError, match="no library reaches `nfsx://host`"):
        open_path("nfsx://host/log").is_dir()


def test_hdfs_needs_the_client_of_hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "HADOOP_HOME", "ARROW_LIBHDFS_DIR", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingExtra) as refused:
        Writer("hdfs://name.invalid:8020/log", spool=tmp_path)
    assert "`hdfs://name.invalid:8020` cannot be reached, because Hadoop's client is not installed" in str(
        refused.value
    )
    assert "set `JAVA_HOME`, `HADOOP_HOME` and `CLASSPATH`" in str(refused.value.hint)


@pytest.mark.parametrize("scheme", ["memory", "s3"])
def test_a_file_is_copied_and_gets_another_name(
    scheme: str, tmp_path: Path, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storages without objects move a file, which pyarrow cannot copy on HDFS."""
    if scheme == "memory":
        monkeypatch.undo()
    folder = StoragePath(f"{scheme}://bucket/{tmp_path.name}")
    (folder / "a").write_bytes(b"one")
    (folder / "a").copy(folder / "b/copy")
    (folder / "a").rename(folder / "b/a")
    assert sorted((one.path.url, one.size) for one in folder.files(is_recursive=True)) == [
        (f"{folder}/b/a", 3),
        (f"{folder}/b/copy", 3),
    ]
    assert (folder / "b/copy").open_file().read() == b"one"
    folder.remove_folder()
    folder.remove_folder()
    assert not folder.exists()


@pytest.mark.parametrize("scheme", ["memory", "s3"])
def test_the_files_of_a_whole_bucket_have_their_names(
    scheme: str, tmp_path: Path, storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    if scheme == "memory":
        monkeypatch.undo()
    root = StoragePath(f"{scheme}://{tmp_path.name}")
    (root / "day=1/a.parquet").write_bytes(b"one")
    assert [one.path.url for one in root.files(is_recursive=True)] == [f"{root}/day=1/a.parquet"]


def test_keys_are_never_shown() -> None:
    path = open_path("s3://bucket/log", {"s3.secret-access-key": "hidden-key-x7q"})
    assert "hidden-key-x7q" not in f"{path} {path!r}"
    assert redact_secrets("it was hidden-key-x7q") == f"it was {MASK}"


def test_fsspec_reaches_what_pyarrow_does_not(tmp_path: Path) -> None:
    log = open_path(f"memory://bucket/{tmp_path.name}")
    assert isinstance(log, StoragePath)
    log.mkdir(parents=True, exist_ok=True)
    (log / "a.wal").write_bytes(b"one")
    (log / "a.wal").write_bytes(b"two")
    assert [(one.path.name, one.size) for one in log.files()] == [("a.wal", 3)]
    assert (log / "a.wal").read_bytes() == b"two"
    (log / "a.wal").rename(log / "b.wal")
    assert [path.name for path in log.iterdir()] == ["b.wal"]
    (log / "b.wal").unlink()
    with pytest.raises(FileNotFoundError):
        (log / "b.wal").read_bytes()


def test_a_failure_of_a_storage_is_one_short_reason(storage: ObjectStorage) -> None:
    storage.is_away = True
    with pytest.raises(LogError) as refused:
        sealed_segments(bucket())
    assert (
        str(refused.value) == "the log s3://telemetry/log cannot be read: error NETWORK_CONNECTION: no route"
    )


def test_a_sealed_segment_is_uploaded_and_leaves_the_spool(storage: ObjectStorage, tmp_path: Path) -> None:
    del storage
    with Writer("s3://telemetry/log", spool=tmp_path / "spool", segment_bytes=600) as log:
        for number in range(20):
            log.append("a", EntryKind.LOGS, b"%d" % number * 50)
        log.flush()
        assert len(payloads(bucket())) == 20
        log.append("a", EntryKind.LOGS, b"last")
        assert list((tmp_path / "spool").glob(f"*{OPEN}"))
    assert sorted(payloads(bucket())) == sorted([*(b"%d" % number * 50 for number in range(20)), b"last"])
    assert len(sealed_segments(bucket())) >= 4
    assert not list((tmp_path / "spool").iterdir())


def test_segments_wait_in_the_spool_while_the_storage_is_away(storage: ObjectStorage, tmp_path: Path) -> None:
    log = Writer("s3://telemetry/log", spool=tmp_path / "spool")
    storage.is_away = True
    log.append("a", EntryKind.LOGS, b"one")
    with pytest.raises(LogError, match="cannot be written: error NETWORK_CONNECTION"):
        log.flush()
    log.append("a", EntryKind.LOGS, b"two")
    with pytest.raises(LogError):
        log.close()
    assert payloads(tmp_path / "spool") == [b"one", b"two"]
    storage.is_away = False
    # What a killed process left is uploaded, too.
    left = (tmp_path / "spool") / next(iter(sealed_segments(tmp_path / "spool"))).name
    left.rename(left.with_name(left.name.removesuffix(".wal") + OPEN))
    Writer("s3://telemetry/log", spool=tmp_path / "spool").close()
    assert payloads(bucket()) == [b"one", b"two"]


def test_an_upload_is_tried_again(storage: ObjectStorage, tmp_path: Path) -> None:
    with Writer("s3://telemetry/log", spool=tmp_path / "spool", segment_bytes=1) as log:
        storage.is_away = True
        log.append("a", EntryKind.LOGS, b"one")
        storage.is_away = False
        deadline = time.monotonic() + 20
        while not payloads(bucket()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert payloads(bucket()) == [b"one"]


def test_a_spool_belongs_to_a_remote_log(tmp_path: Path) -> None:
    for folder, spool in (("s3://b/log", None), ("s3://b/log", "s3://b/spool"), (tmp_path, tmp_path / "s")):
        with pytest.raises(UsageError, match=r"spool|wait until they are uploaded"):
            Writer(folder, spool=spool)


@pytest.mark.usefixtures("storage", "quick_lock")
def test_one_process_drains_a_remote_log() -> None:
    with pytest.raises(LogError, match="the log s3://telemetry/log does not exist"), lock_log(bucket()):
        pass
    bucket().mkdir(parents=True, exist_ok=True)
    with lock_log(bucket()) as lock:
        lock.require_held()
        with pytest.raises(LogError, match="another process drains the log"), lock_log(bucket()):
            pass
    with lock_log(bucket()):
        pass
    assert not list((bucket() / "lock").files())


@pytest.mark.usefixtures("storage", "quick_lock")
def test_of_processes_that_begin_at_once_one_at_most_has_the_lock() -> None:
    bucket().mkdir(parents=True, exist_ok=True)
    holders, most, refused = 0, 0, 0
    count = threading.Lock()

    def drain() -> None:
        nonlocal holders, most, refused
        try:
            with lock_log(bucket()):
                with count:
                    holders += 1
                    most = max(most, holders)
                time.sleep(0.2)
                with count:
                    holders -= 1
        except LogError:
            with count:
                refused += 1

    threads = [threading.Thread(target=drain) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert refused < 6


@pytest.mark.usefixtures("storage", "quick_lock")
def test_the_lock_of_a_process_that_ended_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bucket() / "lock"
    identity = process_identity().rpartition(" ")[0]
    (folder / "ended").write_bytes(json.dumps({"pid": os.getpid(), "process": f"{identity} 1"}).encode())
    (folder / "elsewhere").write_bytes(b"{}")
    os.utime(tmp_path / "storage/telemetry/log/lock/elsewhere", (1, 1))
    with lock_log(bucket()):
        assert len(list(folder.files())) == 1
    # One that may run is waited for until its lease ends.
    (folder / "elsewhere").write_bytes(b"{}")
    monkeypatch.setattr(log_lock, "LEASE_SECONDS", 0.3)
    with lock_log(bucket()):
        assert len(list(folder.files())) == 1


@pytest.mark.usefixtures("storage", "quick_lock")
def test_a_holder_whose_lock_was_taken_over_stops() -> None:
    bucket().mkdir(parents=True, exist_ok=True)
    with lock_log(bucket()) as lock:
        (mine,) = (bucket() / "lock").iterdir()
        mine.unlink()
        assert isinstance(lock, log_lock._StorageLock)
        lock._thread.join(20)
        with pytest.raises(LogError, match="this process lost the lock"):
            lock.require_held()


def test_a_holder_that_cannot_write_its_lock_stops(
    storage: ObjectStorage, quick_lock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del quick_lock
    bucket().mkdir(parents=True, exist_ok=True)
    with lock_log(bucket()) as lock:
        storage.is_away = True
        monkeypatch.setattr(log_lock, "_LOST_SECONDS", 0.1)
        time.sleep(0.3)
        with pytest.raises(LogError, match="this process lost the lock"):
            lock.require_held()
        storage.is_away = False


def test_s3_is_reached_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[dict[str, object]]()
    monkeypatch.setattr("pyarrow.fs.S3FileSystem", lambda **options: given.append(options))
    settings = {
        "s3.endpoint": "http://127.0.0.1:9000",
        "s3.access-key-id": "a",
        "s3.secret-access-key": "b",
        "s3.region": "eu-west-1",
        "s3.force-virtual-addressing": "false",
    }
    storage_path.file_system("s3a://one-bucket", tuple(settings.items()))
    (options,) = given
    assert (
        options.items()
        >= {
            "endpoint_override": "127.0.0.1:9000",
            "scheme": "http",
            "access_key": "a",
            "secret_key": "b",
            "region": "eu-west-1",
            "force_virtual_addressing": False,
        }.items()
    )
