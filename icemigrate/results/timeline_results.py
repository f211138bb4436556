"""Result of ``table history``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from icemigrate.frozen import Frozen
from icemigrate.results.document_types import Count, one_of

TimelineKind: TypeAlias = Annotated[
    str,
    one_of("format", "schema", "spec", "sort-order", "snapshot", "branch", "tag"),
]


class TimelineEntry(Frozen):
    """One event of the table history.

    :param at: its time, in UTC.
    :param kind: what was added or changed.
    :param text: the event in words.
    :param snapshot_id: of a snapshot, a branch or a tag; ``None`` for others.
    :param version: the migration that a tag or a snapshot of the same commit names; ``None`` without one.
    :param is_earlier: whether it is the time of the oldest known metadata file, and the event was earlier.
    """

    at: datetime
    kind: TimelineKind
    text: str
    snapshot_id: int | None = None
    version: str | None = None
    is_earlier: bool = False


class TimelineResult(Frozen):
    """The table history.

    :param table: its name in migration files.
    :param name: its name in the catalog.
    :param entries: the newest ones that ``--limit`` allows, the oldest first.
    :param total: number of all entries.
    :param unreadable_files: number of metadata files in the log that are gone or cannot be read.
    """

    table: str
    name: str
    entries: tuple[TimelineEntry, ...] = ()
    total: Count = 0
    unreadable_files: Count = 0
