"""Reports of a failed migration: what ran, what did not, and what to do next."""

from __future__ import annotations

from icemigrate.errors import EngineError, IcemigrateError, Stopped
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen
from icemigrate.history.history_properties import History
from icemigrate.history.recorded_versions import VersionState
from icemigrate.planning.plan import Direction, MigrationPlan
from icemigrate.planning.stages import PlannedStatement


class FailureReport(Frozen):
    """The progress of a failed migration.

    :param done: statements that ran, in order.
    :param failed: the statement that failed, or the next one where the user stopped the run.
    :param remaining: statements that did not run.
    :param command: the arguments of icemigrate that run it again.
    :param on_copy: statements that ran after these, on a copy of a table that was not published.
    :param earlier_versions: versions that this run completed before.
    :param failed_statement: the planned statement that failed; ``None`` where something else failed.
    """

    version: str
    direction: Direction
    done: tuple[str, ...]
    failed: str
    remaining: tuple[str, ...]
    command: str
    on_copy: tuple[str, ...] = ()
    earlier_versions: tuple[str, ...] = ()
    failed_statement: PlannedStatement | None = None

    def text(self, cause: IcemigrateError) -> str:
        """The report as lines; the cause comes first, because some displays truncate the text."""
        lines = [cause.message, f"migration {self.version} stopped at: {self.failed}"]
        if self.done:
            lines += ["statements that ran:", *map(_indent, self.done)]
        else:
            lines += ["no statement ran before that"]
        if self.on_copy:
            lines += ["statements that ran on a copy only; the table itself did not change:"]
            lines += map(_indent, self.on_copy)
        if self.remaining:
            lines += ["statements that did not run:", *map(_indent, self.remaining)]
        if self.earlier_versions:
            done = "applied" if self.direction is Direction.APPLY else "rolled back"
            lines += [f"{done} earlier in this run: {', '.join(self.earlier_versions)}"]
        return "\n".join(lines)


class Failed(EngineError):
    """A migration failed.

    :param then: the next action after the cause is fixed.
    :param cause: supplies the exit code and the first part of the hint.
    :param is_whole: whether ``then`` is the whole hint.
    """

    def __init__(
        self,
        message: str,
        then: str,
        report: FailureReport,
        cause: IcemigrateError,
        *,
        is_whole: bool = False,
    ) -> None:
        first = cause.hint or ("" if isinstance(cause, Stopped) else "fix the cause")
        first = "" if is_whole else first
        super().__init__(message, f"{first}; then {then}" if first else then)
        self.report = report
        self.cause = cause
        self.exit_code = cause.exit_code

    @property
    def done(self) -> tuple[str, ...]:
        """The statements that ran."""
        return self.report.done

    @property
    def failed(self) -> str:
        """The statement that failed."""
        return self.report.failed

    @property
    def remaining(self) -> tuple[str, ...]:
        """The statements that did not run."""
        return self.report.remaining


class Undone(Failed):
    """A migration failed, and no table is changed by it.

    :param undo_statements: the statements that undid its changes.
    :param state: the state of its version, which is the one before the run.
    """

    def __init__(
        self,
        report: FailureReport,
        cause: IcemigrateError,
        undo_statements: tuple[str, ...],
        state: VersionState,
    ) -> None:
        lines = [report.text(cause)]
        version = report.version
        if undo_statements:
            lines += ["statements that undid the migration:", *map(_indent, undo_statements)]
            lines += [f"migration {version} was undone: no table was changed by it, and it is {state.text}"]
        else:
            lines += [f"no table was changed by migration {version}, and it is {state.text}"]
        then = f"run `icemigrate {report.command}` again"
        super().__init__("\n".join(lines), then, report, cause)
        self.undo_statements = undo_statements


def state_before_run(migration: MigrationPlan) -> VersionState:
    """The state that a version has again after its failed run is undone."""
    if migration.direction is Direction.ROLLBACK:
        return VersionState.ROLLED_BACK if migration.refill_only else VersionState.APPLIED
    return VersionState.ROLLED_BACK if migration.is_redo else VersionState.PENDING


class StateAfterTakeover(Frozen):
    """The state of a version after another process took the lock over.

    :param state: one sentence.
    :param then: the next action.
    """

    state: str
    then: str


def now_of(history: History, version: Version, run: str) -> StateAfterTakeover | None:
    """The state of a version after another process took over; ``None`` where none did.

    :param run: the run that lost the lock.
    """
    begun = next((intent for intent in history.intents if intent.version == version), None)
    lock = history.lock
    if lock is not None and lock.run != run and not lock.is_taken_away:
        return StateAfterTakeover(
            f"another process took over the lock: {lock.words()}",
            "wait until that process has finished, then run `icemigrate status`",
        )
    if begun is not None and begun.run == run:
        return None
    if begun is not None:
        ways = (
            "`icemigrate apply` finishes it, `icemigrate rollback` undoes it"
            if begun.direction is Direction.APPLY
            else "`icemigrate rollback` finishes it"
        )
        who = f"{begun.user} on {begun.host}"
        return StateAfterTakeover(
            f"another process took over: `{begun.command}` of {version} by {who} has not finished", ways
        )
    applied = history.of(version)
    if applied is None:
        return StateAfterTakeover(
            f"another process took over: {version} is not applied",
            "`icemigrate apply` applies it",
        )
    if applied.state is VersionState.ROLLED_BACK:
        return StateAfterTakeover(
            f"another process took over: {version} is rolled back",
            f"{version} needs nothing more; `icemigrate apply --redo {version}` applies it again",
        )
    return StateAfterTakeover(
        f"another process took over: {version} is applied",
        f"{version} needs nothing more; run `icemigrate status` to see the state of the project",
    )


class Interrupted(Failed):
    """A migration failed, and some of its changes remain.

    :param why: why it was not undone, one line each.
    :param now: the state of the version, where this run lost the lock.
    """

    def __init__(
        self,
        report: FailureReport,
        cause: IcemigrateError,
        why: tuple[str, ...] = (),
        now: StateAfterTakeover | None = None,
    ) -> None:
        lines = [report.text(cause)]
        self.why = why
        if why:
            lines += ["the changes remain, because", *map(_indent, why)]
        if now is not None:
            super().__init__("\n".join([*lines, now.state]), now.then, report, cause, is_whole=True)
            return
        if report.direction is Direction.APPLY:
            ways = "`icemigrate apply` continues, `icemigrate rollback` undoes it"
        else:
            ways = "`icemigrate rollback` continues"
        then = f"{ways}; until then, other migrations of these tables are blocked"
        super().__init__("\n".join(lines), then, report, cause)


def _indent(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")
