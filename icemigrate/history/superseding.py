"""Records that take the place of earlier ones: the rows stay, what planning reads is changed; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from icemigrate.frozen import replace
from icemigrate.history.applied import Applied
from icemigrate.history.properties import History
from icemigrate.history.record import Record
from icemigrate.history.undo_record import UndoRecord, pack_undo
from icemigrate.model.sides import State


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


def baselined(
    history: History, records: Sequence[Record], undo: Mapping[str, UndoRecord], state: State
) -> History:
    """The history once versions count as applied that nobody applied here.

    :param undo: what each is undone from, by version.
    :param state: as declared after the last of them.
    """
    new = []
    for record in records:
        assert record.version is not None
        new.append(
            Applied(
                version=record.version,
                checksum=record.checksum,
                description=record.description,
                applied_at=record.finished_at or record.started_at,
                applied_by=record.user,
                fingerprint=record.fingerprint,
                since=record.since,
            )
        )
    versions = {a.version for a in new}
    return replace(
        history,
        applied=(*(a for a in history.applied if a.version not in versions), *new),
        undo={**history.undo, **{version: pack_undo(one) for version, one in undo.items()}},
        state=state,
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
