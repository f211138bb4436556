"""Files of tables: on this machine, and on a storage that PyIceberg reaches, here a double of its FileIO."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest

from icemigrate.catalog import CatalogSettings
from icemigrate.errors import EngineError, MissingExtra
from icemigrate.metadata_engine.file_stores import TableFiles

SECRET = "hush-kx82qpz"
LOCATION = "s3://lake/t/metadata/a.avro"


class Storage:
    """A FileIO in memory, and its own input, output and stream; `fault` is what it raises."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fault: Exception | None = None
        self.hangs: Event | None = None
        self.location = ""
        self.parts = [b""]

    def new_output(self, location: str) -> Storage:
        self.location, self.parts = location, []
        return self

    new_input = new_output

    def create(self) -> Storage:
        if self.fault is not None:
            raise self.fault
        if self.location in self.files:
            raise FileExistsError(self.location)
        return self

    def open(self) -> Storage:
        if self.fault is not None:
            raise self.fault
        self.parts = [self.files[self.location], b""]
        return self

    def read(self, _: int) -> bytes:
        return self.parts.pop(0)

    def write(self, part: bytes) -> None:
        if self.hangs is not None:
            self.hangs.wait(10)
        self.parts.append(part)

    def close(self) -> None:
        self.files.setdefault(self.location, b"".join(self.parts))

    def delete(self, location: str) -> None:
        if self.fault is not None:
            raise self.fault
        del self.files[location]


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    made = Storage()
    monkeypatch.setattr("pyiceberg.io.load_file_io", lambda properties, location: made)
    return made


def files(timeout_s: float = 5, warehouse: str = "s3://lake") -> TableFiles:
    properties = {"s3.secret-access-key": SECRET}
    uri = "postgresql://catalog.example/lake"
    return TableFiles(CatalogSettings("lake", "sql", uri, warehouse, properties, timeout_s))


def test_a_file_is_written_in_parts_once(storage: Storage) -> None:
    content = b"x" * (2 << 20) + b"y"
    files().write(LOCATION, content)
    assert storage.files == {LOCATION: content}
    with pytest.raises(EngineError, match=r"the file s3://lake/t/metadata/a.avro exists already"):
        files().write(LOCATION, b"")
    assert files().read(LOCATION) == content
    files().delete(LOCATION)
    files().delete(LOCATION)
    assert storage.files == {}


def test_errors_of_a_storage_have_no_secret(storage: Storage) -> None:
    storage.fault = RuntimeError(f"denied for {SECRET}\nand more")
    with pytest.raises(EngineError, match=r"a.avro cannot be written: denied for \*\*\*$") as raised:
        files().write(LOCATION, b"")
    with pytest.raises(OSError, match=r"denied for \*\*\*$") as unread:
        files().read(LOCATION)
    assert SECRET not in f"{raised.value}{raised.value.__cause__}{unread.value}{unread.value.__cause__}"
    files().delete(LOCATION)


def test_a_storage_that_never_answers_ends_in_time(storage: Storage) -> None:
    storage.hangs = Event()
    with pytest.raises(EngineError, match=r"was not written: no answer within 0\.1 s"):
        files(timeout_s=0.1).write(LOCATION, b"x")
    storage.hangs.set()


def test_a_library_that_is_not_installed_is_named(storage: Storage) -> None:
    storage.fault = ImportError("No module named 's3fs'")
    with pytest.raises(MissingExtra, match="s3fs"):
        files().write(LOCATION, b"x")


def test_only_a_local_warehouse_lets_a_database_elsewhere_name_local_files(tmp_path: Path) -> None:
    location = f"file://{tmp_path}/t/metadata/a.avro"
    with pytest.raises(EngineError, match="is on this machine, but catalog `lake` is not"):
        files().write(location, b"x")
    files(warehouse=f"file://{tmp_path}").write(location, b"x")
    assert files().read(location) == b"x"
    files().delete(location)
    assert files().read(location) == b"x"
    files(warehouse=str(tmp_path)).delete(location)
    with pytest.raises(FileNotFoundError):
        files().read(location)


def test_a_link_in_place_of_a_file_is_neither_written_nor_deleted(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    (tmp_path / "a.avro").symlink_to(tmp_path / "target")
    local = files(warehouse=str(tmp_path))
    with pytest.raises(EngineError, match="exists already"):
        local.write(f"{tmp_path}/a.avro", b"x")
    local.delete(f"{tmp_path}/a.avro")
    assert (tmp_path / "a.avro").read_text() == "kept"


def test_the_checksum_file_of_hadoop_is_deleted_too(tmp_path: Path) -> None:
    (tmp_path / "a.avro").write_text("x")
    (tmp_path / ".a.avro.crc").write_text("x")
    files(warehouse=str(tmp_path)).delete(f"{tmp_path}/a.avro")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("most", [3, 100, 10_000])
def test_a_local_file_has_all_parts_however_few_bytes_a_call_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    writev = os.writev

    def some(number: int, parts: Sequence[memoryview]) -> int:
        return writev(number, [b"".join(parts)[:most]])

    monkeypatch.setattr(os, "writev", some)
    parts = [b"%d" % at if at % 3 else b"" for at in range(1500)]
    location = f"file://{tmp_path}/metadata/a.json"
    files(warehouse=str(tmp_path)).write(location, *parts)
    assert (tmp_path / "metadata" / "a.json").read_bytes() == b"".join(parts)
    files(warehouse=str(tmp_path)).write(f"{location}.empty")
    assert files().read(f"{location}.empty") == b""


@pytest.mark.parametrize("has_links", [True, False])
def test_a_temporary_file_becomes_a_file_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    if not has_links:
        monkeypatch.setattr(os, "link", link)
    source = tmp_path / "source"
    source.write_bytes(b"rows" * 1000)
    local, target = files(warehouse=str(tmp_path)), tmp_path / "data" / "a.parquet"
    local.write_file(str(target), source)
    source.unlink()
    assert target.read_bytes() == b"rows" * 1000
    assert [path.name for path in target.parent.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_temporary_file_replaces_nothing_and_a_failure_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    source, target = tmp_path / "source", tmp_path / "a.parquet"
    source.write_bytes(b"rows")
    target.symlink_to(tmp_path / "elsewhere")
    local = files(warehouse=str(tmp_path))
    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(EngineError, match="exists already"):
        local.write_file(str(target), source)
    target.unlink()
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(EngineError, match="no space left"):
        local.write_file(str(target), source)
    assert list(tmp_path.iterdir()) == [source]


def test_a_temporary_file_is_uploaded_in_parts(storage: Storage, tmp_path: Path) -> None:
    content = bytes(range(256)) * 10_000
    (tmp_path / "source").write_bytes(content)
    files().write_file(LOCATION, tmp_path / "source")
    assert storage.files[LOCATION] == content
    assert max(map(len, storage.parts)) == 1 << 20
