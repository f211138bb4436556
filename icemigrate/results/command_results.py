"""Results of the commands: frozen values that the renderers print and the Python API returns.

The package is below the renderers, so that every output format reads the same values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from icemigrate.diagnostics import Diagnostic, Severity, has_errors
from icemigrate.errors import ExitCode
from icemigrate.frozen import Frozen
from icemigrate.iceberg.partition_evolution import OldSpecFiles
from icemigrate.planning.plan import MISSING_CONSENT, Plan
from icemigrate.planning.transactions import TableByTable
from icemigrate.results.document_types import (
    CheckName,
    Count,
    FailureExitCode,
    Milliseconds,
    RuleId,
    RuleLevelName,
    VersionText,
)


class CheckResult(Frozen):
    """The result of ``check``.

    :param migrations: number of migration files.
    :param tables: number of tables that are declared after the last of them.
    :param diagnostics: in display order.
    :param base: the base of the comparison; ``None`` without one.
    :param older: number of warnings and notes that were left out, because their files are on the main branch
        already.
    :param older_base: that branch; ``None`` where nothing was left out.
    """

    project: str
    migrations: Count
    tables: Count
    diagnostics: tuple[Diagnostic, ...] = ()
    base: str | None = None
    older: int = 0
    older_base: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there are no errors; warnings may exist."""
        return not has_errors(self.diagnostics)


class OldSpecTable(Frozen):
    """A table that a plan does not change, with files of an old partition spec.

    :param table: its declared name.
    :param name: its name in the catalog.
    """

    table: str
    name: str
    old_files: OldSpecFiles


class PlanResult(Frozen):
    """A plan, and its diagnostics with positions in files.

    :param diagnostics: problems, missing consents and warnings; conflicts are in the plan.
    :param old_partition_tables: unchanged tables with files of an old partition spec.
    :param uncounted_tables: number of further such candidates, which were not read.
    :param table_by_table: migrations whose tables are committed one after the other.
    """

    plan: Plan
    diagnostics: tuple[Diagnostic, ...] = ()
    old_partition_tables: tuple[OldSpecTable, ...] = ()
    uncounted_tables: int = 0
    table_by_table: tuple[TableByTable, ...] = ()

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
        """Why the plan cannot run, as an exit code; errors of the files come first, because they are fixed
        first.
        """
        if has_errors(self.diagnostics):
            return ExitCode.FINDINGS
        return ExitCode.OK if self.plan.ready else ExitCode.CONFLICT


class ApplyResult(Frozen):
    """The result of ``apply``.

    :param applied: versions in the order in which they were applied; empty where there was nothing to do.
    :param elapsed_ms: from the first statement to the last record.
    :param is_baseline: whether they were recorded without running.
    :param to: where there was nothing to do, as in :class:`~icemigrate.planning.plan.Plan`; so are all later
        fields.
    """

    project: str
    environment: str
    applied: tuple[VersionText, ...]
    elapsed_ms: Milliseconds
    notes: tuple[str, ...] = ()
    is_baseline: bool = False
    to: str | None = None
    beyond: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    held_gone: tuple[str, ...] = ()
    held_edited: tuple[str, ...] = ()


class DoctorCheck(Frozen):
    """One test of ``doctor``.

    :param name: the tested part, e.g. ``catalog``; permanent.
    :param state: ``ok``; ``note`` (works, with a remark); ``failed``; ``skipped`` (not tested).
    :param text: the result.
    :param hint: what to do.
    """

    name: CheckName
    state: Literal["ok", "note", "failed", "skipped"]
    text: str
    hint: str | None = None


class CapabilityStatus(Frozen):
    """A capability that a kind of catalog has or does not have.

    :param name: as in :class:`icemigrate.catalog.capabilities.Capabilities`; permanent.
    :param can: whether the catalog has it.
    :param text: its meaning for migrations.
    """

    name: str
    can: bool
    text: str


