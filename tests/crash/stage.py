"""A migration that changes, renames, drops and makes tables with rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from icemigrate.frozen import Frozen, replace
from tests.crash.world import World

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

MAKE = """
description: Make them
tables:
  - name: shop.trades
    columns:
      - {name: id, type: long}
      - {name: symbol, type: string}
      - {name: bid, type: int}
      - {name: ask, type: int}
      - {name: qualifiers, type: string}
  - {name: shop.quotes, columns: [{name: id, type: long}, {name: size, type: int}]}
  - {name: shop.old, columns: [{name: id, type: long}, {name: text, type: string}]}
"""
# They need statements, one metadata commit (`uuid`), a swap, and what no commit of a table can do.
CHANGE = """
description: Change all of them
allow: [destructive]
tables:
  - name: shop.trades
    renames: {bid: ask, ask: bid}
    drop_columns: [qualifiers]
    columns: [{name: venue, type: string, after: symbol}, {name: trace, type: uuid}]
    partition_by: ["bucket(4, symbol) as symbol_bucket"]
    properties: {owner.team: markets}
  - name: shop.ticks
    renamed_from: shop.quotes
    columns: [{name: size, type: long}, {name: place, type: string}]
  - {name: shop.old, drop: true}
  - {name: shop.fresh, columns: [{name: id, type: long}]}
"""


class Stage(Frozen):
    """A world in which a migration of three tables with rows is pending, and may be taken back once applied.

    :param pending: the catalog while it is pending; ``applied`` when it is done.
    :param before: the facts of the one, ``after`` those of the other.
    """

    world: World
    pending: Sequence[tuple[Any, ...]]
    applied: Sequence[tuple[Any, ...]]
    before: dict[str, Any]
    after: dict[str, Any]

    def copied(self, folder: Path, publish: str) -> Stage:
        """The same in a world of its own, the migration pending."""
        other = replace(self, world=self.world.copied(folder, publish))
        other.world.restore(self.pending)
        return other

    def is_undone(self) -> None:
        """Everything is as before the migration, which is held."""
        assert self.world.facts(trash=False) == self.before
        assert self.world.standings() == {"0001": "applied", "0002": "held"}

    def is_done(self) -> None:
        """Everything is as the migration leaves it."""
        assert self.world.facts() == self.after
        assert self.world.standings() == {"0001": "applied", "0002": "applied"}

    @property
    def is_at_rest(self) -> bool:
        """Nobody holds the lock, and nothing is half done."""
        history = self.world.history()
        return history.lock is None and not history.intents


def set_up(world: World) -> Stage:
    """Make the tables and the migration in an empty world."""
    lease, world.environment = world.environment, {}  # nothing dies here, and a new JVM is slow
    world.write("0001_make", MAKE)
    world.done("apply")
    reader = world.reader()
    append(reader, "trades", id=[1, 2], symbol=["A", "B"], bid=[10, 20], ask=[11, 21], qualifiers=["x", "y"])
    append(reader, "quotes", id=[1, 2, 3], size=[7, 8, 9])
    append(reader, "old", id=[1], text=["keep me"])
    reader.close()
    world.write("0002_change", CHANGE)
    pending, before = world.rows(), world.facts()
    world.done("apply")
    world.environment = lease
    return Stage(world, pending, world.rows(), before, world.facts())


def append(reader: SqlCatalog, table: str, **columns: list[Any]) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]

    loaded = reader.load_table(("shop", table))
    loaded.append(pa.table(columns, schema=loaded.schema().as_arrow()))


Copies: TypeAlias = Callable[[str], Stage]
"""Makes copies of the stage, by their name."""
