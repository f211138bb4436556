"""What is special about the embedded catalog."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from icemigrate.catalog import CatalogSettings, open_catalog
from icemigrate.catalog.sqlite_reader import SqliteCatalog, database_path
from icemigrate.errors import CatalogError, MissingExtra, extra_hint
from icemigrate.iceberg.names import TableName
from tests.support import sqlite_lakes

TRADES = TableName(("db",), "trades")


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("catalog.db", "catalog.db"),
        ("/a/catalog.db", "/a/catalog.db"),
        ("sqlite:///catalog.db", "catalog.db"),
        ("sqlite:////a/b c.db?timeout=60", "/a/b c.db"),
        ("jdbc:sqlite:/a/catalog.db?busy_timeout=60000", "/a/catalog.db"),
    ],
)
def test_the_file_behind_each_spelling(uri: str, path: str) -> None:
    assert database_path(CatalogSettings("lake", "sqlite", uri)) == Path(path)


@pytest.mark.parametrize("uri", [None, "", "sqlite:///", "sqlite:///:memory:", "postgresql://host/db"])
def test_an_address_that_is_no_file(uri: str | None) -> None:
    with pytest.raises(CatalogError, match="names no SQLite file") as raised:
        open_catalog(CatalogSettings("lake", "sqlite", uri))
    assert raised.value.hint == "write `uri: sqlite:///path/to/catalog.db`"


def test_a_locked_database_is_one_clear_message(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    holder = sqlite3.connect(lake.database, isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CatalogError, match=r"catalog.db is locked by another process") as raised:
            SqliteCatalog(lake.settings(), busy_seconds=0.05).tables()
        assert raised.value.hint is not None
    finally:
        holder.close()


def test_a_write_that_was_killed_is_rolled_back(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    before = SqliteCatalog(lake.settings()).tables()
    writer = sqlite3.connect(lake.database, isolation_level=None)
    try:
        # Pages are written before the transaction ends, and the journal has what was in them.
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM iceberg_tables")
        writer.execute("CREATE TABLE large (text VARCHAR)")
        writer.executemany("INSERT INTO large VALUES (?)", [("x" * 500,)] * 500)
        left = tmp_path / "left" / lake.database.name
        left.parent.mkdir()
        for suffix in ("", "-journal"):
            shutil.copy(f"{lake.database}{suffix}", f"{left}{suffix}")
    finally:
        writer.close()
    link = tmp_path / "link.db"
    link.symlink_to(left)
    found = SqliteCatalog(CatalogSettings(lake.settings().name, "sqlite", str(link))).tables()
    assert found == before != ()


def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    code = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN EXCLUSIVE'); print('held', flush=True); time.sleep(0.3); c.execute('COMMIT')"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(lake.database)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert TRADES in SqliteCatalog(lake.settings()).tables()


def test_a_folder_is_no_catalog(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="is a folder, not a SQLite file"):
        open_catalog(sqlite_lakes.Lake(tmp_path).settings()).tables()


def test_a_damaged_database_is_said(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    content = bytearray(lake.database.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    lake.database.write_bytes(content)
    with pytest.raises(CatalogError, match=r"catalog.db cannot be read: .*(malformed|corrupt)"):
        open_catalog(lake.settings()).tables()


def _as_nobody(lake: sqlite_lakes.Lake, call: str) -> str:
    """Run a call in a process without the rights of a superuser, and give back the fault's message."""
    code = (
        "import os, sys\n"
        "from icemigrate.catalog import CatalogSettings, open_catalog\n"
        "import icemigrate.catalog.sqlite_reader\n"
        "from icemigrate.errors import CatalogError\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "catalog = open_catalog(CatalogSettings('lake', 'sqlite', sys.argv[1]))\n"
        f"try: {call}\n"
        "except CatalogError as error: print(type(error).__name__, error.message, '|', error.hint)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(lake.database)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    return ran.stdout


def _open_to_all(folder: Path) -> None:
    for parent in [folder, *folder.parents][:4]:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/tmp"):
            parent.chmod(0o755)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    _open_to_all(tmp_path)
    lake.database.chmod(0)
    message = _as_nobody(lake, "catalog.tables()")
    assert message.startswith(f"CatalogError not allowed to read the catalog {lake.database}")


def test_a_folder_that_may_not_be_entered(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    lake = sqlite_lakes.make(locked)
    _open_to_all(tmp_path)
    locked.chmod(0)
    try:
        message = _as_nobody(lake, "catalog.tables()")
    finally:
        locked.chmod(0o755)
    assert message.startswith(f"CatalogError not allowed to read the catalog {lake.database}")


def test_a_metadata_file_that_may_not_be_read(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    _open_to_all(tmp_path)
    lake.files[TRADES].chmod(0)
    message = _as_nobody(lake, "catalog.load(catalog.tables())")
    assert message.startswith("MetadataError table `db.trades`: not allowed to read its metadata file")


def test_a_metadata_file_that_is_a_folder(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    lake.files[TRADES].unlink()
    lake.files[TRADES].mkdir()
    with pytest.raises(
        CatalogError, match=r"table `db.trades`: its metadata file .* cannot be read: Is a directory"
    ):
        open_catalog(lake.settings()).load([TRADES])


def test_metadata_elsewhere_needs_an_extra_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = sqlite_lakes.make(tmp_path)
    lake.execute(
        "UPDATE iceberg_tables SET metadata_location = 's3://lake/x.json' WHERE table_name = 'trades'"
    )
    monkeypatch.setitem(sys.modules, "pyiceberg.io", None)
    with pytest.raises(MissingExtra) as raised:
        open_catalog(lake.settings()).load([TRADES])
    assert raised.value.hint == extra_hint("pyiceberg")


def test_no_heavy_library_is_loaded(tmp_path: Path) -> None:
    lake = sqlite_lakes.make(tmp_path)
    code = (
        "import sys\n"
        "from icemigrate.catalog import CatalogSettings, open_catalog\n"
        "catalog = open_catalog(CatalogSettings('lake', 'sqlite', sys.argv[1]))\n"
        "assert len(catalog.load(catalog.tables())) == 6\n"
        "print(sorted({'pyiceberg', 'sqlalchemy', 'pyarrow', 'pyspark', 'requests'} & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(lake.database)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert ran.stdout == "[]\n"
