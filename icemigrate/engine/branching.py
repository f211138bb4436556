"""Rows written on a branch of their own and published from there; all again where others were faster."""

from __future__ import annotations

from collections.abc import Callable

from icemigrate.data.base import PAUSE, TRIES
from icemigrate.data.publication import holds
from icemigrate.engine.port import Engine
from icemigrate.errors import EngineError
from icemigrate.model.names import TableName
from icemigrate.model.table import Table


def until_published(name: TableName, attempt: Callable[[int], bool], hint: str = "") -> None:
    """Write rows until they are published.

    :param attempt: given its number from 1 on; whether the rows are out, or others wrote meanwhile.
    :param hint: what else helps where others write all the while.
    :raises EngineError: they did.
    """
    if not any(attempt(number) for number in range(1, TRIES + 1)):
        raise all_the_while(name, hint)


def all_the_while(name: TableName, hint: str = "") -> EngineError:
    """Others wrote to a table so often that its rows could not be published.

    :param hint: what else helps.
    """
    return EngineError(
        f"others wrote to table `{name}` all the while: its rows were written {TRIES} times and could "
        "not be published",
        f"{PAUSE}, and run it again{hint and f'; {hint}'}",
    )


def publish(engine: Engine, name: TableName, text: str, branch: str, base: int | None) -> bool:
    """Make main what a branch is; whether it is, since it is not where others have moved main.

    :param text: the statement that does it.
    :param base: the snapshot of main from which the branch was made.
    :raises EngineError: it failed, and nobody wrote meanwhile.
    """
    try:
        engine.sql(text)
    except EngineError:
        table = require(engine, name)
        metadata, own = engine.metadata_json(name), table.refs.get(branch)
        if own is not None and metadata is not None and holds(metadata, own.snapshot_id):
            return True  # reported as failed, and done; others may have written behind it by now
        if table.snapshot is not None and table.snapshot.id == base:
            raise
        return False
    return True


def require(engine: Engine, name: TableName) -> Table:
    """The table as it is now.

    :raises EngineError: it is gone.
    """
    table = engine.table(name)
    if table is None:
        raise EngineError(f"table `{name}` is not there any more")
    return table
