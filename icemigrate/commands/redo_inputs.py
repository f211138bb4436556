"""``apply --redo``: a version that was rolled back, applied again with the field ids that it had."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from icemigrate.commands.project_files import known_version
from icemigrate.commands.remaining_effects import tables_with_remaining_values
from icemigrate.diagnostics import Diagnostic, Severity, has_errors
from icemigrate.errors import ConflictError, UsageError
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.files.read.migration_file import AnyFile, MigrationFile
from icemigrate.files.replay.replay_migration import replay_migration
from icemigrate.files.version_number import Version, number_of
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import AppliedVersion, History
from icemigrate.history.recorded_versions import Intent, VersionState
from icemigrate.iceberg.file_evidence_values import ValueShare
from icemigrate.iceberg.names import TableName
from icemigrate.iceberg.table import Table
from icemigrate.iceberg.undo_record import UndoRecord
from icemigrate.planning.plan import Direction, Plan
from icemigrate.planning.planning_context import RedoInputs
from icemigrate.planning.redo import redo_questions


class Redo(Frozen):
    """A rolled-back version and the record of its first run.

    :param record: without one (``None``) its fields get new ids.
    """

    file: MigrationFile
    record: UndoRecord | None
    history: History


def redo_inputs(
    redo: Redo,
    session: EnvironmentSession,
    actual: Mapping[TableName, Table | None],
    not_awaited: Collection[str] = (),
) -> RedoInputs:
    """The planner's inputs for a redo, from the history and the catalog.

    :param actual: the tables of the plan.
    :param not_awaited: rolled-back versions that the redo does not wait for: the same plan applies them
        again, or their files are gone.
    """
    history, version, record = redo.history, redo.file.version, redo.record
    later = (a for a in history.applied if a.version > version and a.state is VersionState.APPLIED)
    earlier = (
        a
        for a in history.applied
        if a.version < version and a.awaits_redo and a.version.text not in not_awaited
    )
    return RedoInputs(
        record,
        _records(history, later),
        _records(history, earlier),
        tables_with_remaining_values(redo, session),
        {} if record is None else _value_shares(record, history, session, actual),
    )


def _value_shares(
    record: UndoRecord,
    history: History,
    session: EnvironmentSession,
    actual: Mapping[TableName, Table | None],
) -> dict[tuple[TableName, int], ValueShare]:
    questions = redo_questions(record, history.state, actual, session.names.table)
    return {
        (name, field_id): share
        for name, fields in questions.items()
        for field_id, share in (session.catalog.rows_with_values(name, fields) or {}).items()
    }


def _records(history: History, applied: Iterable[AppliedVersion]) -> tuple[UndoRecord, ...]:
    records = (history.undo_record(a.version) for a in applied)
    return tuple(record for record in records if record is not None)


def find_redos(history: History, pending: Sequence[AnyFile], asked: Sequence[Redo]) -> dict[str, Redo]:
    """The pending migrations that are redone, by version: the requested ones, or else those whose redo was
    interrupted.

    :param asked: of ``--redo``.
    """
    if asked:
        return {redo.file.version.text: redo for redo in asked}
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


def with_rolled_back_versions(
    plan: Plan, history: History, files: Sequence[AnyFile], held: Sequence[str]
) -> Plan:
    """The plan, with the rolled-back versions that it skips, and the state of their files."""
    there = {f.version.text for f in files}
    applied = {a.version: a.checksum for a in history.applied}
    edited = {f.version.text for f in files if applied.get(f.version, f.checksum) != f.checksum}
    return replace(
        plan,
        held=tuple(held),
        held_gone=tuple(v for v in held if v not in there),
        held_edited=tuple(v for v in held if v in edited),
    )


def with_redo_hints(
    found: Iterable[Diagnostic],
    history: History,
    files: Sequence[AnyFile],
    pending: Sequence[MigrationFile],
) -> Iterator[Diagnostic]:
    """The diagnostics; an error that a rolled-back version or the order of files causes names the version.

    `check` reads the files of these versions too, so that it reports no such error.

    :param files: all files.
    """
    held = [f for f in files if (a := history.of(f.version)) is not None and a.awaits_redo]
    for diagnostic in found:
        file = diagnostic.place.file if diagnostic.place is not None else None
        wrong = next((f for f in pending if f.path == file), None)
        if wrong is None or diagnostic.severity is not Severity.ERROR:
            yield diagnostic
            continue
        earlier = [f for f in held if isinstance(f, MigrationFile) and f.version < wrong.version]
        needed = next(
            (
                redone
                for redone in (*((f,) for f in earlier), earlier)
                if _fits(history, redone, wrong, pending)
            ),
            (),
        )
        if not needed:
            yield replace(diagnostic, hint=diagnostic.hint or _rebase_hint(history, wrong, pending))
            continue
        versions = [f.version.text for f in needed]
        redo = "".join(f" --redo {version}" for version in versions)
        hint = (
            f"{', '.join(versions)} {'is' if len(versions) == 1 else 'are'} rolled back here: run "
            f"`icemigrate apply{redo}` first"
        )
        yield replace(diagnostic, hint=hint)


def _rebase_hint(history: History, wrong: MigrationFile, pending: Sequence[MigrationFile]) -> str | None:
    """The hint to move one earlier pending file behind a file that has no error without it.

    `drift --accept` writes such a file: it declares what another client did meanwhile.
    """
    earlier = [f for f in pending if f.version < wrong.version]
    for moved in reversed(earlier[-_MOST_TRIALS:]):
        if _has_no_error(history, [*(f for f in earlier if f is not moved), wrong]):
            return (
                f"{moved.version} is pending: `icemigrate rebase {moved.version}` moves it "
                "after this file; where it uses a name that has changed, edit it first"
            )
    return None


_MOST_TRIALS = 20
"""How many versions are left out of a redo one by one.  Each trial is a plan."""


def tried_redo_hint(
    error: ConflictError,
    history: History,
    files: Sequence[AnyFile],
    asked: Sequence[Redo],
    can_be_redone: Callable[[Sequence[str]], bool],
) -> str | None:
    """The hint of a refused redo, which names only what planning has tried.

    :param can_be_redone: whether a plan that redoes these versions can be applied.
    """
    versions = {redo.file.version for redo in asked}
    there = {f.version for f in files}
    earlier = sorted(
        a.version
        for a in history.applied
        if a.awaits_redo and a.version in there - versions and a.version < max(versions)
    )

    def fits(more: Iterable[Version]) -> bool:
        return can_be_redone([v.text for v in sorted({*versions, *more})])

    if earlier and fits(earlier):
        for version in earlier[:_MOST_TRIALS]:
            fewer = [v for v in earlier if v != version]
            earlier = fewer if fits(fewer) else earlier
        redo = "".join(f" --redo {version}" for version in sorted({*versions, *earlier}))
        return f"`icemigrate apply{redo}` applies them together"
    return "write what is still needed of it into a new migration" if error.redo_first else error.hint


def _fits(
    history: History, redone: Sequence[MigrationFile], wrong: MigrationFile, pending: Sequence[MigrationFile]
) -> bool:
    """Whether a pending file has no error after versions that are redone."""
    earlier = (f for f in pending if f.version < wrong.version)
    return bool(redone) and _has_no_error(history, [*redone, *earlier, wrong])


def _has_no_error(history: History, files: Sequence[MigrationFile]) -> bool:
    """Whether the last of the files has no error when they are applied in this order."""
    state = history.state
    for file in files:
        replayed = replay_migration(state, file)
        state = state.after_all((w.name, w.formerly, w.table) for w in replayed.wanted)
    return not has_errors(replayed.diagnostics)


ALL_ROLLED_BACK = "all"


def requested_redos(history: History, files: Sequence[AnyFile], texts: Iterable[str]) -> tuple[Redo, ...]:
    """The rolled-back versions that the user named, in order.

    :param texts: versions, ranges such as ``10..12``, or ``all``.  A range and ``all`` leave out versions
        without a file.
    :raises UsageError: a version has no file or is not rolled back, or a range has no such version.
    """
    found: dict[int, Redo] = {}
    for text in texts:
        for version in _rolled_back_versions(history, files, text):
            redo = find_redo(history, files, version)
            found[redo.file.version.number] = redo
    return tuple(found[number] for number in sorted(found))


def _rolled_back_versions(history: History, files: Sequence[AnyFile], text: str) -> tuple[str, ...]:
    first, is_range, last = text.partition("..")
    if text != ALL_ROLLED_BACK and not is_range:
        return (text,)
    there = {f.version for f in files}
    held = [a.version for a in history.applied if a.awaits_redo and a.version in there]
    if is_range:
        low, high = number_of(first), number_of(last)
        if low is None or high is None:
            raise UsageError(f"--redo {text}: a range has two versions, such as `10..12`")
        held = [v for v in held if low <= v.number <= high]
    if not held:
        raise UsageError(
            f"--redo {text}: no version with a file is rolled back{' in this range' if is_range else ''}",
            "`icemigrate status` shows the state of each version",
        )
    return tuple(v.text for v in sorted(held))


def find_redo(history: History, files: Sequence[AnyFile], text: str) -> Redo:
    """The rolled-back version that the user named.

    :raises UsageError: no file has it, or it is not rolled back.
    """
    there = {f.version.number for f in files}
    number = number_of(text)
    named = next((a for a in history.applied if a.version.number == number), None)
    if named is not None and named.abandoned:
        raise UsageError(
            f"--redo {text}: {named.version} is abandoned, and no run applies it again here",
            "put its changes into a new migration",
        )
    if named is not None and named.awaits_redo and number not in there:
        raise UsageError(
            f"--redo {text}: {named.version} is rolled back, but its file is missing",
            "restore the file from version control; if no environment needs the file, "
            f"`icemigrate repair --abandon {named.version}` gives the version up",
        )
    number = known_version(files, text, "--redo")
    file = next(f for f in files if f.version.number == number)
    applied = history.of(file.version)
    intent = next((i for i in history.intents if i.version == file.version), None)
    _refuse_interrupted(text, intent)
    if applied is None or (applied.state is not VersionState.ROLLED_BACK and intent is None):
        held = ", ".join(a.version.text for a in history.applied if a.awaits_redo)
        raise UsageError(
            f"--redo {text}: {file.version} is not rolled back",
            f"rolled back: {held}" if held else "only a version that was rolled back can be redone",
        )
    assert isinstance(file, MigrationFile), "only applied files are left unread"
    return Redo(file, history.undo_record(file.version), history)
