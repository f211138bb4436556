"""Changes of the columns of one table, without a migration file: planned, checked and carried out as one.

The change is planned as a migration from the current table, so its rules, hazards and statements are those
of a migration file.  The history records it as a manual change, which `drift` shows until it is declared.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icemigrate.commands.plan import PlanInputs
from icemigrate.diagnostics import Diagnostic
from icemigrate.errors import Mistakes, UsageError
from icemigrate.events import Event
from icemigrate.execution.carry_out import carry_out
from icemigrate.execution.engine_choice import LazyEngine
from icemigrate.execution.environment_session import EnvironmentSession, open_environment
from icemigrate.execution.unrecorded_run import run_unrecorded
from icemigrate.files.parse.source_text import SourceText
from icemigrate.files.read.migration_file import MigrationFile
from icemigrate.files.read.migration_reader import read_migration
from icemigrate.files.version_number import Version
from icemigrate.frozen import Frozen, replace
from icemigrate.history.history_properties import History
from icemigrate.iceberg.declared_sides import DeclaredState
from icemigrate.iceberg.names import BadName, TableName, format_path, parse_path
from icemigrate.iceberg.table import Table, owner_of
from icemigrate.planning.plan import (
    ALTER_VERSION,
    MISSING_CONSENT,
    Consent,
    Direction,
    MigrationPlan,
    Plan,
)
from icemigrate.planning.plan_staleness import require_not_stale
from icemigrate.planning.planner import hazards_without_consent
from icemigrate.project import Project
from icemigrate.project.namespace_mapping import NamespaceMapping
from icemigrate.results.column_results import ColumnChangesResult
from icemigrate.results.command_results import PlanResult, errors_besides_consents, errors_of
from icemigrate.table_data.writable_tables import require_owner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icemigrate.spark.commit_ports import CommittingEngine

COLUMN_KEYS = ("renames", "columns", "drop_columns")
"""The keys of a table's entry that a change of its columns may have."""
_FILE = f"{'9' * 18}_columns.yaml"
"""The name of the file that the entry would be in; no message shows it."""


class ColumnChanges(Frozen):
    """The requested changes of one table.

    :param table: its name in migration files.
    :param entry: the changes, as the entry of a migration file: ``renames``, ``columns``, ``drop_columns``.
    :param new: paths of the columns that the table must not have yet.
    :param allow: consents to hazards.
    """

    table: str
    entry: Mapping[str, Any]
    new: tuple[str, ...] = ()
    allow: tuple[Consent, ...] = ()


def column_addition(
    table: str,
    column: str,
    type_: str,
    *,
    description: str | None = None,
    is_required: bool = False,
    default: object = None,
    after: str | None = None,
    is_first: bool = False,
) -> ColumnChanges:
    """The request to add one column.

    :param column: its name, or a dotted path into a struct.
    :param default: of older and of new rows; ``None`` for none.
    :param after: the sibling that precedes it; ``None`` for the end.
    """
    entry: dict[str, Any] = {"name": column, "type": type_}
    given = {"description": description, "required": is_required or None, "default": default}
    given |= {"after": after, "first": is_first or None}
    entry |= {key: value for key, value in given.items() if value is not None}
    return ColumnChanges(table, {"columns": [entry]}, (column,))


def typed_default(text: str, type_: str) -> object:
    """A default of the command line as the value that a migration file has for this type."""
    if type_.strip().lower() in _JSON_TYPES:
        try:
            value: object = json.loads(text)
        except ValueError:
            return text  # planning names the type and an example
        return value
    return text


_JSON_TYPES = frozenset(
    {"boolean", "bool", "int", "integer", "long", "bigint", "smallint", "tinyint", "float", "double", "real"}
)
"""Types whose values are not texts in a migration file."""


def change_columns(
    project: Project,
    environment: str | None,
    request: ColumnChanges,
    *,
    is_recorded: bool = True,
    approve: Callable[[PlanResult], bool] | None = None,
    spark: SparkSession | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    on_start: Callable[[], None] = lambda: None,
    lock_timeout_s: float | None = None,
) -> ColumnChangesResult | None:
    """Change the columns of a table in one commit.

    :param is_recorded: whether the project has a history, which records the change, and a lock.
    :param approve: asked about the hazards of the plan that lack a consent; without it they are refused.
    :param spark: a running session; without it one is started where the change needs it.
    :returns: ``None`` where the user does not approve; nothing was changed.
    :raises UsageError: there is no such environment, table or column, or a key is unknown.
    :raises Mistakes: the change breaks a rule, or a consent is missing.
    :raises LockHeld: another process held the lock until the timeout.
    :raises ConflictError: another client changed the same facts meanwhile.
    :raises EngineError: a statement or a commit failed.
    """
    with open_environment(project, environment) as session:
        result = _plan(session, request, is_recorded)
        if errors := errors_besides_consents(result.diagnostics):
            raise mistaken(request, errors)
        unconsented = [h for m in result.plan.migrations for h in m.unconsented]
        if unconsented and approve is not None:
            if not approve(result):
                return None
            consents = tuple(Consent(hazard.kind.value, hazard.scope) for hazard in unconsented)
            request = replace(request, allow=(*request.allow, *consents))
            result = _plan(session, request, is_recorded)
        if errors := errors_of(result.diagnostics):
            raise mistaken(request, errors)
        changes = tuple(
            f"{c.change.symbol} {c.text}" for migration in result.plan.migrations for c in migration.changes()
        )
        answer = ColumnChangesResult(
            project.name, session.environment.name, request.table, changes, is_recorded, 0
        )
        if not changes:
            return answer
        engine = LazyEngine(session, spark, on_start, is_undo=True)
        if not is_recorded:
            done = run_unrecorded(session, result.plan, engine, on_event)
        else:

            def replan(_: CommittingEngine) -> Plan:
                fresh = _plan(session, request, is_recorded)
                require_not_stale(result.plan, fresh.plan)
                return fresh.plan

            done = carry_out(
                session, result.plan, replan, engine=engine, on_event=on_event, lock_timeout_s=lock_timeout_s
            )
        return replace(answer, elapsed_ms=done.elapsed_ms, notes=done.all_notes)


