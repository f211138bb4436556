"""What the use cases return: frozen values that the commands print and the Python API hands out.

They stand below the renderers, so that every output format reads the same values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from icemigrate.diagnostics import Diagnostic, Severity, has_errors
from icemigrate.errors import ExitCode
from icemigrate.frozen import Frozen
from icemigrate.model.layout import OldShare
from icemigrate.plan import Plan


class CheckResult(Frozen):
    """What ``check`` found.

    :param migrations: number of migration files.
    :param tables: number of tables that are declared after the last of them.
    :param diagnostics: in the order of showing.
    :param base: what the change under review was compared with; ``None`` where it was with nothing.
    :param older: how many warnings and notes were left out, since their files are on the main branch already.
    :param older_base: that branch; ``None`` where nothing was left out.
    """

    project: str
    migrations: int
    tables: int
    diagnostics: tuple[Diagnostic, ...] = ()
    base: str | None = None
    older: int = 0
    older_base: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way (warnings do not)."""
        return not has_errors(self.diagnostics)


class LyingOld(Frozen):
    """A table that a plan leaves alone, and of which files lie otherwise than it is partitioned.

    :param table: its declared name.
    :param name: its name in the catalog.
    """

    table: str
    name: str
    old_files: OldShare


class PlanResult(Frozen):
    """A plan, and what is to be said of it with a place in a file.

    :param diagnostics: problems, missing consents and warnings; conflicts stand in the plan.
    :param lying_old: of the tables that it leaves alone, those of which files lie the old way.
    :param lying_unasked: of how many more of them nobody asked, since that takes a while for many.
    """

    plan: Plan
    diagnostics: tuple[Diagnostic, ...] = ()
    lying_old: tuple[LyingOld, ...] = ()
    lying_unasked: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to apply."""
        return self.plan.is_empty

    @property
    def ready(self) -> bool:
        """Whether all of it may run."""
        return self.plan.ready and not has_errors(self.diagnostics)

    @property
    def obstacle(self) -> ExitCode:
        """What keeps it from running, as an exit code: the files first, since they are mended first."""
        if has_errors(self.diagnostics):
            return ExitCode.FINDINGS
        return ExitCode.OK if self.plan.ready else ExitCode.CONFLICT


class ApplyResult(Frozen):
    """What ``apply`` did.

    :param applied: versions in the order in which they were applied; none where there was nothing to do.
    :param elapsed_ms: from the first statement to the last record.
    :param is_baseline: whether they were recorded as done already.
    :param to: where there was nothing to do, as in :class:`~icemigrate.plan.Plan`; so are all after it.
    """

    project: str
    environment: str
    applied: tuple[str, ...]
    elapsed_ms: int
    notes: tuple[str, ...] = ()
    is_baseline: bool = False
    to: str | None = None
    beyond: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    held_gone: tuple[str, ...] = ()
    held_edited: tuple[str, ...] = ()


class Checkup(Frozen):
    """One thing that ``doctor`` tried.

    :param name: what was tried, e.g. ``catalog``; permanent.
    :param state: ``ok``; ``note`` (works, and should be known); ``failed``; ``skipped`` (not tried).
    :param text: what came of it, in plain words.
    :param hint: the way out.
    """

    name: str
    state: Literal["ok", "note", "failed", "skipped"]
    text: str
    hint: str | None = None


class Ability(Frozen):
    """Something that a kind of catalog can do, or cannot.

    :param name: as in :class:`icemigrate.catalog.capabilities.Capabilities`; permanent.
    :param text: what it means for migrations, in plain words.
    """

    name: str
    can: bool
    text: str


class DoctorResult(Frozen):
    """What works with an environment.

    :param checkups: in the order in which they were made.
    :param catalog: the kind of catalog, a row of :data:`icemigrate.catalog.capabilities.MATRIX`.
    :param abilities: what that kind can do; none where there is no such environment.
    """

    project: str
    environment: str
    checkups: tuple[Checkup, ...]
    catalog: str = ""
    abilities: tuple[Ability, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing that was tried failed."""
        return all(c.state != "failed" for c in self.checkups)


class RollbackResult(Frozen):
    """What ``rollback`` did.

    :param rolled_back: versions in the order in which they were taken back; none where nothing was to do.
    :param elapsed_ms: from the first statement to the last record.
    :param by_others: versions that somebody else took back while this run waited for the lock.
    :param last: where nothing was to do, the last version that is applied; ``None`` where none is.
    """

    project: str
    environment: str
    rolled_back: tuple[str, ...]
    elapsed_ms: int
    notes: tuple[str, ...] = ()
    by_others: tuple[str, ...] = ()
    last: str | None = None


class RevertResult(Frozen):
    """What ``revert`` wrote.

    :param path: of the new file, as the user would type it.
    :param notes: what the file cannot bring back.
    """

    project: str
    path: str
    notes: tuple[str, ...] = ()


class Repaired(Frozen):
    """An edited file that counts as what was applied.

    :param was: the checksum before.
    :param now: the one of the file.
    """

    version: str
    was: str
    now: str


class RepairResult(Frozen):
    """What ``repair`` recorded; nothing where no applied file was edited."""

    project: str
    environment: str
    repaired: tuple[Repaired, ...] = ()


class Renamed(Frozen):
    """A file under its old and its new name, as the user would type them."""

    old: str
    new: str


class RebaseResult(Frozen):
    """What ``rebase`` renamed; nothing where no file has to be.

    :param notes: what others may have against it.
    """

    project: str
    environment: str
    renamed: tuple[Renamed, ...] = ()
    notes: tuple[str, ...] = ()


class SquashResult(Frozen):
    """What ``squash`` wrote.

    :param path: of the new file, as the user would type it.
    :param removed: files that it replaces.
    """

    project: str
    path: str
    removed: tuple[str, ...]


class Failure(Frozen):
    """A fault or mistakes, as an output shows it.

    :param error: name of the kind of fault, e.g. ``CatalogError``; permanent.
    """

    error: str
    message: str
    hint: str | None
    exit_code: int
    diagnostics: tuple[Diagnostic, ...] = ()


def errors_of(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Those that stop a command."""
    return tuple(d for d in diagnostics if d.severity is Severity.ERROR)
