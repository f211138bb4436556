"""A squashed file held against the history: recorded, run, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icemigrate.app.declared import state_without
from icemigrate.app.folding import title
from icemigrate.declare.checksum import short
from icemigrate.declare.differences import differences
from icemigrate.declare.fold import fold
from icemigrate.declare.migration import AnyFile, MigrationFile, Replaces
from icemigrate.declare.replacing import digest
from icemigrate.diagnostics import Diagnostic, has_errors
from icemigrate.frozen import Frozen
from icemigrate.history.applied import Applied
from icemigrate.history.properties import History
from icemigrate.model.sides import EMPTY_STATE
from icemigrate.model.undo_record import last_copies_of
from icemigrate.plan import MigrationPlan, Squash


class Found(Frozen):
    """A squash some of whose versions are known to the history.

    :param known: what the history says of the versions in its range, in order.
    :param mistakes: why it is refused; none where all are applied, so that it is only recorded.
    """

    file: MigrationFile
    known: tuple[Applied, ...]
    mistakes: tuple[Diagnostic, ...]

    def plan(self) -> MigrationPlan:
        """The plan that records it and does nothing else."""
        replaces = self.file.replaces
        assert replaces is not None
        assert not self.mistakes, "a squash that is refused has no plan"
        return MigrationPlan(
            version=self.file.version.text,
            description=title(self.file),
            checksum=self.file.checksum,
            fingerprint=self.file.fingerprint,
            squash=Squash(replaces.first.text, tuple(a.version.text for a in self.known)),
        )


def find(file: AnyFile, known: Mapping[int, Applied]) -> Found | None:
    """A squash that is not recorded here though something of its range is known.

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
    return Found(file, tuple(there), tuple(_mistakes(file, replaces, there)))


def _mistakes(file: MigrationFile, replaces: Replaces, known: list[Applied]) -> Iterator[Diagnostic]:
    applied = {a.version.number: a for a in known if a.standing == "applied"}
    listed = {version.number: checksum for version, checksum in replaces.versions}
    others = [f"{a.version} ({_standing(a)})" for a in known if a.standing != "applied"]
    missing = [v.text for v, _ in replaces.versions if v.number not in {a.version.number for a in known}]
    if missing or others:
        yield Diagnostic(
            "squash-partial",
            f"{file.version} stands for {replaces.first} to {replaces.last}, "
            f"and of these are not applied here: {', '.join([*missing, *others])}",
            file.place,
            "apply them first, from the commit before the squash, which still has their files",
        )
    for number, record in applied.items():
        if listed and listed.get(number) != record.checksum:
            yield _other(file, record, listed.get(number))
    if not listed and not others and digest(a.checksum for a in applied.values()) != replaces.digest:
        there = ", ".join(a.version.text for a in applied.values())
        yield Diagnostic(
            "squash-partial",
            f"{file.version} stands for {replaces.first} to {replaces.last}, and what is applied here "
            f"({there}) is not all of it, or says something else",
            file.place,
            "apply the rest first, from the commit before the squash, which still has the files",
        )


def _standing(record: Applied) -> str:
    return "rolled back" if record.standing == "held" else record.standing


def _other(file: MigrationFile, record: Applied, listed: str | None) -> Diagnostic:
    if listed is None:
        message = f"{record.version} is applied here, and {file.version} does not stand for it"
    else:
        message = (
            f"{record.version} was applied with checksum {short(record.checksum)}, "
            f"and {file.version} stands for {short(listed)}"
        )
    return Diagnostic(
        "squash-digest", message, file.place, "go back to the commit before the squash, and look at `status`"
    )


def values_left(history: History, found: Found) -> Iterator[Diagnostic]:
    """Why a squash would lose values that rollbacks left in snapshots: only the undo records name them."""
    for applied in found.known:
        copies = last_copies_of(history.undo_record(applied.version))
        if not copies:
            continue
        version = applied.version
        kept = ", ".join(sorted({f"{copy.version} of `{copy.declared}`" for copy in copies}))
        yield Diagnostic(
            "squash-values",
            f"a rollback of {version} left values in {kept}, and the record of {version} is what keeps them",
            found.file.place,
            f"from the commit before the squash: `icemigrate rollback --only {version}`, then the same with "
            f"`--refill` (restores the values) or `--no-refill` (gives them up), then "
            f"`icemigrate apply --redo {version}`",
        )


def other_state(history: History, found: Found) -> Iterator[Diagnostic]:
    """What a squash declares otherwise than what it stands for did, by the history's undo records."""
    file = found.file
    later = [a for a in history.applied if a.version > file.version and a.standing == "applied"]
    declared = state_without(history, later)
    folded = fold(EMPTY_STATE, file)
    if has_errors(folded.diagnostics):
        return  # the fold's own mistakes are told by `check`, and by a plan that runs it
    wanted = {w.name: w.table for w in folded.wanted}
    for name in sorted({*declared.tables, *wanted}):
        words = ("the files it stands for say", "the squash says")
        # The order of columns may have come otherwise here, where a file came late.
        for text in differences(declared.tables.get(name), wanted.get(name), words, ordered=False):
            yield Diagnostic(
                "squash-differs",
                text,
                file.place,
                "bring the file back as `squash` wrote it, and write what is new into a new migration",
            )
