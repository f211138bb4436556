"""Start or stop the lake: ``python -m infra up`` and ``python -m infra down``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from icemigrate.errors import IcemigrateError
from infra import object_store, postgres, rest_catalog
from infra.lake import DATABASE, DATABASE_USER, HOST, InfraError, Lake, lake

PROJECT = Path(__file__).parent
FOLDER = PROJECT.parent / ".infra"


def up(one: Lake) -> None:
    """Start the servers that do not run.

    :raises InfraError: a server cannot be started.
    """
    one.save()
    for module in (postgres, object_store, rest_catalog):
        server = module.server(one)
        started = server.start()
        print(
            f"{server.name:<10} {HOST}:{server.port}  {'started' if started else 'runs already'}", flush=True
        )
        if module is postgres:
            postgres.make_database(one)


def down(one: Lake) -> None:
    """Stop the servers and delete all data of the lake.

    :raises InfraError: Postgres or SeaweedFS is not installed any more.
    """
    if not one.folder.exists():
        print("there is no lake: nothing to stop")
        return
    for module in (rest_catalog, object_store, postgres):
        if (one.folder / module.FOLDER).exists():
            server = module.server(one)
            print(f"{server.name:<10} {'stopped' if server.stop() else 'does not run'}", flush=True)
    shutil.rmtree(one.folder)
    print(f"deleted {one.folder}")


def apply_migrations(one: Lake) -> int:
    """Apply `migrations/`, also what was rolled back; the exit code of `icemigrate apply`."""
    command = [sys.executable, "-m", "icemigrate.cli", "--project", str(PROJECT)]
    variables = {**os.environ, **one.variables}
    status = subprocess.run(
        [*command, "status", "--format", "json"], env=variables, check=False, stdout=subprocess.PIPE
    )
    if status.returncode:
        return status.returncode
    states = {migration["state"] for migration in json.loads(status.stdout)["migrations"]}
    for choice in (["--redo", "all"], []) if "held" in states else ([],):
        applied = subprocess.run([*command, "apply", "--auto-approve", *choice], env=variables, check=False)
        if applied.returncode:
            return applied.returncode
    return 0


def how_to_look(one: Lake) -> str:
    """Commands that show what is in the lake, and the one that removes it."""
    database = f"-h {HOST} -p {one.database_port} -U {DATABASE_USER} {DATABASE}"
    return f"""
The lake is ready. Look at it:
  curl {one.catalog}/v1/namespaces/market_data/tables
  . {one.env_file}
  PGPASSWORD=$DATABASE_PASSWORD psql {database} -c 'SELECT * FROM iceberg_tables'
  .venv/bin/icemigrate --project infra status
  .venv/bin/icemigrate --project infra --env postgres status
Undo the migrations:  .venv/bin/icemigrate --project infra rollback --to 0
Remove the lake:      make destroy-infra"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra", description=__doc__)
    parser.add_argument("action", choices=("up", "down"))
    action = parser.parse_args(arguments).action
    try:
        one = lake(FOLDER, os.environ)
        if action == "down":
            down(one)
            return 0
        up(one)
    except (InfraError, IcemigrateError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    code = apply_migrations(one)
    if code == 0:
        print(how_to_look(one))
    return code


if __name__ == "__main__":
    sys.exit(main())
