"""What is worth saying of a plan that was carried out: its own notes, and what came up on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from icemigrate.events import Event, Noted
from icemigrate.model.names import TableName
from icemigrate.plan import RECONCILED, Plan


@dataclass(slots=True)
class Notes:
    """Listens to events, and keeps the notes among them.

    :param pass_on: hears every event too.
    """

    pass_on: Callable[[Event], None]
    _heard: list[str] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Hear of an event."""
        if isinstance(event, Noted):
            self._heard.append(_line(event.version, event.table, event.text))
        self.pass_on(event)

    @property
    def heard(self) -> tuple[str, ...]:
        """Those that were heard."""
        return tuple(self._heard)

    def beside(self, plan: Plan) -> tuple[str, ...]:
        """The plan's notes, then those that were heard, each with its version and table."""
        tables = ((m.version, t) for m in plan.migrations for t in m.tables)
        planned = [_line(version, table.name, note) for version, table in tables for note in table.notes]
        return (*planned, *self._heard)


def _line(version: str, table: TableName | None, text: str) -> str:
    # What leads tables back is no version that people know.
    of = (None if version == RECONCILED else version, table)
    return ": ".join([*(str(part) for part in of if part), text])
