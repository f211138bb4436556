"""The files of an environment: a project file may name them anywhere, a link may not lead them out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from icemigrate.catalog import CatalogSettings
from icemigrate.catalog.metadata_files import read_metadata
from icemigrate.catalog.sqlite_reader import SqliteCatalog
from icemigrate.errors import CatalogError, IcemigrateError, MetadataError
from icemigrate.iceberg.names import TableName
from icemigrate.project import choose_environment, load_project
from icemigrate.project.project_values import Environment

NAMED = """\
environments:
  local:
    catalog: {type: sqlite, uri: "%s/c.db", warehouse: "%s/w"}
    spark: {jars: "%s/jars"}
"""


def environment(folder: Path, text: str = "") -> Environment:
    (folder / "icemigrate.yaml").write_text(text)
    project = load_project(folder).project
    assert project is not None
    return choose_environment(project, None, {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("project/.git", "outside/w"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "project"


def test_the_embedded_catalog_is_not_reached_through_a_link(folder: Path) -> None:
    (folder / ".icemigrate").symlink_to("../outside")
    message = r"catalog\.db` of environment `local` is not used: it leads out"
    with pytest.raises(IcemigrateError, match=message) as raised:
        environment(folder)
    assert raised.value.hint == "write the real path in the project file"


@pytest.mark.parametrize("at", range(3))
def test_no_file_of_an_environment_is_reached_through_a_link(folder: Path, at: int) -> None:
    (folder / "link").symlink_to("../outside")
    parts = ["state", "state", "state"]
    parts[at] = "link"
    with pytest.raises(IcemigrateError, match="it leads out of the repository"):
        environment(folder, NAMED % tuple(parts))


@pytest.mark.parametrize("where", ["../outside", "OUTSIDE", "inside"])
def test_what_the_project_file_names_in_plain_sight_is_used(folder: Path, where: str) -> None:
    (folder / "real").mkdir()
    (folder / "inside").symlink_to("real")
    written = where.replace("OUTSIDE", str(folder.parent / "outside"))
    assert environment(folder, NAMED % (written, written, written)).catalog.uri is not None


def test_a_catalog_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.db")
    with pytest.raises(CatalogError, match="regular file"):
        SqliteCatalog(CatalogSettings("lake", "sqlite", str(tmp_path / "c.db"))).tables()


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_metadata_that_is_no_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    location = f"file:{tmp_path}/pipe" if kind == "pipe" else "file:/dev/zero"
    with pytest.raises(MetadataError, match="it is not a regular file"):
        read_metadata(TableName(("db",), "t"), location)
