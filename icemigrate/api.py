"""The Python API: a project with its use cases as methods, which return what the commands print.

.. code-block:: python

    import icemigrate

    market = icemigrate.Project("path/to/project", environment="prod")
    if not market.plan().is_empty:
        market.apply()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from icemigrate.app.opening import open_project
from icemigrate.drift.results import AcceptResult, DriftResult, ReconcileResult
from icemigrate.events import Event
from icemigrate.model.imported import ImportResult
from icemigrate.model.upkeep import MaintainResult
from icemigrate.plan import Plan
from icemigrate.results import (
    ApplyResult,
    CheckResult,
    DoctorResult,
    PlanResult,
    RebaseResult,
    RepairResult,
    RevertResult,
    RollbackResult,
    SquashResult,
)
from icemigrate.status_results import HistoryResult, Status
from icemigrate.undo import PLAIN, Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Project:
    """A project.  Every method raises faults of :mod:`icemigrate.errors`, mistakes in files as ``Mistakes``.

    :param path: the project file, or the folder that it is or could be in; without it the working directory.
    :param environment: without it the project's default.
    """

    def __init__(self, path: str | PathLike[str] | None = None, environment: str | None = None) -> None:
        self._project = open_project(None if path is None else Path(path))
        self._environment = environment

    @property
    def name(self) -> str:
        """The project's name."""
        return self._project.name

    def spark(self) -> SparkSession:
        """A Spark session on the environment's catalog, under the name that it has in plans.

        Where Spark runs in this process already, this is another session of it.

        :raises EngineError: Java or Spark failed.
        """
        from icemigrate.app.spark import open_engine
        from icemigrate.project import choose_environment

        return open_engine(
            choose_environment(self._project, self._environment, dict(os.environ)), None
        ).session

    def check(self, git_base: str | None = None, *, fix: bool = False) -> CheckResult:
        """Check every file and every step between versions, without a catalog.

        :param git_base: a branch or commit; only what is new or changed since is told.
        :param fix: write the lock file as the files are now.
        """
        from icemigrate.app.checking import check
        from icemigrate.app.git_base import GitBase

        base = None if git_base is None else GitBase(git_base, git_base)
        return check(self._project, base, fix=fix)

    def plan(
        self,
        to: str | None = None,
        overwrite: Iterable[str] = (),
        redo: str | None = None,
        baseline: bool = False,
    ) -> PlanResult:
        """Plan the pending migrations against the catalog; starts no JVM.

        :param to: the last version to plan.
        :param overwrite: facts (``table:subject``) that are set whatever the catalog has now.
        :param redo: plan this version alone, which was rolled back.
        :param baseline: plan to record them as done already, without touching a table.
        """
        from icemigrate.app.planning import plan

        return plan(
            self._project, self._environment, to=to, overwrite=overwrite, redo=redo, baseline=baseline
        )

    def apply(
        self,
        plan: Plan | PlanResult | None = None,
        spark: SparkSession | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> ApplyResult:
        """Carry out a plan, or all that is pending; asks nobody.

        :param plan: exactly this one, or none; without it a plan is made.
        :param spark: a running session with Iceberg's SQL extensions; without it one is started.
        :param on_event: told of every step.
        """
        from icemigrate.app.applying import apply, require_ready

        result = self.plan() if plan is None else plan
        if isinstance(result, PlanResult):
            require_ready(result)
            result = result.plan
        return apply(self._project, result, spark=spark, on_event=on_event)

    def plan_rollback(
        self,
        to: str | None = None,
        only: str | None = None,
        options: Options = PLAIN,
        spark: SparkSession | None = None,
    ) -> PlanResult:
        """Plan taking migrations back: the last one, all after ``to``, or ``only`` one.

        :param spark: a running session; Spark is started only where files have to be asked.
        """
        from icemigrate.app.rolling_back import plan_rollback

        return plan_rollback(self._project, self._environment, to=to, only=only, options=options, spark=spark)

    def rollback(
        self,
        to: str | None = None,
        only: str | None = None,
        options: Options = PLAIN,
        spark: SparkSession | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> RollbackResult:
        """Take migrations back; asks nobody.

        :param options: what to do about what cannot be undone, and about newer rows.
        """
        from icemigrate.app.rolling_back import require_undoable, rollback

        result = self.plan_rollback(to, only, options, spark)
        require_undoable(result)
        return rollback(self._project, result.plan, options=options, spark=spark, on_event=on_event)

    def revert(self, version: str) -> RevertResult:
        """Write the next migration file, one that undoes ``version``."""
        from icemigrate.app.reverting import revert

        return revert(self._project, version)

    def import_tables(
        self,
        *names: str,
        exclude: Sequence[str] = (),
        description: str | None = None,
        dry_run: bool = False,
    ) -> ImportResult:
        """Write the next migration file, one that takes in tables which exist already.

        :param names: tables and namespaces; without any, all of the catalog that nobody declared.
        :param exclude: tables and namespaces to leave out.
        :param dry_run: write no file; :attr:`~icemigrate.model.imported.ImportResult.content` has its text.
        """
        from icemigrate.app.importing import import_tables

        return import_tables(
            self._project,
            self._environment,
            names,
            exclude=exclude,
            description=description,
            dry_run=dry_run,
        )

    def drift(self, *tables: str) -> DriftResult:
        """What others did to the tables since they were recorded.

        :param tables: declared names; without any, all tables.
        """
        from icemigrate.app.drifting import drift

        return drift(self._project, self._environment, tables)

    def accept_drift(self, *tables: str) -> AcceptResult:
        """Write the migration that declares what others did.

        :param tables: declared names; without any, all tables.
        """
        from icemigrate.app.accepting import accept_drift

        return accept_drift(self._project, self._environment, tables)

    def plan_reconcile(
        self, *tables: str, allow: Iterable[str] = (), spark: SparkSession | None = None
    ) -> PlanResult:
        """The plan that leads tables back to what is recorded.

        :param tables: declared names; without any, all tables.
        :param allow: consents, as in a file: ``destructive market_data.trades.release``.
        :param spark: a running session; without it one is started where files have to be asked.
        """
        from icemigrate.app.reconciling import asked, plan_reconcile

        return plan_reconcile(self._project, self._environment, asked(tables, allow), spark=spark)

    def reconcile(
        self, *tables: str, allow: Iterable[str] = (), spark: SparkSession | None = None
    ) -> ReconcileResult:
        """Lead tables back to what is recorded; asks nobody.  As :meth:`plan_reconcile`."""
        from icemigrate.app.reconciling import reconcile
        from icemigrate.app.rolling_back import require_undoable

        result = self.plan_reconcile(*tables, allow=allow, spark=spark)
        require_undoable(result)
        return reconcile(self._project, result.plan, spark=spark)

    def maintain(
        self,
        *parts: str,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> MaintainResult:
        """Carry out retention; asks nobody.

        :param parts: ``trash``, ``snapshots``, ``rows``, ``orphans``; without any, all but the last.
        :param dry_run: only look.
        :param spark: a running session; without it one is started where it is needed.
        """
        from icemigrate.app.maintaining import RETENTION, maintain, plan_maintenance

        chosen = parts or RETENTION
        plan = plan_maintenance(self._project, self._environment, parts=chosen, spark=spark)
        return plan.result if dry_run else maintain(self._project, plan, spark=spark)

    def repair(self, spark: SparkSession | None = None) -> RepairResult:
        """Let applied files that were edited count as what was applied, where they declare the same.

        :param spark: a running session; without it one is started where there is something to record.
        """
        from icemigrate.app.repairing import repair

        return repair(self._project, self._environment, spark=spark)

    def rebase(self, *migrations: str) -> RebaseResult:
        """Give files that came late the next numbers.

        :param migrations: versions or files; without any, those that `plan` refuses.
        """
        from icemigrate.app.rebasing import rebase

        return rebase(self._project, migrations, self._environment)

    def squash(self, through: str) -> SquashResult:
        """Write one file for all files up to a version, and remove these."""
        from icemigrate.app.squashing import squash

        return squash(self._project, through)

    def status(self) -> Status:
        """Where each migration and each table stands."""
        from icemigrate.app.reporting import status

        return status(self._project, self._environment)

    def history(self) -> HistoryResult:
        """Who applied what, when, and how long it took."""
        from icemigrate.app.reporting import history

        return history(self._project, self._environment)

    def doctor(self, spark: bool = False) -> DoctorResult:
        """Say what works here: Java, Spark, jars, catalog, storage, rights; writes nothing.

        :param spark: start Spark too, and let it read the catalog.
        """
        from icemigrate.app.doctor import doctor

        return doctor(self._project, self._environment, spark=spark)

    def show(self, table: str | None = None, at: str | None = None) -> str:
        """The declared tables as YAML that is itself a valid declaration.

        :param table: this one alone.
        :param at: as declared after this version.
        """
        from icemigrate.app.showing import show

        return show(self._project, table, at)
