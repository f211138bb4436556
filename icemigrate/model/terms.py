"""Terms of partitioning and of orders, as files have them: ``day(ts)``, ``bucket(16, symbol) desc``."""

from __future__ import annotations

from icemigrate.frozen import Frozen
from icemigrate.model.names import Path, format_path
from icemigrate.model.partitioning import IDENTITY, Transform
from icemigrate.model.sorting import ASC, DESC, NULLS_FIRST, default_null_order


def term_text(transform: Transform, source: Path) -> str:
    """A column, or a transform of one."""
    column = format_path(source)
    if transform == IDENTITY:
        return column
    width = "" if transform.width is None else f"{transform.width}, "
    return f"{transform.name}({width}{column})"


class SortTerm(Frozen):
    """One term of an order, by the path of its source; the other words are the specification's."""

    source: Path
    transform: Transform = IDENTITY
    direction: str = ASC
    null_order: str = NULLS_FIRST

    def __str__(self) -> str:
        """As a file has it, without what goes without saying."""
        text = term_text(self.transform, self.source) + (" desc" if self.direction == DESC else "")
        if self.null_order == default_null_order(self.direction):
            return text
        return text + (" nulls first" if self.null_order == NULLS_FIRST else " nulls last")
