"""The settings of the lake of `make init-infra`, and the same lake in containers."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.lake import BUCKET, HOST, WAREHOUSE, InfraError, lake
from infra.processes import Server

ROOT = Path(__file__).parents[2]


def test_credentials_are_made_once_and_kept_private(tmp_path: Path) -> None:
    first = lake(tmp_path / "lake", {})
    first.save()
    assert lake(tmp_path / "lake", {}) == first
    assert lake(tmp_path / "other", {}).password != first.password
    assert first.env_file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["0", "65536", "-1", "x", "8181 "])
def test_a_port_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InfraError, match="S3_PORT must be a port from 1 to 65535"):
        lake(tmp_path, {"S3_PORT": text})


def test_a_port_of_another_program_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = int(other.getsockname()[1])
        server = Server("rest", tmp_path, port, "CATALOG_PORT", ["true"], lambda: True, {})
        with pytest.raises(InfraError, match=f"listens on {HOST}:{port}.*CATALOG_PORT=…"):
            server.start()


def test_a_server_that_ends_at_once_is_reported_with_its_log(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo no such database; exit 1"]
    server = Server("rest", tmp_path, 1, "CATALOG_PORT", command, lambda: False, {})
    with pytest.raises(InfraError, match=r"ended at once.*\n.*no such database"):
        server.start()
    assert not server.is_running()


def test_a_process_with_a_recycled_id_is_not_stopped(tmp_path: Path) -> None:
    server = Server("rest", tmp_path, 1, "CATALOG_PORT", ["sleep", "60"], lambda: True, {})
    assert server.start()
    try:
        assert not server.start()
        identity = (tmp_path / "rest.pid").read_text(encoding="utf-8")
        (tmp_path / "rest.pid").write_text(
            identity.replace('"started": "', '"started": "x'), encoding="utf-8"
        )
        assert not server.is_running()
        (tmp_path / "rest.pid").write_text(identity, encoding="utf-8")
    finally:
        assert server.stop()
    assert not server.is_running()


def test_the_containers_are_the_same_lake() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    default = lake(ROOT / ".infra", {})
    ports = {name: service["ports"] for name, service in services.items()}
    assert ports == {
        "postgres": [f"{HOST}:{default.database_port}:5432"],
        "s3": [f"{HOST}:{default.s3_port}:8333"],
        "rest": [f"{HOST}:{default.catalog_port}:8181"],
    }
    lines = (ROOT / "infra" / "compose.env").read_text(encoding="utf-8").splitlines()
    variables = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    assert variables.keys() == default.variables.keys()
    for name in ("CATALOG_URI", "DATABASE_URL", "S3_ENDPOINT"):
        assert variables[name] == default.variables[name]
    rest: dict[str, Any] = services["rest"]["environment"]
    assert rest["CATALOG_WAREHOUSE"] == WAREHOUSE
    assert f"-bucket={BUCKET}" in services["s3"]["command"]
    assert services["postgres"]["environment"]["POSTGRES_PASSWORD"] == variables["DATABASE_PASSWORD"]
    assert rest["AWS_SECRET_ACCESS_KEY"] == variables["S3_SECRET_KEY"]
