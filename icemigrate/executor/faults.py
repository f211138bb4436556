"""How a migration that does not succeed is reported: what was done, what not, and the ways on."""

from __future__ import annotations

from icemigrate.errors import EngineError, IcemigrateError, Stopped
from icemigrate.frozen import Frozen
from icemigrate.plan import Direction


class Report(Frozen):
    """How far a migration came.

    :param version: of the migration.
    :param done: statements that were run, in order.
    :param failed: what failed, or what was about to be done when the user asked to stop.
    :param left: statements that were not run.
    :param command: of icemigrate, which tries it again.
    :param is_on_copy: whether some of them were run on a copy of their table, where nothing came of it.
    :param before: versions that the same run has gone through with.
    """

    version: str
    direction: Direction
    done: tuple[str, ...]
    failed: str
    left: tuple[str, ...]
    command: str
    is_on_copy: bool = False
    before: tuple[str, ...] = ()

    def text(self, cause: IcemigrateError) -> str:
        """All of it, for people: why comes first, so that a line that is cut short still says it."""
        lines = [cause.message, f"migration {self.version} stopped at: {self.failed}"]
        if self.done:
            lines += ["done before it:", *map(_indent, self.done)]
        else:
            lines += ["nothing was done before it"]
        if self.is_on_copy:
            lines += ["the last steps ran on a copy of the table alone, and nothing came of them"]
        if self.left:
            lines += ["not done:", *map(_indent, self.left)]
        if self.before:
            done = "applied" if self.direction is Direction.APPLY else "rolled back"
            lines += [f"{done} and recorded before it: {', '.join(self.before)}"]
        return "\n".join(lines)


class Failed(EngineError):
    """A migration did not succeed; see the two kinds below.

    :param report: how far it came.
    :param then: what to do when the cause is mended.
    :param cause: why it came no further; its exit code is this one's.
    """

    def __init__(self, message: str, then: str, report: Report, cause: IcemigrateError) -> None:
        # Nothing is to be mended where somebody asked to stop.
        first = cause.hint or ("" if isinstance(cause, Stopped) else "mend the cause")
        super().__init__(message, f"{first}; then {then}" if first else then)
        self.report = report
        self.cause = cause
        self.exit_code = cause.exit_code

    @property
    def done(self) -> tuple[str, ...]:
        """What was run."""
        return self.report.done

    @property
    def failed(self) -> str:
        """What failed."""
        return self.report.failed

    @property
    def left(self) -> tuple[str, ...]:
        """What was not run."""
        return self.report.left


class Undone(Failed):
    """A migration failed, and every table is as it was before it.

    :param undid: statements that took back what had been done.
    """

    def __init__(self, report: Report, cause: IcemigrateError, undid: tuple[str, ...]) -> None:
        lines = [report.text(cause)]
        if undid:
            lines += ["what was done is undone again:", *map(_indent, undid)]
        lines += ["every table is as it was before the migration"]
        then = f"run `icemigrate {report.command}` again"
        super().__init__("\n".join(lines), then, report, cause)
        self.undid = undid


class Interrupted(Failed):
    """A migration failed, and what was done of it stays for now.

    :param why: why it was not undone, line by line.
    """

    def __init__(self, report: Report, cause: IcemigrateError, why: tuple[str, ...] = ()) -> None:
        lines = [report.text(cause)]
        if why:
            lines += ["what was done stays, since", *map(_indent, why)]
        if report.direction is Direction.APPLY:
            ways = "`icemigrate apply` goes on from what is done, `icemigrate rollback` undoes it"
        else:
            ways = "`icemigrate rollback` goes on from what is undone"
        then = f"{ways}; other migrations of these tables wait until then"
        super().__init__("\n".join(lines), then, report, cause)
        self.why = why


def _indent(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")
