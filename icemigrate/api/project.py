"""The Python API: a project with its use cases as methods, which return what the commands print.

.. code-block:: python

    import icemigrate

    market = icemigrate.Project("path/to/project", environment="prod")
    if not market.plan().is_empty:
        market.apply()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.events import Event
from icemigrate.planning.plan import Plan
from icemigrate.planning.undo import DEFAULT_UNDO_OPTIONS, UndoOptions
from icemigrate.project import open_project
from icemigrate.results.command_results import (
    ApplyResult,
    CheckResult,
    DoctorResult,
    ImportResult,
    PlanResult,
    RebaseResult,
    RepairResult,
    RevertResult,
    RollbackResult,
    SquashResult,
)
from icemigrate.results.diff_results import DiffResult
from icemigrate.results.drift_results import AcceptResult, DriftResult, ReconcileResult
from icemigrate.results.maintain_results import MaintainResult
from icemigrate.results.reset_results import ResetResult
from icemigrate.results.status_results import HistoryResult, Status

if TYPE_CHECKING:
    from pyarrow import Schema
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from icemigrate.api.iceberg_manager import IcebergManager
    from icemigrate.project import Project as ProjectFile


class Project:
    """A project.  Every method raises the errors of :mod:`icemigrate.errors`; errors in files raise
    ``Mistakes``.

    :param path: the project file, or a folder of the project; by default the working directory.
    :param environment: by default the project's default environment.
    """

    def __init__(self, path: str | PathLike[str] | None = None, environment: str | None = None) -> None:
        self._project = open_project(None if path is None else Path(path))
        self._environment = environment

    @property
    def name(self) -> str:
        """The project's name."""
        return self._project.name

    @property
    def opened(self) -> ProjectFile:
        """The project's settings and folders."""
        return self._project

    @property
    def environment(self) -> str | None:
        """The chosen environment; ``None`` for the project's default."""
        return self._environment

    def tables(self) -> IcebergManager:
        """The tables of the environment, to read and change their rows, columns and snapshots."""
        from icemigrate.api.iceberg_manager import IcebergManager

        return IcebergManager(self)

    def spark(self) -> SparkSession:
        """A Spark session on the environment's catalog, under the name that it has in plans.

        Where Spark runs in this process already, this is another session of it.  With ``remote`` in the
        environment, it is a session of Spark Connect.

        :raises EngineError: Java or Spark failed, or the server does not answer.
        """
        from icemigrate.execution.connect_start import connect_settings, uses_connect
        from icemigrate.execution.spark_start import open_engine
        from icemigrate.project import choose_environment

        environment = choose_environment(self._project, self._environment, dict(os.environ))
        if uses_connect(environment, None):
            from icemigrate.spark.connect_session import open_connect_session

            return open_connect_session(connect_settings(environment))
        return open_engine(environment, None).session

    def check(self, git_base: str | None = None, *, fix: bool = False) -> CheckResult:
        """Check every file and every step between versions, without a catalog.

        :param git_base: a branch or commit; only findings that are new since it are reported.
        :param fix: write the lock file for the current files.
        """
        from icemigrate.commands.check import check
        from icemigrate.commands.comparison_base import GitBase

        base = None if git_base is None else GitBase(git_base, git_base)
        return check(self._project, base, fix=fix, compares_versions=base is None)

    def plan(
        self,
        to: str | None = None,
        overwrite: Iterable[str] = (),
        redo: str | Sequence[str] | None = None,
        baseline: bool = False,
    ) -> PlanResult:
        """Plan the pending migrations against the catalog; starts no JVM.

        :param to: the last version to plan.
        :param overwrite: facts (``table:subject``) that are set whatever their current value is.
        :param redo: plan only these versions, which were rolled back: ``10``, ``10..12``, ``all``.
        :param baseline: plan to record them as applied without changing a table.
        """
        from icemigrate.commands.plan import plan

        return plan(
            self._project, self._environment, to=to, overwrite=overwrite, redo=redo, baseline=baseline
        )

    def apply(
        self,
        plan: Plan | PlanResult | None = None,
        spark: SparkSession | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> ApplyResult:
        """Run a plan, or all pending migrations, without asking for approval.

        :param plan: exactly this one; without it a plan is made.
        :param spark: a running session with Iceberg's SQL extensions; without it one is started.
        :param on_event: called with every event.
        """
        from icemigrate.commands.apply import apply, require_ready

        result = self.plan() if plan is None else plan
        if isinstance(result, PlanResult):
            require_ready(result)
            result = result.plan
        return apply(self._project, result, spark=spark, on_event=on_event)

    def plan_rollback(
        self,
        to: str | None = None,
        only: str | None = None,
        options: UndoOptions = DEFAULT_UNDO_OPTIONS,
        spark: SparkSession | None = None,
    ) -> PlanResult:
        """Plan undoing migrations: the last one, all after ``to``, or ``only`` one.

        :param options: the command's options, such as ``icemigrate.Options(partial=True)``.
        :param spark: a running session; Spark is started only where files must be read.
        """
        from icemigrate.commands.rollback import plan_rollback

        return plan_rollback(self._project, self._environment, to=to, only=only, options=options, spark=spark)

    def rollback(
        self,
        to: str | None = None,
        only: str | None = None,
        options: UndoOptions = DEFAULT_UNDO_OPTIONS,
        spark: SparkSession | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> RollbackResult:
        """Roll back migrations, without asking for approval.

        :param options: as in :meth:`plan_rollback`.
        """
        from icemigrate.commands.rollback import require_undoable, rollback

        result = self.plan_rollback(to, only, options, spark)
        require_undoable(result)
        return rollback(self._project, result.plan, options=options, spark=spark, on_event=on_event)

    def revert(self, version: str) -> RevertResult:
        """Write the next migration file, one that undoes ``version``."""
        from icemigrate.commands.revert import revert

        return revert(self._project, version)

    def import_tables(
        self,
        *names: str,
        exclude: Sequence[str] = (),
        description: str | None = None,
        dry_run: bool = False,
    ) -> ImportResult:
        """Write the next migration file, which adopts existing tables.

        :param names: tables and namespaces; without any, all undeclared tables of the catalog.
        :param exclude: tables and namespaces to skip.
        :param dry_run: write no file; :attr:`~icemigrate.results.command_results.ImportResult.content` has
            its text.
        """
        from icemigrate.commands.import_tables import import_tables

        return import_tables(
            self._project,
            self._environment,
            names,
            exclude=exclude,
            description=description,
            dry_run=dry_run,
        )

    def diff(
        self,
        desired: str | PathLike[str] | Schema | StructType | None = None,
        *,
        from_env: str | None = None,
        tables: Sequence[str] = (),
        renames: Mapping[str, str] | None = None,
        no_renames: bool = False,
        include_drops: bool = False,
        description: str | None = None,
        dry_run: bool = False,
    ) -> DiffResult:
        """Write the next migration file, which leads from the declared state to a desired one.

        :param desired: a file or folder as ``icemigrate diff`` takes it, a ``pyarrow.Schema`` or a
            ``pyspark.sql.types.StructType``.
        :param from_env: the environment whose catalog is the desired state, instead of ``desired``.
        :param tables: names of the tables to compare; a schema needs exactly one.
        :param renames: old names and new ones: ``{"market_data.trades.volume": "quantity"}``.
        :param no_renames: whether everything new is new, but for ``renames``.
        :param include_drops: whether to drop what the desired state does not have.
        :param dry_run: write no file; :attr:`~icemigrate.results.diff_results.DiffResult.content` has its
            text.
        """
        from icemigrate.commands.diff import DiffOptions, diff

        hints = tuple(f"{old}={new}" for old, new in (renames or {}).items())
        options = DiffOptions(tuple(tables), hints, no_renames, include_drops, description, dry_run)
        path = Path(desired) if isinstance(desired, (str, PathLike)) else desired
        return diff(self._project, path, from_env, options)

    def drift(self, *tables: str) -> DriftResult:
        """Other clients' changes of the tables since they were recorded.

        :param tables: declared names; without any, all tables.
        """
        from icemigrate.commands.drift import drift

        return drift(self._project, self._environment, tables)

    def accept_drift(self, *tables: str) -> AcceptResult:
        """Write the migration that declares other clients' changes.

        :param tables: declared names; without any, all tables.
        """
        from icemigrate.commands.drift_accept import accept_drift

        return accept_drift(self._project, self._environment, tables)

    def plan_reconcile(
        self, *tables: str, allow: Iterable[str] = (), spark: SparkSession | None = None
    ) -> PlanResult:
        """Plan changing tables back to their recorded state.

        :param tables: declared names; without any, all tables.
        :param allow: consents, as in a file: ``destructive market_data.trades.release``.
        :param spark: a running session; without it one is started where files must be read.
        """
        from icemigrate.commands.reconcile import plan_reconcile, reconcile_request

        return plan_reconcile(self._project, self._environment, reconcile_request(tables, allow), spark=spark)

    def reconcile(
        self, *tables: str, allow: Iterable[str] = (), spark: SparkSession | None = None
    ) -> ReconcileResult:
        """Change tables back to their recorded state, without asking for approval. As
        :meth:`plan_reconcile`.
        """
        from icemigrate.commands.reconcile import reconcile
        from icemigrate.commands.rollback import require_undoable

        result = self.plan_reconcile(*tables, allow=allow, spark=spark)
        require_undoable(result, "plan --reconcile")
        return reconcile(self._project, result.plan, spark=spark)

    def maintain(
        self,
        *parts: str,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> MaintainResult:
        """Apply retention, without asking for approval.

        :param parts: ``trash``, ``snapshots``, ``rows``, ``schemas``, ``views``, ``orphans``; without any,
            all but ``orphans``.
        :param dry_run: only plan it.
        :param spark: a running session; without it one is started where it is needed.
        """
        from icemigrate.commands.maintain import DEFAULT_PARTS, maintain, plan_maintenance

        chosen = parts or DEFAULT_PARTS
        plan = plan_maintenance(self._project, self._environment, parts=chosen, spark=spark)
        return plan.result if dry_run else maintain(self._project, plan, spark=spark)

    def reset(self, spark: SparkSession | None = None) -> ResetResult:
        """Move all tables of a disposable environment to the trash, and empty its history, without asking.

        :param spark: a running session; without it one is started.
        """
        from icemigrate.commands.reset import plan_reset, reset

        return reset(self._project, plan_reset(self._project, self._environment), spark=spark)

    def repair(self, spark: SparkSession | None = None) -> RepairResult:
        """Accept edited files of applied migrations that still declare the same.

        :param spark: a running session; without it one is started where there is something to record.
        """
        from icemigrate.commands.repair import repair

        return repair(self._project, self._environment, spark=spark)

    def rebase(self, *migrations: str) -> RebaseResult:
        """Give files that are out of order the next numbers.

        :param migrations: versions or files; without any, those that `plan` refuses.
        """
        from icemigrate.commands.rebase import rebase

        return rebase(self._project, migrations, self._environment)

    def squash(self, through: str) -> SquashResult:
        """Write one file for all files up to a version, and remove these."""
        from icemigrate.commands.squash import squash

        return squash(self._project, through)

    def status(self) -> Status:
        """The state of each migration and each table."""
        from icemigrate.commands.status import status

        return status(self._project, self._environment)

    def history(self) -> HistoryResult:
        """The events with their users, times and durations."""
        from icemigrate.commands.status import history

        return history(self._project, self._environment)

    def doctor(self, spark: bool = False) -> DoctorResult:
        """Test the setup: Java, Spark, jars, catalog, storage, permissions; writes nothing.

        :param spark: whether to start Spark too, and let it read the catalog.
        """
        from icemigrate.commands.doctor import doctor

        return doctor(self._project, self._environment, spark=spark)

    def show(self, table: str | None = None, at: str | None = None) -> str:
        """The declared tables as YAML that is a valid declaration.

        :param table: only this one.
        :param at: as declared after this version.
        """
        from icemigrate.commands.show import show

        return show(self._project, table, at)