def mistaken(request: ColumnChanges, errors: Sequence[Diagnostic]) -> Mistakes:
    """The exception for a change with errors; its message has the first one."""
    summary = f"cannot change the columns of `{request.table}`: {errors[0].message}"
    return Mistakes(tuple(errors), summary)


def _plan(session: EnvironmentSession, request: ColumnChanges, is_recorded: bool) -> PlanResult:
    """The plan from the current table to the current table with the changes.

    :raises UsageError: there is no such table, a project owns it and is not open, or a column exists already.
    :raises Mistakes: the entry is invalid.
    """
    file, declared = _read(request)
    name = session.names.table(declared)
    actual = session.catalog.load((name,), with_writers=True)
    current = actual[name]
    if current is None:
        raise UsageError(f"there is no table `{declared}`", "`icemigrate status` lists the tables")
    if not is_recorded:
        require_owner(request.table, owner_of(current), None)
    _require_new_columns(request, current)
    history = session.history() if is_recorded else History(session.project.name)
    # Overrides of the environment are no part of the change.
    plain = dataclasses.replace(session.environment, overrides=())
    alone = dataclasses.replace(session, environment=plain, names=NamespaceMapping(plain))
    base = DeclaredState({declared: replace(current, name=declared)}, frozenset({declared.namespace}))
    assumed = replace(history, state=base, intents=(), applied=())
    namespaces = frozenset({name.namespace})
    inputs = PlanInputs(alone, (file,), assumed, dict(actual), namespaces)
    try:
        planned = inputs.plan(frozenset())
    except Mistakes as error:
        errors = [_of_a_manual_change(found) for found in errors_of(error.diagnostics)]
        raise mistaken(request, errors) from None
    migrations = tuple(_altering(m, request) for m in planned.plan.migrations)
    plan = replace(
        planned.plan,
        migrations=migrations,
        applied=tuple((a.version.text, a.checksum) for a in history.applied),
        base=history.state,
    )
    return replace(planned, plan=plan, diagnostics=tuple(_diagnostics(planned, plan)))


def _of_a_manual_change(found: Diagnostic) -> Diagnostic:
    """A problem without its position, because there is no file, and with what to do without a file."""
    if found.code == "required-not-in-every-file":
        return replace(found, place=None, hint=_REQUIRE_LATER)
    return replace(found, place=None)


_REQUIRE_LATER = (
    "add the column without `--required` (`required` in Python); a migration file can require it after all "
    "files are rewritten"
)


def _altering(migration: MigrationPlan, request: ColumnChanges) -> MigrationPlan:
    """Convert the plan of a migration file to that of a manual change."""
    changes = "; ".join(f"{c.change.symbol} {c.text}" for c in migration.changes())
    hazards = [h for c in migration.changes() for h in c.hazards]
    return replace(
        migration,
        version=ALTER_VERSION,
        description=f"{request.table}: {changes}",
        checksum="",
        fingerprint="",
        direction=Direction.ALTER,
        unconsented=tuple(hazards_without_consent(hazards, request.allow)),
    )


def _diagnostics(planned: PlanResult, plan: Plan) -> Iterator[Diagnostic]:
    """The problems of the plan without positions, because there is no file."""
    for found in planned.diagnostics:
        if found.code != MISSING_CONSENT:
            yield _of_a_manual_change(found)
    for table in (table for migration in plan.migrations for table in migration.tables):
        for step in table.rows:
            yield Diagnostic(
                "rows-needed",
                f"`{table.declared}`: {step.text}: this reads or writes rows",
                None,
                "declare the change in a migration file, which does this before the change",
            )
    for hazard in (hazard for migration in plan.migrations for hazard in migration.unconsented):
        consent = f"{hazard.kind.value} {hazard.scope}"
        yield Diagnostic(
            MISSING_CONSENT,
            f"`{hazard.scope}`: {hazard.reason}",
            None,
            f'to consent, pass `--allow "{consent}"` (`allow` in Python)',
        )


def _read(request: ColumnChanges) -> tuple[MigrationFile, TableName]:
    """The request as a migration file.

    :raises UsageError: the name of the table or a key is invalid.
    :raises Mistakes: the entry is invalid.
    """
    try:
        declared = TableName.parse(request.table)
    except BadName as error:
        raise UsageError(str(error), "give the namespace and the name, such as `sales.orders`") from error
    if unknown := [key for key in request.entry if key not in COLUMN_KEYS]:
        raise UsageError(
            f"`{unknown[0]}` is no change of columns",
            f"use {', '.join(COLUMN_KEYS)}; migrations change the rest",
        )
    document = {"tables": [{"name": request.table, **request.entry}]}
    text = json.dumps(document, ensure_ascii=False, default=str)
    read = read_migration(SourceText(_FILE, text), Version.parse("9" * 18), "columns")
    if read.migration is None:
        raise mistaken(request, [replace(d, place=None) for d in errors_of(read.diagnostics)])
    return read.migration, declared


def _require_new_columns(request: ColumnChanges, current: Table) -> None:
    for text in request.new:
        try:
            path = parse_path(text)
        except BadName as error:
            raise UsageError(f"`{text}` is no name of a column: {error}") from error
        if current.schema.find(path) is not None:
            raise UsageError(
                f"`{request.table}` already has a column `{format_path(path)}`",
                "choose another name, or rename or drop that column first",
            )
