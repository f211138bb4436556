"""What the history records of each version: its state, and the intent of a run that has not ended.

An intent is written before the first change of a migration and removed when the migration is applied or
undone.  One that exists while no process holds the lock means that the migration was interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType, to_builtins
from msgspec.json import decode

from icemigrate.files.read.list_sources import ListValues
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, field
from icemigrate.planning.plan import Direction

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
RESTORE_HINT = (
    "only icemigrate may change the properties of the history: restore their values from an earlier metadata "
    "file of the table"
)
"""The hint of every message about a damaged property of the history."""
_LONGEST_MS = 10**15


class VersionState(str, Enum):
    """The state of a version; the value is what JSON and the history contain.

    The history records only ``APPLIED``, ``ROLLED_BACK`` and ``INTERRUPTED``.  The others follow from the
    migration files, the intents and the lock (:mod:`icemigrate.history.migration_states`).
    """

    PENDING = "pending"
    APPLIED = "applied"
    ROLLED_BACK = "held"
    """Applied and undone: `apply` skips it until `--redo`."""
    ABANDONED = "abandoned"
    """Applied and undone, and never applied again here (`repair --abandon`)."""
    INTERRUPTED = "interrupted"
    """A process began it and ended before it was complete."""
    RUNNING = "running"
    """A process that holds the lock runs it."""
    EDITED = "edited"
    """Applied, but its file has changed since."""
    MISSING = "missing"
    """Applied, but its file is gone."""
    LATE = "late"
    """Pending, out of order, and refused."""
    UNRECORDED = "unrecorded"
    """A squash of versions that are all applied."""
    PARTIAL = "partial"
    """A squash of versions of which only some are applied."""

    def __str__(self) -> str:
        return self.value

    @property
    def text(self) -> str:
        """The state as messages name it."""
        return "rolled back" if self is VersionState.ROLLED_BACK else self.value


class AppliedVersion(Frozen):
    """A version that was applied here at least once, or began.

    :param applied_at: with time zone; of the last time that it was applied.
    :param fingerprint: digest of the file's bytes, which saves parsing it again; empty in older histories.
    :param since: the first version that a squash replaces; empty for any other migration.
    :param remaining_effects: the effects that a rollback could not undo, as phrases; a version that is
        applied again keeps them, because its next rollback leaves them too.
    :param lists: the values of lists for which it is applied, where they are not in the project file.
    :param abandoned: ``True`` where `repair --abandon` excluded the rolled-back version from `--redo`.  Its
        state stays ``ROLLED_BACK``, so that older releases can read the history.
    """

    version: Version
    checksum: str
    description: str
    applied_at: datetime
    applied_by: str = ""
    duration_ms: int = 0
    state: VersionState = field(default=VersionState.APPLIED, name="standing")
    fingerprint: str = ""
    since: str = ""
    remaining_effects: tuple[str, ...] = field(default=(), name="stays")
    abandoned: bool | UnsetType = UNSET
    lists: tuple[ListValues, ...] | UnsetType = UNSET

    @property
    def list_values(self) -> tuple[ListValues, ...]:
        """The recorded values of lists."""
        return () if isinstance(self.lists, UnsetType) else self.lists

    @property
    def attribution(self) -> str:
        """The user and the time, in UTC: ``by deploy at 2026-11-27 20:37:00 UTC``."""
        user = f"by {self.applied_by} " if self.applied_by else ""
        return f"{user}at {self.applied_at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"

    @property
    def awaits_redo(self) -> bool:
        """Whether it is rolled back, and `--redo` may apply it again."""
        return self.state is VersionState.ROLLED_BACK and not self.abandoned


class Intent(Frozen):
    """A migration that began.

    The states of its tables before it are in its undo record.

    :param run: id of the lock's acquisition.
    :param tables: declared names of its tables, before and after it, sorted.
    :param metadata: location of each table's metadata file at the start, by its name in the catalog.
    :param was: the state of the version before; ``None`` where no part of it was ever applied.
    :param is_redo: whether it applies a rolled-back version again.
    :param choices: the options of the command line that decide what is done, as written; a run that continues
        this one keeps them.
    :param undoes_unfinished: whether it is the rollback of a run that has not ended; the declared state does
        not include the version then.
    """

    version: Version
    direction: Direction
    started_at: datetime
    user: str
    host: str
    run: str
    tables: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    was: AppliedVersion | None = None
    is_redo: bool = field(default=False, name="redo")
    choices: tuple[str, ...] = ()
    undoes_unfinished: bool = False

    @property
    def extends(self) -> bool:
        """Whether it applies a version, which is applied, to new values of its lists."""
        was = self.was
        is_apply = self.direction is Direction.APPLY
        return is_apply and was is not None and was.state is VersionState.APPLIED

    @property
    def command(self) -> str:
        """The command that began it, as a person types it."""
        redo = ("--redo", self.version.text) if self.is_redo else ()
        return " ".join((self.direction.value, *redo, *self.choices))


def encode_versions(versions: Iterable[AppliedVersion]) -> str:
    """Encode the versions of a history as JSON text."""
    return f"[{','.join(map(_encode_version, versions))}]"


@lru_cache(8192)
def _encode_version(version: AppliedVersion) -> str:
    # Each write of a history has all versions, and most of them are as before.
    return encode_recorded(version)


def encode_recorded(value: Intent | AppliedVersion) -> str:
    """Encode what the history records as JSON text."""
    # Older releases on Python 3.10 cannot read times with a `Z`, as msgspec writes them.
    values = to_builtins(value, builtin_types=(datetime,), enc_hook=str)
    return json.dumps(values, default=datetime.isoformat, ensure_ascii=False, separators=(",", ":"))


def decode_recorded(text: str, kind: type[T]) -> T:
    """Decode what :func:`encode_recorded` wrote, in this or an earlier release.

    :raises ValueError: the text is no JSON, has another shape, or a value is out of range; the message says
        where.
    """
    found = decode(text, type=kind, dec_hook=_parse)
    for value in found if isinstance(found, tuple) else (found,):
        if isinstance(value, Intent):
            check_time(f"start of {value.version}", value.started_at)
            value = value.was
        if isinstance(value, AppliedVersion):
            check_time(f"time of {value.version}", value.applied_at)
            check_duration_ms(f"duration of {value.version}", value.duration_ms)
    return found


def check_time(name: str, at: datetime) -> None:
    """Check that a time has a time zone and can be shown in UTC.

    :raises ValueError: it cannot; the message begins with the name.
    """
    if at.tzinfo is None:
        raise ValueError(f"{name}: {at.isoformat()} has no time zone")
    try:
        at.astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError(f"{name}: {at.isoformat()} is out of range") from error


def check_duration_ms(name: str, duration_ms: int) -> None:
    """Check that a number of milliseconds can be the duration of a run.

    A clock that is set back during a run makes it negative.

    :raises ValueError: it cannot; the message begins with the name.
    """
    if abs(duration_ms) > _LONGEST_MS:
        raise ValueError(f"{name}: the number of milliseconds is out of range")


def _parse(kind: Any, text: Any) -> Any:
    return kind.parse(text)


def blocking_intent(
    intents: Iterable[Intent], version: Version | None, tables: Iterable[str]
) -> Intent | None:
    """The interrupted migration that another one of the same tables has to wait for."""
    touched = set(tables)
    others = (i for i in intents if i.version != version)
    return next((i for i in others if touched.intersection(i.tables)), None)
