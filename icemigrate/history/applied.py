"""Where one version stands in the history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from icemigrate.declare.version import Version
from icemigrate.frozen import Frozen

Standing: TypeAlias = Literal["applied", "held", "interrupted"]


class Applied(Frozen):
    """Where one version stands.

    :param applied_at: with time zone; for a held version, when it was last applied.
    :param standing: ``held`` after a rollback (not pending, waits for ``--redo``); ``interrupted`` when
        neither done nor undone.
    :param fingerprint: of the file's bytes, so that it need not be read again; empty in older histories.
    :param since: of a squash, the first version that it stands for; empty for every other.
    :param stays: of a held version, what the rollback left of what it did, in words.
    """

    version: Version
    checksum: str
    description: str
    applied_at: datetime
    applied_by: str = ""
    duration_ms: int = 0
    standing: Standing = "applied"
    fingerprint: str = ""
    since: str = ""
    stays: tuple[str, ...] = ()


def applied_to_json(applied: Applied) -> dict[str, Any]:
    """Where a version stands, as JSON values."""
    return {
        "version": applied.version.text,
        "checksum": applied.checksum,
        "description": applied.description,
        "applied_at": applied.applied_at.isoformat(),
        "applied_by": applied.applied_by,
        "duration_ms": applied.duration_ms,
        "standing": applied.standing,
        "fingerprint": applied.fingerprint,
        "since": applied.since,
        **({"stays": list(applied.stays)} if applied.stays else {}),
    }


def applied_from_json(json_: Mapping[str, Any]) -> Applied:
    """Read what :func:`applied_to_json` wrote.

    :raises KeyError, TypeError, ValueError: it is not that.
    """
    return Applied(
        version=Version.parse(json_["version"]),
        checksum=json_["checksum"],
        description=json_["description"],
        applied_at=datetime.fromisoformat(json_["applied_at"]),
        applied_by=json_["applied_by"],
        duration_ms=json_["duration_ms"],
        standing=json_["standing"],
        fingerprint=json_.get("fingerprint", ""),
        since=json_.get("since", ""),
        stays=tuple(json_.get("stays", ())),
    )
