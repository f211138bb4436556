"""The settings of the lake: addresses, credentials and the folder of its data."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BUCKET = "lake"
WAREHOUSE = f"s3://{BUCKET}/warehouse"
CATALOG = "lake"
"""The catalog's name in the rows of its database: REST server and JDBC clients must use the same one."""
DATABASE = "catalog"
DATABASE_USER = "icemigrate"
REGION = "us-east-1"
HOST = "127.0.0.1"

_SECRETS = ("DATABASE_PASSWORD", "S3_ACCESS_KEY", "S3_SECRET_KEY")
_PORTS = {"CATALOG_PORT": 8181, "S3_PORT": 8333, "DATABASE_PORT": 55432}


class InfraError(Exception):
    """The lake cannot be started or stopped; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Lake:
    """Addresses and credentials of the three servers.

    :param folder: holds the data, logs and process ids of all servers, and ``env``.
    """

    folder: Path
    catalog_port: int
    s3_port: int
    database_port: int
    password: str
    access_key: str
    secret_key: str

    @property
    def catalog(self) -> str:
        """The address of the REST catalog."""
        return f"http://{HOST}:{self.catalog_port}"

    @property
    def s3(self) -> str:
        """The address of the S3 server."""
        return f"http://{HOST}:{self.s3_port}"

    @property
    def database(self) -> str:
        """The address of the catalog's database, without the password."""
        return f"postgresql://{HOST}:{self.database_port}/{DATABASE}"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that `infra/icemigrate.yaml` refers to."""
        return {
            "CATALOG_URI": self.catalog,
            "DATABASE_URL": self.database,
            "DATABASE_PASSWORD": self.password,
            "S3_ENDPOINT": self.s3,
            "S3_ACCESS_KEY": self.access_key,
            "S3_SECRET_KEY": self.secret_key,
        }

    @property
    def env_file(self) -> Path:
        """A file of `export` lines with :attr:`variables`, for a shell; only its owner can read it."""
        return self.folder / "env"

    def save(self) -> None:
        """Write :attr:`env_file`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"export {name}={value}\n" for name, value in self.variables.items())
        descriptor = os.open(self.env_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(lines)


def lake(folder: Path, environ: Mapping[str, str]) -> Lake:
    """The lake in a folder: its saved credentials, or new ones.

    :param environ: may set the ports `CATALOG_PORT`, `S3_PORT` and `DATABASE_PORT`.
    :raises InfraError: a port is not a number from 1 to 65535.
    """
    saved = _saved(folder / "env")
    password, access_key, secret_key = (saved.get(name) or secrets.token_hex(16) for name in _SECRETS)
    ports = [_port(name, environ.get(name, ""), default) for name, default in _PORTS.items()]
    catalog, s3, database = ports
    return Lake(folder, catalog, s3, database, password, access_key, secret_key)


def _saved(env_file: Path) -> dict[str, str]:
    if not env_file.exists():
        return {}
    lines = env_file.read_text(encoding="utf-8").splitlines()
    return dict(line.removeprefix("export ").split("=", 1) for line in lines if "=" in line)


def _port(name: str, text: str, default: int) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise InfraError(f"{name} must be a port from 1 to 65535, not {text!r}")
    return int(text)
