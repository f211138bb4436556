"""A Postgres of one's own, from Debian's package ``postgresql`` (or any other that is installed)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.processes import as_user, free_ports, run_to_end, running

_USER = "icemigrate"
_SECONDS = 60.0
# It keeps nothing that anyone needs after a crash.
_QUICK = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


@dataclass(frozen=True, slots=True)
class Postgres:
    """Where it listens; the user may do everything."""

    port: int
    user: str
    password: str
    database: str = "postgres"


@contextmanager
def postgres(password: str) -> Iterator[Postgres]:
    """A new and empty Postgres on a free port of 127.0.0.1, which asks for the password."""
    binaries = _binaries()
    # It refuses to run as root, and the folder of the user that it then is must be reachable for it.
    owner = "postgres" if os.geteuid() == 0 else None
    lead = as_user(owner) if owner else []
    folder = Path(tempfile.mkdtemp(prefix="icemigrate-postgres-"))
    try:
        secret = folder / "password"
        secret.write_text(password, encoding="utf-8")
        if owner:
            for path in (folder, secret):
                shutil.chown(path, owner)
        data = folder / "data"
        initialise = [binaries / "initdb", "-D", data, "-U", _USER, f"--pwfile={secret}"]
        initialise += ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]
        run_to_end([*lead, *map(str, initialise)], folder, _SECONDS)
        (port,) = free_ports(1)
        found = Postgres(port, _USER, password)
        server: list[str | Path] = [binaries / "postgres", "-D", data, "-k", folder, "-p", str(port)]
        server += ["-c", "listen_addresses=127.0.0.1", *_QUICK]
        ready = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-d", "postgres"]

        def answers() -> bool:
            return subprocess.run(ready, timeout=10, check=False).returncode == 0

        # SIGINT is its "fast" way: it does not wait for clients to go.
        with running([*lead, *server], folder / "log", answers, folder=folder, stop_signal=signal.SIGINT):
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    """The folder of ``initdb``: Debian keeps it off ``PATH``, one for each version."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: float(p.parts[-3]))
    assert folders, "Postgres is not installed: `sudo apt-get install postgresql`"
    return folders[-1].parent
