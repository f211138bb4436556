"""The state of each migration: the history compared with the files, squashed files included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from icemigrate.diagnostics import Diagnostic, has_errors
from icemigrate.files.checksum import short_checksum
from icemigrate.files.read.migration_file import AnyFile, MigrationFile, ReplacesEntry
from icemigrate.files.read.squashed_files import checksums_digest, replaced_by, squash_mistakes
from icemigrate.files.replay.declared_differences import declared_differences
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.version_number import Version
from icemigrate.files.write.scaffold import renumbered_file_name
from icemigrate.frozen import Frozen
from icemigrate.history.declared_state import declared_state_without
from icemigrate.history.head_snapshot import LockInfo
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import AppliedVersion, Intent, VersionState
from icemigrate.iceberg.declared_sides import EMPTY_STATE
from icemigrate.iceberg.undo_record import last_copies_of
from icemigrate.planning.plan import Direction, MigrationPlan, SquashedVersions
from icemigrate.planning.replay import migration_description
from icemigrate.results.status_results import MigrationStatus


class KnownSquash(Frozen):
    """A squash with versions in its range that the history has.

    :param known: the records of the versions in its range, in order.
    :param mistakes: why it is refused; empty where all are applied, so that it is only recorded.
    """

    file: MigrationFile
    known: tuple[AppliedVersion, ...]
    mistakes: tuple[Diagnostic, ...]

    def plan(self) -> MigrationPlan:
        """A plan that records the squash and changes no table."""
        replaces = self.file.replaces
        assert replaces is not None
        assert not self.mistakes, "a squash that is refused has no plan"
        return MigrationPlan(
            version=self.file.version.text,
            description=migration_description(self.file),
            checksum=self.file.checksum,
            fingerprint=self.file.fingerprint,
            squash=SquashedVersions(replaces.first.text, tuple(a.version.text for a in self.known)),
        )


def known_squash(file: AnyFile, known: Mapping[int, AppliedVersion]) -> KnownSquash | None:
    """A squash that is not recorded, with versions in its range that are.

    :param known: the history's records by number.
    :returns: ``None`` for every other file, and for a squash that is recorded or that can run.
    """
    if not isinstance(file, MigrationFile) or file.replaces is None:
        return None
    replaces, own = file.replaces, known.get(file.version.number)
    if own is not None and (own.since or own.checksum == file.checksum):
        return None
    there = [known[n] for n in sorted(known) if replaces.first.number <= n <= replaces.last.number]
    if not there:
        return None
    return KnownSquash(file, tuple(there), tuple(_mistakes(file, replaces, there)))


def _mistakes(
    file: MigrationFile, replaces: ReplacesEntry, known: list[AppliedVersion]
) -> Iterator[Diagnostic]:
    applied = {a.version.number: a for a in known if a.state is VersionState.APPLIED}
    listed = {version.number: checksum for version, checksum in replaces.versions}
    others = [
        f"{a.version} ({_recorded_state(a).text})"
        for a in known
        # An abandoned version whose file was removed before the squash is no part of the squash.
        if a.state is not VersionState.APPLIED and not (a.abandoned and a.version.number not in listed)
    ]
    missing = [v.text for v, _ in replaces.versions if v.number not in {a.version.number for a in known}]
    if missing or others:
        yield Diagnostic(
            "squash-partial",
            f"{file.version} replaces {replaces.first} to {replaces.last}, "
            f"of which these are not applied here: {', '.join([*missing, *others])}",
            file.place,
            "apply them first, from the commit before the squash, which still has their files",
        )
    for number, record in applied.items():
        if listed and listed.get(number) != record.checksum:
            yield _other(file, record, listed.get(number))
    if (
        not listed
        and not others
        and checksums_digest(a.checksum for a in applied.values()) != replaces.digest
    ):
        there = ", ".join(a.version.text for a in applied.values())
        yield Diagnostic(
            "squash-partial",
            f"{file.version} replaces {replaces.first} to {replaces.last}, and what is applied here "
            f"({there}) is incomplete or differs",
            file.place,
            "apply the rest first, from the commit before the squash, which still has the files",
        )


def _other(file: MigrationFile, record: AppliedVersion, listed: str | None) -> Diagnostic:
    if listed is None:
        message = f"{record.version} is applied here, but {file.version} does not replace it"
    else:
        message = (
            f"{record.version} was applied with checksum {short_checksum(record.checksum)}, "
            f"and {file.version} replaces {short_checksum(listed)}"
        )
    return Diagnostic(
        "squash-digest",
        message,
        file.place,
        "check out the commit before the squash, and run `icemigrate status`",
    )


def lost_value_diagnostics(history: History, found: KnownSquash) -> Iterator[Diagnostic]:
    """Errors of a squash that would lose values left in snapshots by rollbacks: only the undo records name
    them.
    """
    for applied in found.known:
        copies = last_copies_of(history.undo_record(applied.version))
        if not copies:
            continue
        version = applied.version
        kept = ", ".join(sorted({f"{copy.version} of `{copy.declared}`" for copy in copies}))
        yield Diagnostic(
            "squash-values",
            f"a rollback of {version} left values in {kept}, and only the record of {version} names them",
            found.file.place,
            f"from the commit before the squash: `icemigrate rollback --only {version}`, then the same with "
            f"`--refill` (restores the values) or `--no-refill` (gives them up), then "
            f"`icemigrate apply --redo {version}`",
        )


def other_state(history: History, found: KnownSquash) -> Iterator[Diagnostic]:
    """Differences between the state that a squash declares and the state of the versions that it replaces."""
    file = found.file
    later = [a for a in history.applied if a.version > file.version and a.state is VersionState.APPLIED]
    declared = declared_state_without(history, later)
    replayed = replay_migration(EMPTY_STATE, file)
    if has_errors(replayed.diagnostics):
        return  # errors of replay are reported by `check`, and by a plan that runs the file
    wanted = {w.name: w.table for w in replayed.wanted}
    for name in sorted({*declared.tables, *wanted}):
        words = ("the replaced files say", "the squash says")
        only = ("only the replaced files declare it", "only the squash declares it")
        # A file that was applied out of order may have given the columns another order.
        sides = declared.tables.get(name), wanted.get(name)
        for text in declared_differences(*sides, words, ordered=False, only=only):
            yield Diagnostic(
                "squash-differs",
                text,
                file.place,
                "restore the file as `squash` wrote it, and put the change into a new migration",
            )


class MigrationStates(Frozen):
    """The states of all migrations.

    :param pending: files to apply, in order.  An interrupted one is among them: applying it again finishes
        it, because its finished changes are detected.  So is one that may be applied out of order.
    :param mistakes: edited or missing applied files, files out of order that touch the same facts as a later
        migration, invalid squashes.
    :param squashes: squashes whose versions are all applied: they are only recorded.
    :param late: files out of order that are refused.
    """

    migrations: tuple[MigrationStatus, ...]
    pending: tuple[MigrationFile, ...]
    mistakes: tuple[Diagnostic, ...]
    squashes: tuple[KnownSquash, ...] = ()
    late: tuple[AnyFile, ...] = ()


OutOfOrderReason = Callable[[MigrationFile], "str | None"]
"""Why a late file is refused; ``None`` where it may be applied."""


def migration_states(
    files: Sequence[AnyFile],
    applied: Iterable[AppliedVersion],
    intents: Iterable[Intent] = (),
    lock: LockInfo | None = None,
    *,
    out_of_order: OutOfOrderReason,
) -> MigrationStates:
    """Compare files with the history.

    :param intents: intents without an outcome; ``rollback`` finishes an interrupted undo.
    :param lock: the lock, under which a run may be active.
    :param out_of_order: the check of each file that is out of order, called in order.
    """
    known = {a.version.number: a for a in applied}
    begun = {i.version.number: i for i in intents}
    work = _StateComparison(files, known, begun, lock, out_of_order, list(squash_mistakes(files)))
    return work.compare()


@dataclass(slots=True)
class _StateComparison:
    """One comparison; records whose files are found are removed from ``known``."""

    files: Sequence[AnyFile]
    known: dict[int, AppliedVersion]
    begun: dict[int, Intent]
    lock: LockInfo | None
    out_of_order_reason: OutOfOrderReason
    mistakes: list[Diagnostic]
    rows: dict[int, MigrationStatus] = field(default_factory=dict)
    pending: list[MigrationFile] = field(default_factory=list)
    squashes: list[KnownSquash] = field(default_factory=list)
    late: list[AnyFile] = field(default_factory=list)

    def compare(self) -> MigrationStates:
        last = max((n for n, a in self.known.items() if a.state is VersionState.APPLIED), default=-1)
        covered = replaced_by(self.files)
        own = [a for a in self.known.values() if a.since]
        for file in self.files:
            squash = covered.get(file.version.number)
            owner = next((a for a in own if _is_squashed_into(a, file.version)), None)
            found = known_squash(file, self.known)
            if squash is not None or owner is not None:
                self._replaced(file, squash, owner)
            elif found is not None:
                self._squash(found)
            else:
                self._file(file, last)
        for number, record in self.known.items():
            state = VersionState.MISSING if record.state is VersionState.APPLIED else _recorded_state(record)
            self._row(record.version, record.description, state, record)
            if state is VersionState.MISSING and number not in covered:
                self.mistakes.append(_missing(record))
        return MigrationStates(
            tuple(self.rows[n] for n in sorted(self.rows)),
            tuple(self.pending),
            tuple(self.mistakes),
            tuple(self.squashes),
            tuple(self.late),
        )

    def _replaced(self, file: AnyFile, squash: MigrationFile | None, owner: AppliedVersion | None) -> None:
        """Report a file that a squash replaces, unless its squash has errors already."""
        if squash is None:
            assert owner is not None
            self.mistakes.append(_replaced_file_diagnostic(file, owner))
        elif squash.replaces is not None and squash.replaces.versions:
            listed = {version for version, _ in squash.replaces.versions}
            if file.version not in listed and file.version.number not in self.known:
                self.late.append(file)

    def _squash(self, found: KnownSquash) -> None:
        for applied in found.known:
            self.known.pop(applied.version.number)
        state = VersionState.PARTIAL if found.mistakes else VersionState.UNRECORDED
        self._row(found.file.version, migration_description(found.file), state, found.known[-1])
        if found.mistakes:
            self.mistakes.extend(found.mistakes)
        else:
            self.squashes.append(found)

    def _file(self, file: AnyFile, last: int) -> None:
        record = self.known.pop(file.version.number, None)
        intent = self.begun.get(file.version.number)
        state = _state(file, record, last)
        reason = None
        if state is VersionState.LATE:
            assert isinstance(file, MigrationFile), "only applied files are left unread"
            reason = self.out_of_order_reason(file)
            state = VersionState.PENDING if reason is None else VersionState.LATE
        shown = _shown(state, intent, self.lock)
        self._row(file.version, migration_description(file), shown, record)
        if intent is not None and intent.direction is Direction.ROLLBACK:
            return
        if state is VersionState.INTERRUPTED and record is not None and record.checksum != file.checksum:
            self.mistakes.append(_edited_halfway(file))
        elif state in (VersionState.PENDING, VersionState.INTERRUPTED):
            assert isinstance(file, MigrationFile), "only applied files are left unread"
            self.pending.append(file)
        elif state is VersionState.EDITED:
            assert record is not None
            self.mistakes.append(_edited(file, record))
        elif state is VersionState.LATE:
            assert reason is not None
            self.late.append(file)
            self.mistakes.append(_late(file, self.files, last, reason))

    def _row(self, version: Version, words: str, state: VersionState, record: AppliedVersion | None) -> None:
        at = record.applied_at if record else None
        if state in (VersionState.INTERRUPTED, VersionState.RUNNING):
            # Then the record has the time at which its run began.
            intent = self.begun.get(version.number)
            was = None if intent is None else intent.was
            at = was.applied_at if was is not None and was.state is VersionState.APPLIED else None
        is_undone = state in (VersionState.ROLLED_BACK, VersionState.ABANDONED)
        stays = record.remaining_effects if record is not None and is_undone else ()
        self.rows[version.number] = MigrationStatus(version.text, words, state.value, at, stays)


def _state(file: AnyFile, record: AppliedVersion | None, last: int) -> VersionState:
    if record is None:
        return VersionState.LATE if file.version.number < last else VersionState.PENDING
    if record.state is VersionState.APPLIED and record.checksum != file.checksum:
        return VersionState.EDITED
    return _recorded_state(record)


def _recorded_state(record: AppliedVersion) -> VersionState:
    return VersionState.ABANDONED if record.abandoned else record.state


def _shown(state: VersionState, intent: Intent | None, lock: LockInfo | None) -> VersionState:
    is_on = intent is not None and lock is not None and intent.run == lock.run
    return VersionState.RUNNING if state is VersionState.INTERRUPTED and is_on else state


def _is_squashed_into(squash: AppliedVersion, version: Version) -> bool:
    """Whether a recorded squash replaces another version."""
    return Version.parse(squash.since) <= version < squash.version


def _edited(file: AnyFile, record: AppliedVersion) -> Diagnostic:
    return Diagnostic(
        "edited-file",
        f"{file.version} changed after it was applied: "
        f"checksum {record.checksum} was applied, the file has {file.checksum}",
        file.place,
        "restore the file and put the change into a new migration; "
        "if both files declare the same tables, run `icemigrate repair`",
    )


def _edited_halfway(file: AnyFile) -> Diagnostic:
    return Diagnostic(
        "edited-file",
        f"{file.version} changed after its run was interrupted",
        file.place,
        "restore the file and run `icemigrate apply`, or run `icemigrate rollback` before you change it",
    )


def _late(file: AnyFile, files: Sequence[AnyFile], last: int, reason: str) -> Diagnostic:
    taken = [*(f.version for f in files), Version(last, str(last))]
    name = renumbered_file_name(file.path, taken, datetime.now(timezone.utc))
    return Diagnostic(
        "late-file",
        f"{file.version} is out of order: a later migration is applied, and {reason}",
        file.place,
        f"`icemigrate rebase {file.version}` renumbers it: `{name}`",
    )


def _replaced_file_diagnostic(file: AnyFile, squash: AppliedVersion) -> Diagnostic:
    return Diagnostic(
        "replaced-file",
        f"{file.version} is in the range of a squash that is recorded here, "
        f"{squash.since} to {squash.version}",
        file.place,
        "remove the file if it was squashed; "
        f"otherwise it is out of order: `icemigrate rebase {file.version}` renumbers it",
    )


def _missing(record: AppliedVersion) -> Diagnostic:
    return Diagnostic(
        "missing-file",
        f"{record.version} ({record.description}) is applied, but its file is missing",
        None,
        f"pull the branch that has it (applied {record.attribution}), "
        "or restore the file from version control",
    )
