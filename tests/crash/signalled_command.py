"""Run a command whose process gets a signal at a stage: ``signalled_command.py STAGE SIGNAL ARGUMENT...``.

The signal arrives while DuckDB runs a statement, right after a data file or a manifest is written, or after
the commit.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from icemigrate.cli import main
from icemigrate.metadata_engine.file_stores import TableFiles
from icemigrate.metadata_engine.sql_table_store import SqlTableStore
from icemigrate.table_data.load_database import LoadDatabase


def _strike(number: int) -> None:
    print("struck", file=sys.stderr, flush=True)
    os.kill(os.getpid(), number)


def _during_statement(number: int) -> None:
    run = LoadDatabase.run

    def run_and_strike(db: LoadDatabase, sql: str) -> None:
        is_over = threading.Event()

        def strike() -> None:
            # A statement that ends at once is struck right after its end.
            while db.share() is None and not is_over.wait(0.001):
                pass
            _strike(number)

        LoadDatabase.run = run  # type: ignore[method-assign]
        striker = threading.Thread(target=strike)
        striker.start()
        try:
            run(db, sql)
        finally:
            is_over.set()
            striker.join()

    LoadDatabase.run = run_and_strike  # type: ignore[method-assign]


def _after(owner: Any, name: str, is_due: Callable[..., bool], number: int) -> None:
    """Strike after the first call of a method for which it is due."""
    call = getattr(owner, name)
    struck: list[bool] = []

    def called(self: Any, *args: Any) -> Any:
        found = call(self, *args)
        if not struck and is_due(*args):
            struck.append(True)
            _strike(number)
        return found

    setattr(owner, name, called)


def _prepare(stage: str, number: int) -> None:
    if stage == "statement":
        _during_statement(number)
    elif stage == "data file":
        _after(TableFiles, "write_file", lambda *_args: True, number)
    elif stage == "manifest":
        _after(TableFiles, "write", lambda location, _content: location.endswith(".avro"), number)
    else:
        assert stage == "commit"
        _after(SqlTableStore, "commit", lambda *_args: True, number)


if __name__ == "__main__":
    _prepare(sys.argv[1], int(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
