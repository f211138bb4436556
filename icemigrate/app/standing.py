"""The history held against the files: what is applied, what is pending, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from icemigrate.app.folding import title
from icemigrate.app.squashes import Found, find
from icemigrate.declare.migration import AnyFile, MigrationFile
from icemigrate.declare.replacing import replaced_by, squash_mistakes
from icemigrate.declare.scaffold import renumbered
from icemigrate.declare.version import Version
from icemigrate.diagnostics import Diagnostic
from icemigrate.frozen import Frozen
from icemigrate.history.head import LockInfo
from icemigrate.history.intent import Intent
from icemigrate.history.properties import Applied
from icemigrate.plan import Direction
from icemigrate.status_results import MigrationStatus


class Standing(Frozen):
    """Where every migration stands.

    :param pending: files that are to be applied, in order.  An interrupted one is among them: to apply it
        again finishes it, since what is done is found done.  So is a late one that may be applied.
    :param mistakes: applied files that were edited or are missing, files that came late and touch what a
        later migration touched, squashes that do not fit.
    :param squashes: files that stand for others which are all applied: they are only recorded.
    :param late: files that came late and are refused.
    """

    migrations: tuple[MigrationStatus, ...]
    pending: tuple[MigrationFile, ...]
    mistakes: tuple[Diagnostic, ...]
    squashes: tuple[Found, ...] = ()
    late: tuple[AnyFile, ...] = ()


Lateness = Callable[[MigrationFile], "str | None"]
"""Why a late file is refused; ``None`` where it may be applied."""


def standing(
    files: Sequence[AnyFile],
    applied: Iterable[Applied],
    intents: Iterable[Intent] = (),
    lock: LockInfo | None = None,
    *,
    lateness: Lateness,
) -> Standing:
    """Compare files with what the history says of them.

    :param intents: what was begun and has no outcome; one of an undo is left for ``rollback`` to finish.
    :param lock: under which something may be going on just now.
    :param lateness: asked about every late file, in order.
    """
    known = {a.version.number: a for a in applied}
    begun = {i.version.number: i for i in intents}
    work = _Work(files, known, begun, lock, lateness, list(squash_mistakes(files)))
    return work.standing()


@dataclass(slots=True)
class _Work:
    """One comparison; ``known`` loses every record whose file is found."""

    files: Sequence[AnyFile]
    known: dict[int, Applied]
    begun: dict[int, Intent]
    lock: LockInfo | None
    lateness: Lateness
    mistakes: list[Diagnostic]
    rows: dict[int, MigrationStatus] = field(default_factory=dict)
    pending: list[MigrationFile] = field(default_factory=list)
    squashes: list[Found] = field(default_factory=list)
    late: list[AnyFile] = field(default_factory=list)

    def standing(self) -> Standing:
        last = max((n for n, a in self.known.items() if a.standing == "applied"), default=-1)
        covered = replaced_by(self.files)
        own = [a for a in self.known.values() if a.since]
        for file in self.files:
            squash = covered.get(file.version.number)
            owner = next((a for a in own if _stands_for(a, file.version)), None)
            found = find(file, self.known)
            if squash is not None or owner is not None:
                self._replaced(file, squash, owner)
            elif found is not None:
                self._squash(found)
            else:
                self._file(file, last)
        for number, record in self.known.items():
            state = "missing" if record.standing == "applied" else record.standing
            self._row(record.version, record.description, state, record)
            if state == "missing" and number not in covered:
                self.mistakes.append(_missing(record))
        return Standing(
            tuple(self.rows[n] for n in sorted(self.rows)),
            tuple(self.pending),
            tuple(self.mistakes),
            tuple(self.squashes),
            tuple(self.late),
        )

    def _replaced(self, file: AnyFile, squash: MigrationFile | None, owner: Applied | None) -> None:
        """A file in the range of a squash; where that was read, what is wrong has been said."""
        if squash is None:
            assert owner is not None
            self.mistakes.append(_left(file, owner))
        elif squash.replaces is not None and squash.replaces.versions:
            listed = {version for version, _ in squash.replaces.versions}
            if file.version not in listed and file.version.number not in self.known:
                self.late.append(file)

    def _squash(self, found: Found) -> None:
        for applied in found.known:
            self.known.pop(applied.version.number)
        state = "partial" if found.mistakes else "unrecorded"
        self._row(found.file.version, title(found.file), state, found.known[-1])
        if found.mistakes:
            self.mistakes.extend(found.mistakes)
        else:
            self.squashes.append(found)

    def _file(self, file: AnyFile, last: int) -> None:
        record = self.known.pop(file.version.number, None)
        intent = self.begun.get(file.version.number)
        state = _state(file, record, last)
        reason = None
        if state == "late":
            assert isinstance(file, MigrationFile), "only applied files are left unread"
            reason = self.lateness(file)
            state = "pending" if reason is None else "late"
        shown = _shown(state, intent, self.lock)
        self._row(file.version, title(file), shown, record)
        if intent is not None and intent.direction is Direction.ROLLBACK:
            return
        if state == "interrupted" and record is not None and record.checksum != file.checksum:
            self.mistakes.append(_edited_halfway(file))
        elif state in ("pending", "interrupted"):
            assert isinstance(file, MigrationFile), "only applied files are left unread"
            self.pending.append(file)
        elif state == "edited":
            assert record is not None
            self.mistakes.append(_edited(file, record))
        elif state == "late":
            assert reason is not None
            self.late.append(file)
            self.mistakes.append(_late(file, self.files, last, reason))

    def _row(self, version: Version, words: str, state: str, record: Applied | None) -> None:
        at = record.applied_at if record else None
        stays = record.stays if record is not None and state == "held" else ()
        self.rows[version.number] = MigrationStatus(version.text, words, state, at, stays)


def _state(file: AnyFile, record: Applied | None, last: int) -> str:
    if record is None:
        return "late" if file.version.number < last else "pending"
    if record.standing == "applied" and record.checksum != file.checksum:
        return "edited"
    return record.standing


def _shown(state: str, intent: Intent | None, lock: LockInfo | None) -> str:
    is_on = intent is not None and lock is not None and intent.run == lock.run
    return "running" if state == "interrupted" and is_on else state


def _stands_for(squash: Applied, version: Version) -> bool:
    """Whether a recorded squash stands for another version."""
    return Version.parse(squash.since) <= version < squash.version


def _edited(file: AnyFile, record: Applied) -> Diagnostic:
    return Diagnostic(
        "edited-file",
        f"{file.version} is applied, and its file says something else now: "
        f"checksum {record.checksum} was applied, the file has {file.checksum}",
        file.place,
        "bring the file back as it was, and write what is new into a new migration; "
        "where both declare the same, `icemigrate repair` accepts it",
    )


def _edited_halfway(file: AnyFile) -> Diagnostic:
    return Diagnostic(
        "edited-file",
        f"{file.version} was interrupted, and its file says something else than what was begun",
        file.place,
        "bring the file back as it was and `apply`, or `rollback` what was done before you mend it",
    )


def _late(file: AnyFile, files: Sequence[AnyFile], last: int, reason: str) -> Diagnostic:
    taken = [*(f.version for f in files), Version(last, str(last))]
    name = renumbered(file.path, taken, datetime.now(timezone.utc))
    return Diagnostic(
        "late-file",
        f"{file.version} is not applied, though a later migration is: its file came late, and {reason}",
        file.place,
        f"`icemigrate rebase {file.version}` renumbers it: `{name}`",
    )


def _left(file: AnyFile, squash: Applied) -> Diagnostic:
    return Diagnostic(
        "replaced-file",
        f"{file.version} is in the range of a squash that is recorded here, "
        f"{squash.since} to {squash.version}",
        file.place,
        "remove the file, if it is one of those that were squashed; "
        f"else it came late: `icemigrate rebase {file.version}` renumbers it",
    )


def _missing(record: Applied) -> Diagnostic:
    return Diagnostic(
        "missing-file",
        f"{record.version} ({record.description}) is applied, and there is no file of it",
        None,
        "bring the file back from version control",
    )
