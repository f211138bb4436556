"""Postgres, which holds the rows of the catalog; from Debian's package ``postgresql`` or elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from infra.lake import DATABASE, DATABASE_USER, HOST, InfraError, Lake
from infra.processes import Server, as_user, run_to_end

FOLDER = "postgres"
_SECONDS = 60.0


def server(lake: Lake) -> Server:
    """Postgres, with a data folder that is made on the first call.

    :raises InfraError: Postgres is not installed, or the data folder cannot be made.
    """
    programs = find_programs()
    folder = lake.folder / FOLDER
    # Postgres refuses to run as root.
    owner = "postgres" if os.geteuid() == 0 else None
    lead = as_user(owner) if owner else []
    if not (folder / "data" / "PG_VERSION").exists():
        _initialize(programs, folder, lead, owner, lake.password)
    ready = [str(programs / "pg_isready"), "-q", "-h", HOST, "-p", str(lake.database_port), "-d", "postgres"]

    def answers() -> bool:
        return subprocess.run(ready, timeout=10, check=False).returncode == 0

    command: list[str | Path] = [*lead, programs / "postgres", "-D", folder / "data", "-k", folder]
    command += ["-p", str(lake.database_port), "-c", f"listen_addresses={HOST}"]
    return Server(
        "postgres", folder, lake.database_port, "DATABASE_PORT", command, answers, {}, signal.SIGINT
    )


def make_database(lake: Lake) -> None:
    """Make the catalog's database where it does not exist.

    :raises InfraError: Postgres refuses.
    """
    psql = [find_programs() / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", "postgres"]
    query = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"
    environment = {
        **os.environ,
        "PGHOST": HOST,
        "PGPORT": str(lake.database_port),
        "PGUSER": DATABASE_USER,
        "PGPASSWORD": lake.password,
    }

    def run(sql: str) -> str:
        done = subprocess.run(
            [*map(str, psql), "-c", sql], capture_output=True, text=True, timeout=_SECONDS, env=environment
        )
        if done.returncode != 0:
            raise InfraError(f"Postgres refuses `{sql}`: {done.stderr.strip()}")
        return done.stdout.strip()

    if run(query) != "1":
        run(f"CREATE DATABASE {DATABASE}")


def find_programs() -> Path:
    """The folder of `initdb`, which Debian keeps off ``PATH``, one for each version.

    :raises InfraError: Postgres is not installed.
    """
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if not folders:
        raise InfraError("Postgres is not installed: sudo apt-get install postgresql")
    return folders[-1].parent


def _initialize(programs: Path, folder: Path, lead: list[str], owner: str | None, password: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    secret = folder / "password"
    secret.touch(mode=0o600)
    secret.write_text(password, encoding="utf-8")
    if owner:
        for path in (folder, secret):
            shutil.chown(path, owner)
    command: list[str | Path] = [
        *lead,
        programs / "initdb",
        "-D",
        folder / "data",
        "-U",
        DATABASE_USER,
        f"--pwfile={secret}",
    ]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]
    try:
        run_to_end(command, folder, _SECONDS)
    finally:
        secret.unlink()
