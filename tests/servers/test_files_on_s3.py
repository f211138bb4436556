"""Parquet files on S3: `ingest` writes each row once, and `adopt-parquet` takes them into tables."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icemigrate.errors import ExitCode
from icemigrate.wal import EntryKind, Writer
from icemigrate.wal.storage_path import StoragePath, open_path
from tests.servers.conftest import ACCESS_KEY, SECRET_KEY
from tests.servers.lake import rest_kind
from tests.servers.pipelines import PipelineProject, spans
from tests.servers.seaweedfs import SeaweedFS, create_bucket, seaweedfs

FILES = "s3://telemetry/files"
ACME = f"{FILES}/traces/tenant=acme"
VISITS = """\
tables:
  - name: otel.visits
    columns:
      - {name: id, type: long}
      - {name: region, type: string}
    partition_by: [region]
"""


@pytest.fixture
def server() -> Iterator[SeaweedFS]:
    with seaweedfs(ACCESS_KEY, SECRET_KEY) as found:
        create_bucket(found, "telemetry")
        yield found


@pytest.fixture
def sign_in(server: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in rest_kind(server).variables.items():
        monkeypatch.setenv(name, value)


def storage_folder(project: PipelineProject, url: str) -> StoragePath:
    found = open_path(url, project.storage())
    assert isinstance(found, StoragePath)
    return found


def local_project(folder: Path, other: PipelineProject) -> PipelineProject:
    """A project whose tables are on this machine, with the keys of another one."""
    made = PipelineProject(folder, other.server)
    (folder / "migrations/0001_traces.yaml").write_text(VISITS, encoding="utf-8")
    text = (folder / "icemigrate.yaml").read_text(encoding="utf-8")
    head, _, rest = text.partition("    catalog:\n")
    catalog = "    catalog: {type: sqlite, uri: catalog.db, warehouse: warehouse}\n"
    storage = rest[rest.index("    storage:\n") :]
    (folder / "icemigrate.yaml").write_text(head + catalog + storage, encoding="utf-8")
    made.apply()
    return made


def rows(folder: StoragePath) -> Iterator[dict[str, Any]]:
    """The rows of the files that readers see."""
    for file in folder.files(is_recursive=True):
        if "/_" not in str(file.path):
            yield from pq.ParquetFile(file.path.open_file()).read().to_pylist()


def numbers(folder: StoragePath) -> Counter[int]:
    return Counter(int.from_bytes(row["span_id"], "big") - 1 for row in rows(folder))


@pytest.mark.usefixtures("sign_in")
def test_each_row_is_in_the_files_once_after_kills_and_a_tenant_moves(
    tmp_path: Path, server: SeaweedFS
) -> None:
    project = PipelineProject(
        tmp_path / "project",
        server,
        log="log",
        sink="parquet",
        parquet_folder=FILES,
        tenant_sinks="{globex: both}",
    )
    project.apply()
    with Writer(project.folder / "log", segment_bytes=1200) as writer:
        for number in range(60):
            writer.append(("acme", "globex", "initech")[number % 3], EntryKind.TRACES, spans(number))
    killed = project.ingest_and_kill(0, 4, "file")  # of the second batch, after one of three tenants
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = project.command("ingest")
    assert done.returncode == ExitCode.OK, done.stderr
    for first, tenant in enumerate(("acme", "globex", "initech")):
        folder = storage_folder(project, f"{FILES}/traces/tenant={tenant}")
        assert numbers(folder) == Counter(range(first, 60, 3))
        assert not list((folder / "_staging").files(is_recursive=True))
    assert project.counts("otel.globex_traces") == Counter(range(1, 60, 3))
    assert project.counts("otel.acme_traces") == Counter()

    adopted = project.command("adopt-parquet", ACME, "--into", "otel.acme_traces", "--format", "json")
    assert adopted.returncode == ExitCode.OK, adopted.stderr
    result = json.loads(adopted.stdout)
    assert (result["path"], result["rows"], result["unread"]) == (ACME, 20, None)
    assert project.counts("otel.acme_traces") == Counter(range(0, 60, 3))
    again = project.command("adopt-parquet", ACME.replace("s3:", "s3a:"), "--into", "otel.acme_traces")
    assert "No file of" in again.stdout, again.stderr
    undone = project.command("adopt-parquet", ACME, "--into", "otel.acme_traces", "--undo")
    assert undone.returncode == ExitCode.OK, undone.stderr
    assert project.counts("otel.acme_traces") == Counter()
    assert numbers(storage_folder(project, ACME)) == Counter(range(0, 60, 3))
    assert SECRET_KEY not in done.stderr + adopted.stderr + undone.stderr


@pytest.mark.usefixtures("sign_in")
def test_partitioned_folders_are_checked_before_the_table_changes(tmp_path: Path, server: SeaweedFS) -> None:
    project = PipelineProject(tmp_path / "project", server)
    (project.folder / "migrations/0001_traces.yaml").write_text(VISITS, encoding="utf-8")
    project.apply()
    folder = storage_folder(project, "s3://telemetry/visits")
    for name in ("region=eu/a", "region=a%2Fb/[x]", "region=us/_hidden", "_SUCCESS"):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [1, 2]}), sink)
        (folder / f"{name}.parquet").write_bytes(sink.getvalue().to_pybytes())
    (folder / "region=eu/b.parquet").write_bytes(b"no Parquet")
    (folder / "region=eu/c?.parquet").write_bytes(b"")
    command = ("adopt-parquet", str(folder), "--into", "otel.visits")
    refused = project.command(*command)
    assert refused.returncode != ExitCode.OK
    assert f"{folder}/region=eu/b.parquet" in refused.stderr
    assert "for readers, `?` ends the path of a URL" in refused.stderr
    assert "of the files of s3://telemetry/visits, 2 cannot be adopted" in refused.stderr
    for name in ("b", "c?"):
        (folder / f"region=eu/{name}.parquet").unlink()
    done = project.command(*command)
    assert done.returncode == ExitCode.OK, done.stderr
    found = Counter((row["region"], row["id"]) for row in project.rows("otel.visits"))
    assert found == Counter([("eu", 1), ("eu", 2), ("a/b", 1), ("a/b", 2)])
    local = local_project(tmp_path / "local", project)
    done = local.command("adopt-parquet", str(folder), "--into", "otel.visits", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["unread"]) == (ExitCode.OK, None), done.stderr
    assert Counter((row["region"], row["id"]) for row in local.rows("otel.visits")) == found
    missing = project.command("adopt-parquet", "s3://telemetry/nothing", "--into", "otel.visits")
    assert "`s3://telemetry/nothing` cannot be read: no such file" in missing.stderr
