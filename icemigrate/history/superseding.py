"""Records that supersede earlier ones: rows stay, and the properties for planning change; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import UNSET

from icemigrate.files.version_number import Version
from icemigrate.frozen import replace
from icemigrate.history.history_properties import History
from icemigrate.history.history_record import HistoryRecord
from icemigrate.history.recorded_versions import AppliedVersion
from icemigrate.history.undo_record_codec import UndoRecord
from icemigrate.iceberg.declared_sides import DeclaredState


def with_repair(history: History, record: HistoryRecord) -> History:
    """The history after an applied version's file is accepted as it is.

    The time and the user of its application stay, and so does its undo record.
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


def with_abandoned(history: History, versions: Collection[Version]) -> History:
    """The history after rolled-back versions are excluded from a redo; their undo records stay."""
    return replace(
        history,
        applied=tuple(replace(a, abandoned=True) if a.version in versions else a for a in history.applied),
    )


def with_baselines(
    history: History, records: Sequence[HistoryRecord], undo: Mapping[str, UndoRecord], state: DeclaredState
) -> History:
    """The history after versions are recorded as applied without running.

    :param undo: undo record by version.
    :param state: the declared state after the last of them.
    """
    new = []
    for record in records:
        assert record.version is not None
        new.append(
            AppliedVersion(
                version=record.version,
                checksum=record.checksum,
                description=record.description,
                applied_at=record.finished_at or record.started_at,
                applied_by=record.user,
                fingerprint=record.fingerprint,
                since=record.since,
                lists=record.lists or UNSET,
            )
        )
    versions = {a.version for a in new}
    return replace(
        history.with_undo_records(undo),
        applied=(*(a for a in history.applied if a.version not in versions), *new),
        state=state,
    )


def with_squash(history: History, record: HistoryRecord, versions: Collection[str]) -> History:
    """The history after one squash replaces several applied versions.

    Their undo records are removed: their files are gone, and a part of a squash is not a version.

    :param versions: those that it replaces, and its own version.
    """
    assert record.version is not None
    ended = record.finished_at or record.started_at
    last = max((a.applied_at for a in history.applied if a.version.text in versions), default=ended)
    new = AppliedVersion(
        version=record.version,
        checksum=record.checksum,
        description=record.description,
        # Its position among other versions: they were applied before it or after it.
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
