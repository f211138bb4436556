"""``apply --redo``: a version that was rolled back, applied again with the field ids that it had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from icemigrate.app.opening import known_version
from icemigrate.app.world import Opened
from icemigrate.data.retype import Retype
from icemigrate.declare.fold import Folded
from icemigrate.declare.migration import AnyFile, MigrationFile
from icemigrate.diagnostics import has_errors
from icemigrate.errors import ConflictError, UsageError
from icemigrate.frozen import Frozen, replace
from icemigrate.history.intent import Intent
from icemigrate.history.properties import Applied, History
from icemigrate.model.counting import count
from icemigrate.model.names import TableName
from icemigrate.model.sides import State, Wanted
from icemigrate.model.table import Table
from icemigrate.model.undo_record import UndoRecord, declared_record
from icemigrate.plan import Direction, Plan
from icemigrate.planner import FoldedMigration, Pending
from icemigrate.undo import Blocker, barred, blockers, under_other_names, with_recorded_ids


class Redo(Frozen):
    """A held version and what it made the first time.

    :param record: ``None`` where the history holds none: then its fields get new ids.
    """

    file: MigrationFile
    record: UndoRecord | None
    history: History

    def pending(self, pending: Pending, world: Opened, actual: Mapping[TableName, Table | None]) -> Pending:
        """The migration as the planner takes it, its new fields under their recorded ids."""
        return replace(pending, fold=_Redone(pending.fold, self, world, actual))


class _Redone(Frozen):
    """The fold of a redo.

    :raises ConflictError: (when called) see :func:`refuse_dependent` and :func:`_require_old_values`.
    """

    fold: Callable[[State], FoldedMigration]
    redo: Redo
    world: Opened
    actual: Mapping[TableName, Table | None]

    def __call__(self, state: State) -> FoldedMigration:
        folded, record = self.fold(state), self.redo.record
        assert isinstance(folded, Folded), "files are folded by the declaration's own fold"
        # What a file in which nothing fits speaks of, only the first time tells.
        first = record if has_errors(folded.diagnostics) else None
        refuse_dependent(self.redo.history, self.redo.file, state, folded.wanted, first)
        if record is None:
            return folded
        return replace(folded, wanted=tuple(self._fitted(w, record, state) for w in folded.wanted))

    def _fitted(self, wanted: Wanted, record: UndoRecord, state: State) -> Wanted:
        if wanted.formerly is None:
            return with_recorded_ids(wanted, record, None)
        there = self.actual.get(self.world.names.table(wanted.formerly))
        anew = dict(barred(wanted, record, there))
        for work in anew.values():
            assert there is not None, "what is barred is barred by what is there"
            _require_old_values(self.redo.file, self.world, there, work)
        known = state.tables.get(wanted.formerly)
        return with_recorded_ids(wanted, record, known, {*anew, *under_other_names(wanted, record, there)})


def _require_old_values(file: MigrationFile, world: Opened, there: Table, work: Retype) -> None:
    """Refuse to make a column anew where rows have their values under its recorded field id alone: nobody
    could read them any more, and they would be written away.

    :raises ConflictError: with how many rows there are, as far as manifests tell.
    """
    shares = world.catalog.held(there.name, {work.field_id: there.schema.leaves(work.field_id)})
    share = None if shares is None else shares[work.field_id]
    if share is not None and share.held == share.total:
        return
    if share is None or share.unknown or share.total_unsure:
        rows = "how many rows have no value of it as it is now, the manifests do not tell"
    else:
        verb = "has" if share.total - share.held == 1 else "have"
        rows = f"{share.total - share.held} of {count(share.total, 'row')} {verb} no value of it as it is now"
    column = work.column
    raise ConflictError(
        f"{file.version} cannot be redone: `{there.name}` was partitioned by `{column}` as {work.to}, and "
        f"Iceberg takes that column back only when `{column}` as it is now is gone; but {rows}, and what was "
        f"written to it as {work.to} would be lost",
        f"give `{column}` a value in these rows (a snapshot from before the rollback still reads what they "
        "had), and redo then: it is filled from there, as a new column",
    )


def redos_of(history: History, pending: Sequence[AnyFile], asked: Redo | None) -> dict[str, Redo]:
    """The pending migrations that are redone, by version: the one that was asked for, and those whose redo
    was interrupted.

    :param asked: of ``--redo``.
    """
    if asked is not None:
        return {asked.file.version.text: asked}
    begun = {i.version for i in history.intents if i.is_redo and i.direction is Direction.APPLY}
    return {
        file.version.text: Redo(file, history.undo_record(file.version), history)
        for file in pending
        if isinstance(file, MigrationFile) and file.version in begun
    }


def _refuse_interrupted(text: str, intent: Intent | None) -> None:
    """Refuse to redo a version of which something else was interrupted.

    :raises UsageError: it was rolled back or applied by the run that was interrupted.
    """
    if intent is None or intent.is_redo:
        return
    undo = intent.direction is Direction.ROLLBACK
    raise UsageError(
        f"--redo {text}: `{intent.command}` of {intent.version} was interrupted",
        f"`icemigrate rollback` finishes it, then `icemigrate apply --redo {intent.version}`"
        if undo
        else "`icemigrate apply` finishes it, `icemigrate rollback` undoes it",
    )


def with_held(plan: Plan, history: History, files: Sequence[AnyFile], held: Sequence[str]) -> Plan:
    """The plan, with the versions that it leaves out since they were rolled back, and what of their files."""
    there = {f.version.text for f in files}
    edited = {
        f.version.text for f in files if (a := history.of(f.version)) is not None and a.checksum != f.checksum
    }
    return replace(
        plan,
        held=tuple(held),
        held_gone=tuple(v for v in held if v not in there),
        held_edited=tuple(v for v in held if v in edited),
    )


def find_redo(history: History, files: Sequence[AnyFile], text: str) -> Redo:
    """The held version that the user named.

    :raises UsageError: no file has it, or it is not held.
    """
    there = {f.version.number for f in files}
    for a in history.applied:
        if (
            a.standing == "held"
            and text.isascii()
            and text.isdigit()
            and int(text) == a.version.number not in there
        ):
            raise UsageError(
                f"--redo {text}: {a.version} is held, and there is no file of it",
                "bring the file back from version control",
            )
    number = known_version(files, text, "--redo")
    file = next(f for f in files if f.version.number == number)
    applied = history.of(file.version)
    intent = next((i for i in history.intents if i.version == file.version), None)
    _refuse_interrupted(text, intent)
    if applied is None or (applied.standing != "held" and intent is None):
        held = ", ".join(a.version.text for a in history.applied if a.standing == "held")
        raise UsageError(
            f"--redo {text}: {file.version} is not held",
            f"held are {held}" if held else "only a version that was rolled back can be redone",
        )
    assert isinstance(file, MigrationFile), "only applied files are left unread"
    return Redo(file, history.undo_record(file.version), history)


def refuse_dependent(
    history: History,
    file: MigrationFile,
    state: State,
    wanted: Sequence[Wanted],
    first: UndoRecord | None = None,
) -> None:
    """Refuse to redo what a later applied migration has a say in, which was made for a world without it; and
    what builds on an earlier one that is held: its file would be read in a world that it was not written for.

    :param first: what it did the first time, where its file has mistakes in the world without the held ones.
    :raises ConflictError: with the others and the facts that they share.
    """
    mine = declared_record(file.version.text, wanted, state)
    later = [a for a in history.applied if a.version > file.version and a.standing == "applied"]
    found = blockers(mine, _records(history, later))
    if found:
        raise ConflictError(
            f"{file.version} cannot be redone, since later migrations touch the same: {_listed(found)}",
            "write what is still wanted of it into a new migration",
        )
    earlier = [a for a in history.applied if a.version < file.version and a.standing == "held"]
    found = blockers(first or mine, _records(history, earlier))
    if found:
        rest = ", ".join(b.version for b in found[1:])
        raise ConflictError(
            f"{file.version} cannot be redone yet: earlier migrations touch the same, and are held: "
            f"{_listed(found)}",
            f"`icemigrate apply --redo {found[0].version}` first{f', then {rest}' if rest else ''}",
        )


def _records(history: History, applied: Iterable[Applied]) -> list[UndoRecord]:
    return [record for a in applied if (record := history.undo_record(a.version)) is not None]


def _listed(found: Iterable[Blocker]) -> str:
    return "; ".join(f"{b.version} ({', '.join(b.facts)})" for b in found)
