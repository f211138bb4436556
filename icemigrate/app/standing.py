"""The history held against the files: what is applied, what is pending, and what does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icemigrate.app.folding import title
from icemigrate.declare.migration import AnyFile, MigrationFile
from icemigrate.diagnostics import Diagnostic
from icemigrate.history.head import LockInfo
from icemigrate.history.intent import Intent
from icemigrate.history.properties import Applied
from icemigrate.plan import Direction
from icemigrate.results import MigrationStatus


@dataclass(frozen=True, slots=True)
class Standing:
    """Where every migration stands.

    :param pending: files that are to be applied, in order.  An interrupted one is among them: to apply it
        again finishes it, since what is done is found done.
    :param mistakes: applied files that were edited or are missing, and files that came late.
    """

    migrations: tuple[MigrationStatus, ...]
    pending: tuple[MigrationFile, ...]
    mistakes: tuple[Diagnostic, ...]


def standing(
    files: Sequence[AnyFile],
    applied: Iterable[Applied],
    intents: Iterable[Intent] = (),
    lock: LockInfo | None = None,
) -> Standing:
    """Compare files with what the history says of them.

    :param intents: what was begun and has no outcome; one of an undo is left for ``rollback`` to finish.
    :param lock: under which something may be going on just now.
    """
    known = {a.version.number: a for a in applied}
    begun = {i.version.number: i for i in intents}
    last = max((n for n, a in known.items() if a.standing == "applied"), default=-1)
    rows: dict[int, MigrationStatus] = {}
    pending: list[MigrationFile] = []
    mistakes: list[Diagnostic] = []
    for file in files:
        record = known.pop(file.version.number, None)
        state = _state(file, record, last)
        intent = begun.get(file.version.number)
        rows[file.version.number] = MigrationStatus(
            file.version.text,
            title(file),
            _shown(state, intent, lock),
            record.applied_at if record else None,
        )
        if intent is not None and intent.direction is Direction.ROLLBACK:
            continue
        if state == "interrupted" and record is not None and record.checksum != file.checksum:
            mistakes.append(_edited_halfway(file))
        elif state in ("pending", "interrupted"):
            assert isinstance(file, MigrationFile), "only applied files are left unread"
            pending.append(file)
        elif state == "edited":
            assert record is not None
            mistakes.append(_edited(file, record))
        elif state == "late":
            mistakes.append(_late(file, files, last))
    for number, record in known.items():
        state = "missing" if record.standing == "applied" else record.standing
        rows[number] = MigrationStatus(record.version.text, record.description, state, record.applied_at)
        if state == "missing":
            mistakes.append(_missing(record))
    return Standing(tuple(rows[n] for n in sorted(rows)), tuple(pending), tuple(mistakes))


def _state(file: AnyFile, record: Applied | None, last: int) -> str:
    if record is None:
        return "late" if file.version.number < last else "pending"
    if record.standing == "applied" and record.checksum != file.checksum:
        return "edited"
    return record.standing


def _shown(state: str, intent: Intent | None, lock: LockInfo | None) -> str:
    is_on = intent is not None and lock is not None and intent.run == lock.run
    return "running" if state == "interrupted" and is_on else state


def _edited(file: AnyFile, record: Applied) -> Diagnostic:
    return Diagnostic(
        "edited-file",
        f"{file.version} is applied, and its file says something else now: "
        f"checksum {record.checksum} was applied, the file has {file.checksum}",
        file.place,
        "bring the file back as it was, and write what is new into a new migration",
    )


def _edited_halfway(file: AnyFile) -> Diagnostic:
    return Diagnostic(
        "edited-file",
        f"{file.version} was interrupted, and its file says something else than what was begun",
        file.place,
        "bring the file back as it was and `apply`, or `rollback` what was done before you mend it",
    )


def _late(file: AnyFile, files: Sequence[AnyFile], last: int) -> Diagnostic:
    newest = max(f.version for f in files)
    number = max(newest.number, last) + 1
    name = f"{str(number).zfill(len(newest.text))}_{file.name}.yaml"
    return Diagnostic(
        "late-file",
        f"{file.version} is not applied, though a later migration is: its file came late",
        file.place,
        f"renumber it: `{name}`",
    )


def _missing(record: Applied) -> Diagnostic:
    return Diagnostic(
        "missing-file",
        f"{record.version} ({record.description}) is applied, and there is no file of it",
        None,
        "bring the file back from version control",
    )
