"""Runs the plan of one table without a project: there is no lock to take and no history to write."""

from __future__ import annotations

import time
from collections.abc import Callable

from icemigrate.events import Event
from icemigrate.execution.carry_out import CarriedOut
from icemigrate.execution.engine_choice import LazyEngine
from icemigrate.execution.environment_session import EnvironmentSession
from icemigrate.execution.migration_run import MigrationRun
from icemigrate.execution.publishers import choose_publisher
from icemigrate.execution.statement_log import NoteCollector, plan_note_lines
from icemigrate.planning.plan import Plan
from icemigrate.spark.engine_port import Marker


def run_unrecorded(
    session: EnvironmentSession,
    plan: Plan,
    engine: LazyEngine,
    on_event: Callable[[Event], None] = lambda event: None,
) -> CarriedOut:
    """Run a ready plan without versions; each table changes in one commit.

    Another client may commit first: the commit is made again on top, unless both change the same facts.

    :raises ConflictError: another client changed the same facts.
    :raises EngineError: a commit failed, or the catalog did not make the changes.
    """
    chosen, notes, began = engine(on_event), NoteCollector(on_event), time.monotonic()
    publisher = choose_publisher(session, chosen, marked=False)
    for migration in plan.migrations:
        marker = Marker(plan.project, migration.version, migration.description, migration.checksum)
        MigrationRun(
            migration=migration,
            engine=chosen,
            publisher=publisher,
            marker=marker,
            on_event=notes,
            catalog=plan.catalog_name,
            planned_tables=plan.based_on,
        ).run()
    elapsed_ms = round((time.monotonic() - began) * 1000)
    return CarriedOut((), notes.collected, plan_note_lines(plan), elapsed_ms)
