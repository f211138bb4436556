"""What is written before the first change of a migration: that it begins, and how its tables are.

It stays until the migration is applied, held or wholly undone.  So one that is found while nobody holds the
lock means that the migration was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from icemigrate.declare.version import Version
from icemigrate.frozen import Frozen, field
from icemigrate.history.applied import Applied, applied_from_json, applied_to_json
from icemigrate.plan import Direction


class Intent(Frozen):
    """A migration that was begun.

    The tables' states before it stand in its undo record.

    :param run: of the lock under which it was begun.
    :param tables: declared names of its tables, before and after it, sorted.
    :param metadata: where the metadata file of each table was, by its name in the catalog.
    :param was: where the version stood before; ``None`` where nothing of it was ever applied.
    :param is_redo: whether it applies a version again that was rolled back.
    :param choices: the options of the command line that decide what is done, as they are written there; a run
        that continues this one keeps them.
    """

    version: Version
    direction: Direction
    started_at: datetime
    user: str
    host: str
    run: str
    tables: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    was: Applied | None = None
    is_redo: bool = False
    choices: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that began it, as a person types it."""
        redo = ("--redo", self.version.text) if self.is_redo else ()
        return " ".join((self.direction.value, *redo, *self.choices))


def intent_to_json(intent: Intent) -> dict[str, Any]:
    """The intent as JSON values."""
    return {
        "version": intent.version.text,
        "direction": intent.direction.value,
        "started_at": intent.started_at.isoformat(),
        "user": intent.user,
        "host": intent.host,
        "run": intent.run,
        "tables": list(intent.tables),
        "metadata": dict(intent.metadata),
        "was": None if intent.was is None else applied_to_json(intent.was),
        # An older icemigrate passes over what follows.
        **({"redo": True} if intent.is_redo else {}),
        **({"choices": list(intent.choices)} if intent.choices else {}),
    }


def intent_from_json(json_: Mapping[str, Any]) -> Intent:
    """Read what :func:`intent_to_json` wrote.

    :raises KeyError, TypeError, ValueError: it is not that.
    """
    return Intent(
        version=Version.parse(json_["version"]),
        direction=Direction(json_["direction"]),
        started_at=datetime.fromisoformat(json_["started_at"]),
        user=json_["user"],
        host=json_["host"],
        run=json_["run"],
        tables=tuple(json_["tables"]),
        metadata=dict(json_["metadata"]),
        was=None if json_["was"] is None else applied_from_json(json_["was"]),
        is_redo=bool(json_.get("redo", False)),
        choices=tuple(map(str, json_.get("choices", ()))),
    )


def waits_for(intents: Iterable[Intent], version: Version | None, tables: Iterable[str]) -> Intent | None:
    """The interrupted migration that another one of the same tables has to wait for."""
    touched = set(tables)
    others = (i for i in intents if i.version != version)
    return next((i for i in others if touched.intersection(i.tables)), None)
