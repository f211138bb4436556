"""``--reconcile`` of ``plan`` and ``apply``: tables are changed back to the recorded state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icemigrate.cli.invocation import InvocationOptions, SparkStartNotice
from icemigrate.cli.progress import run_with_progress
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.planning.plan import Plan
    from icemigrate.project import Project
    from icemigrate.results.command_results import PlanResult

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--allow",
        metavar="CONSENT",
        multiple=True,
        help="With `--reconcile`: consent to a destructive change, like `allow` in a file: "
        '"destructive market_data.trades.release". Repeatable.',
    ),
    click.option(
        "--table",
        "tables",
        metavar="TABLE",
        multiple=True,
        help="With `--reconcile`: only this table, by its declared name. Repeatable.",
    ),
    click.option(
        "--reconcile",
        is_flag=True,
        help="Restore tables that other clients changed to their recorded state; pending migrations wait.",
    ),
)


def reconcile_options(command: _Command) -> _Command:
    """``--reconcile``, and the two that belong to it."""
    for option in _OPTIONS:
        command = option(command)
    return command


def require_compatible_options(
    reconcile: bool, tables: tuple[str, ...], allow: tuple[str, ...], *others: object
) -> None:
    """Refuse options that cannot be combined.

    :param others: options about migrations.
    :raises UsageError: ``--table`` or ``--allow`` is given without ``--reconcile``, or ``--reconcile`` with
        others.
    """
    if not reconcile and (tables or allow):
        raise UsageError(
            "`--table` and `--allow` require `--reconcile`", "a migration file consents with `allow`"
        )
    if reconcile and any(others):
        raise UsageError("`--reconcile` applies no migration", "remove the plan file and the other options")


def reconcile_plan(
    settings: InvocationOptions,
    project: Project,
    tables: tuple[str, ...],
    allow: tuple[str, ...],
    spark: SparkStartNotice,
) -> PlanResult:
    """The plan that leads tables back."""
    from icemigrate.commands.reconcile import plan_reconcile, reconcile_request

    what = reconcile_request(tables, allow)
    return plan_reconcile(project, settings.environment, what, on_start=spark.before_questions)


def verify_saved_reconcile_plan(project: Project, saved: Plan, spark: SparkStartNotice) -> PlanResult:
    """A saved plan of ``--reconcile``, planned again and compared."""
    from icemigrate.commands.reconcile import verify_saved_reconcile

    return verify_saved_reconcile(project, saved, spark.before_questions)


def run_reconcile(
    settings: InvocationOptions,
    project: Project,
    result: PlanResult,
    lock_timeout_s: float | None,
    spark: SparkStartNotice,
) -> ExitCode:
    """Do it."""
    from icemigrate.commands.reconcile import reconcile

    act = partial(reconcile, project, result.plan, lock_timeout_s=lock_timeout_s)
    return run_with_progress(settings, act, spark.before_start)