class DoctorResult(Frozen):
    """The result of ``doctor``.

    :param checkups: in the order of the tests.
    :param catalog: the kind of catalog, a row of :data:`icemigrate.catalog.capabilities.CAPABILITY_MATRIX`.
    :param abilities: its capabilities; empty where there is no such environment.
    """

    project: str
    environment: str
    checkups: tuple[DoctorCheck, ...]
    catalog: str = ""
    abilities: tuple[CapabilityStatus, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no test failed."""
        return all(c.state != "failed" for c in self.checkups)


class RollbackResult(Frozen):
    """The result of ``rollback``.

    :param rolled_back: versions in the order in which they were undone; empty where there was nothing to do.
    :param elapsed_ms: from the first statement to the last record.
    :param by_others: versions that another process undid while this one waited for the lock.
    :param last: where there was nothing to do, the last applied version; ``None`` without one.
    """

    project: str
    environment: str
    rolled_back: tuple[VersionText, ...]
    elapsed_ms: Milliseconds
    notes: tuple[str, ...] = ()
    by_others: tuple[VersionText, ...] = ()
    last: VersionText | None = None


class RevertResult(Frozen):
    """The result of ``revert``.

    :param path: of the new file, as the user would type it.
    :param notes: facts that the file cannot restore.
    """

    project: str
    path: str
    notes: tuple[str, ...] = ()


class RepairedMigration(Frozen):
    """An edited file that was accepted.

    :param was: the earlier checksum.
    :param now: the checksum of the file.
    """

    version: VersionText
    was: str
    now: str


class AdoptedTable(Frozen):
    """A table that another client dropped and created again, and that the history records now.

    :param table: its declared name.
    :param was: the uuid of the recorded table.
    :param now: the uuid of the table that has its name.
    """

    table: str
    was: str
    now: str


class RepairResult(Frozen):
    """The result of ``repair``; empty where no applied file was edited.

    :param repaired: the edited files that were accepted.
    :param adopted: the tables that ``repair --adopt`` recorded.
    :param abandoned: the rolled-back versions that ``repair --abandon`` gave up.
    :param action: what the options chose.
    """

    project: str
    environment: str
    repaired: tuple[RepairedMigration, ...] = ()
    adopted: tuple[AdoptedTable, ...] = ()
    abandoned: tuple[VersionText, ...] = ()
    action: Literal["repair", "adopt", "abandon"] = "repair"


class RenamedFile(Frozen):
    """A file under its old and its new name, as the user would type them.

    :param old: its path before.
    :param new: its path now.
    """

    old: str
    new: str


class RebaseResult(Frozen):
    """The files that ``rebase`` renamed; empty where none needs it.

    :param renamed: in the order of their versions.
    :param notes: possible problems for others.
    """

    project: str
    environment: str
    renamed: tuple[RenamedFile, ...] = ()
    notes: tuple[str, ...] = ()


class SquashResult(Frozen):
    """The result of ``squash``.

    :param path: of the new file, as the user would type it.
    :param removed: files that it replaces.
    """

    project: str
    path: str
    removed: tuple[str, ...]


class Failure(Frozen):
    """A fault or mistakes, as an output shows it.

    :param error: name of the kind of fault, e.g. ``CatalogError``; permanent.
    :param message: what is wrong.
    :param hint: what to do.
    :param exit_code: of the process.
    :param diagnostics: in the order of files and positions.
    """

    error: str
    message: str
    hint: str | None
    exit_code: FailureExitCode
    diagnostics: tuple[Diagnostic, ...] = ()


def errors_of(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics that stop a command."""
    return tuple(d for d in diagnostics if d.severity is Severity.ERROR)


def errors_besides_consents(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The errors that remain when every hazard has consent."""
    return tuple(d for d in errors_of(diagnostics) if d.code != MISSING_CONSENT)


class ImportResult(Frozen):
    """The result of ``import``.

    :param path: of the new file, as the user would type it; ``None`` where none was written.
    :param tables: declared names of the adopted tables.
    :param content: the file's text.
    :param notes: skipped tables, and facts that no file can declare.
    """

    project: str
    environment: str
    path: str | None
    tables: tuple[str, ...]
    content: str
    notes: tuple[str, ...] = ()


class RuleStatus(Frozen):
    """A rule of ``check``.

    :param id: permanent identifier.
    :param name: can be used instead of the id.
    :param level: ``off``, ``note``, ``warning`` or ``error``, as set in the project.
    :param default: the level without a setting in the project file.
    :param finds: its finding, in one sentence.
    :param options: as set in the project; an age has the form of the project file.
    """

    id: RuleId
    name: str
    level: RuleLevelName
    default: RuleLevelName
    finds: str
    options: tuple[RuleOption, ...] = ()


class RuleOption(Frozen):
    """An option of a rule; ``None`` where it is not set and the rule needs it.

    :param key: as in the project file.
    :param value: ``None`` where it is not set.
    :param says: what it means.
    """

    key: str
    value: str | int | None
    says: str


class RulesResult(Frozen):
    """All rules, in the order of their ids.

    :param rules: in the order of their ids.
    """

    project: str
    rules: tuple[RuleStatus, ...]
