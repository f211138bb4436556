"""``--reconcile`` of ``plan`` and ``apply``: tables led back to what is recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icemigrate.cli.context import Settings, SparkTold
from icemigrate.cli.progress import carry_out
from icemigrate.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from icemigrate.plan import Plan
    from icemigrate.project import Project
    from icemigrate.results import PlanResult

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--allow",
        metavar="CONSENT",
        multiple=True,
        help="With `--reconcile`: consent to what is destructive, as a file's `allow` does: "
        '"destructive market_data.trades.release". May be repeated.',
    ),
    click.option(
        "--table",
        "tables",
        metavar="TABLE",
        multiple=True,
        help="With `--reconcile`: this table alone, by its declared name. May be repeated.",
    ),
    click.option(
        "--reconcile",
        is_flag=True,
        help="Lead tables back to what is recorded, where others changed them; pending migrations wait.",
    ),
)


def reconcile_options(command: _Command) -> _Command:
    """``--reconcile``, and the two that belong to it."""
    for option in _OPTIONS:
        command = option(command)
    return command


def require_alone(reconcile: bool, tables: tuple[str, ...], allow: tuple[str, ...], *others: object) -> None:
    """Refuse options that do not go together.

    :param others: options about migrations.
    :raises UsageError: ``--table`` or ``--allow`` stands without ``--reconcile``, or that with others.
    """
    if not reconcile and (tables or allow):
        raise UsageError("`--table` and `--allow` belong to `--reconcile`", "a file consents by its `allow`")
    if reconcile and any(others):
        raise UsageError("`--reconcile` applies no migration", "leave the plan's file and other options away")


def reconcile_plan(
    settings: Settings,
    project: Project,
    tables: tuple[str, ...],
    allow: tuple[str, ...],
    spark: SparkTold,
) -> PlanResult:
    """The plan that leads tables back."""
    from icemigrate.app.reconciling import asked, plan_reconcile

    what = asked(tables, allow)
    return plan_reconcile(project, settings.environment, what, on_start=spark.tell_of_questions)


def ready_reconcile(project: Project, saved: Plan, spark: SparkTold) -> PlanResult:
    """A saved one, made anew."""
    from icemigrate.app.reconciling import ready_reconcile

    return ready_reconcile(project, saved, spark.tell_of_questions)


def carry_out_reconcile(
    settings: Settings,
    project: Project,
    result: PlanResult,
    lock_timeout_s: float | None,
    spark: SparkTold,
) -> ExitCode:
    """Do it."""
    from icemigrate.app.reconciling import reconcile

    act = partial(reconcile, project, result.plan, lock_timeout_s=lock_timeout_s)
    return carry_out(settings, act, spark.tell_of_start)
