"""Records that take the place of earlier ones: the rows stay, what planning reads is changed; pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from icemigrate.history.applied import Applied
from icemigrate.history.properties import History
from icemigrate.history.record import Record


def repaired(history: History, record: Record) -> History:
    """The history once an applied version's file counts as what was applied.

    When and by whom it was applied stays, and so does what it is undone from.
    """
    assert record.version is not None
    return replace(
        history,
        applied=tuple(
            replace(
                a,
                checksum=record.checksum,
                description=record.description,
                fingerprint=record.fingerprint,
            )
            if a.version == record.version
            else a
            for a in history.applied
        ),
    )


def squashed(history: History, record: Record, versions: Collection[str]) -> History:
    """The history once one file stands for several that are applied.

    What they are undone from goes: their files are gone, and half of a squash is no version.

    :param versions: those that it stands for, among them the one whose number it has.
    """
    assert record.version is not None
    ended = record.finished_at or record.started_at
    last = max((a.applied_at for a in history.applied if a.version.text in versions), default=ended)
    new = Applied(
        version=record.version,
        checksum=record.checksum,
        description=record.description,
        # Where it stands among the others: they were applied before it or after it.
        applied_at=last,
        applied_by=record.user,
        fingerprint=record.fingerprint,
        since=record.since,
    )
    others = tuple(a for a in history.applied if a.version.text not in versions)
    return replace(
        history,
        applied=(*others, new),
        undo={version: packed for version, packed in history.undo.items() if version not in versions},
    )
