"""Writes retained values on a branch, counts them there, and only then publishes them.

Readers see nothing before the publication.  If the main branch moved meanwhile, everything runs again on its
new state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from icemigrate.changes.change import DeferredStatement
from icemigrate.changes.refill_columns import RefillColumns
from icemigrate.data_steps.data_step_kind import MAX_WRITE_ATTEMPTS
from icemigrate.diagnostics import format_count
from icemigrate.errors import EngineError
from icemigrate.events import ValuesRestored
from icemigrate.frozen import Frozen, replace
from icemigrate.iceberg.field_absence import find_field_absence
from icemigrate.iceberg.file_evidence_values import EvidenceQuery
from icemigrate.iceberg.names import TableName, format_path
from icemigrate.iceberg.ref_names import is_refill_branch_of
from icemigrate.iceberg.table_properties import SUMMARY_PREFIX
from icemigrate.planning.plan import Step
from icemigrate.planning.value_restore import no_refill_note, select_refills
from icemigrate.spark.engine_port import Engine
from icemigrate.spark.row_branches import publish_branch, require_table, retry_until_published
from icemigrate.spark.statement_events import StatementAnnouncer
from icemigrate.spark_sql.branch_statements import drop_branch_sql
from icemigrate.spark_sql.refill_statements import RefillStatements

REFILL_SUMMARY_KEY = f"{SUMMARY_PREFIX}refill"
"""In the summary of every snapshot of a refill: the version of the migration.

It differs from the key of data steps: a migration with both would count these snapshots as its rows.
"""
AS_THEY_ARE = (
    "`icemigrate rollback --no-refill` ends an undo with the values as they are; "
    "in a migration file leave `refill` out"
)
"""The hint of an error of a refill."""


class _RefillCounts(Frozen):
    """The row counts of a refill.

    :param base: the snapshot that the branch was created on.
    :param kept: rows of the version with a value.
    :param matched: those of them that still exist.
    :param lacking: by field, rows that get a value.
    :param rows: of the table.
    :param others: by field with a default, rows that have another value than then, the lacking included.
    :param filled: by field, rows that have a value already.
    """

    base: int | None
    kept: int
    matched: int
    lacking: tuple[int, ...]
    others: tuple[int, ...]
    rows: int
    filled: tuple[int, ...]

    def left(self, asking: RefillStatements) -> dict[int, int]:
        """By field with a default, rows that keep another value than then, because it was written."""
        pairs = zip(asking.defaulted, self.others, strict=True)
        return {at: others - self.lacking[at] for at, others in pairs}


class _AmbiguousRows(Exception):
    """Rows cannot be matched with their values; the argument is the reason."""


def is_refill(step: Step) -> bool:
    """Whether a step is run by :func:`refill`."""
    return isinstance(step.changes[0].change, RefillColumns)


def refill(engine: Engine, step: Step, announcer: StatementAnnouncer) -> None:
    """Run the statements of a refill.

    :raises EngineError: rows cannot be matched, the counts are wrong, or a statement failed.
    """
    (planned,) = step.changes
    change = planned.change
    assert isinstance(change, RefillColumns), "a refill is a step of its own"
    try:
        notes = _refill(engine, change, step, announcer)
    except EngineError as error:
        # Not every storage accepts the files of a refill.
        error.hint = error.hint or AS_THEY_ARE
        raise
    for note in notes:
        announcer.note(change.table, note)


def _refill(engine: Engine, change: RefillColumns, step: Step, announcer: StatementAnnouncer) -> list[str]:
    """Run the refill; its notes."""
    for statement in step.statements:
        if isinstance(statement, DeferredStatement):
            with announcer.statement(change.table, statement.text):
                found, notes = _look(engine, change)
                for one in found:
                    notes += _carry_out(engine, one, announcer, _silently)
            return notes
    return _carry_out(engine, change, announcer, announcer.statement)


def _silently(_table: TableName, _text: str) -> AbstractContextManager[None]:
    """An announcer for statements that are shown as one."""
    return nullcontext()


def _look(engine: Engine, change: RefillColumns) -> tuple[Sequence[RefillColumns], list[str]]:
    """The current sources of the values, from manifests; and notes about values that are not restored."""
    table = require_table(engine, change.table)
    paths = {field.path for field in change.fields}
    wanted = {field.id: path for path, field in table.schema.walk() if path in paths}
    asked = EvidenceQuery(since=None, held={i: table.schema.leaves(i) for i in wanted})
    if change.among:
        asked = replace(asked, last_copies=dict.fromkeys(wanted, change.among), to_restore=frozenset(wanted))
    evidence = engine.evidence(table.name, asked)
    chosen = select_refills(table, evidence.kept, evidence.more_kept, change.project)
    notes = [no_refill_note(table, i, k, engine.catalog_name) for i, k in chosen.others]
    for field_id, path in wanted.items():
        share = evidence.held.get(field_id)
        if field_id not in evidence.kept and share is not None and share.held < share.total:
            notes.append(f"no remaining version of the table has more values of {format_path(path)}")
    return chosen.refills, notes


def _carry_out(
    engine: Engine,
    change: RefillColumns,
    announcer: StatementAnnouncer,
    statement: Callable[[TableName, str], AbstractContextManager[None]],
) -> list[str]:
    """Write, count, publish; returns notes.

    :param statement: announces a statement that runs.
    """
    try:
        notes = _written(engine, change, announcer, statement)
    except _AmbiguousRows as reason:
        # One table must not prevent the others from getting their values back.
        names = ", ".join(format_path(f.path) for f in change.fields)
        query = change.refill_sql(engine.catalog_name).look()
        return [f"no value of {names} is restored: {reason}; {change.version} keeps them: {query}"]
    schema, paths = require_table(engine, change.table).schema, {f.path for f in change.fields}
    fields = tuple(field.id for path, field in schema.walk() if path in paths)
    announcer.on_event(ValuesRestored(announcer.version, change.table, change.version, fields))
    return notes


def _written(
    engine: Engine,
    change: RefillColumns,
    announcer: StatementAnnouncer,
    statement: Callable[[TableName, str], AbstractContextManager[None]],
) -> list[str]:
    table, note = change.table, {REFILL_SUMMARY_KEY: announcer.version}
    asking = _own(engine, change, announcer)
    *_, publication = asking.statements()
    create_event, *planned_merges, publication_event = change.refill_sql(engine.catalog_name).statements()
    with statement(table, create_event):
        _drop_left_branches(engine, change, asking.branch)
        engine.create_branch(table, asking.branch)
    asking = _known(engine, change, asking)
    counted = _count(engine, change, asking)
    # They are announced as in the plan, by which they are identified.
    for planned, text in zip(planned_merges, asking.merges(), strict=True):
        with statement(table, planned):
            engine.write(table, asking.branch, text, note)
    with statement(table, publication_event):

        def attempt(number: int) -> bool:
            nonlocal asking, counted
            if number > 1:
                announcer.note(
                    table, f"another writer committed first; attempt {number} of {MAX_WRITE_ATTEMPTS}"
                )
                engine.create_branch(table, asking.branch)
                asking = _known(engine, change, asking)
                counted = _count(engine, change, asking)
                for text in asking.merges():
                    engine.write(table, asking.branch, text, note)
            now = require_table(engine, table).snapshot
            if (None if now is None else now.id) != counted.base:
                return False  # main moved between the checks and the write
            _audit(engine, change, asking, counted)
            return publish_branch(engine, table, publication, asking.branch, counted.base)

        retry_until_published(table, attempt, AS_THEY_ARE)
    return _notes(change, asking, counted)


def _count(engine: Engine, change: RefillColumns, asking: RefillStatements) -> _RefillCounts:
    main = require_table(engine, change.table).snapshot
    ((kept, different),) = engine.ask(asking.kept())
    if kept != different:
        raise _AmbiguousRows(f"{kept} rows have only {format_count(different, 'different identifier')} there")
    ((pairs, matched, *counts),) = engine.ask(asking.matched())
    if pairs != matched:
        raise _AmbiguousRows(f"{pairs} rows have the identifiers of {matched} rows there")
    lacking, others = counts[: len(change.fields)], counts[len(change.fields) :]
    ((rows, *filled),) = engine.ask(asking.filled())
    return _RefillCounts(
        None if main is None else main.id, kept, matched, tuple(lacking), tuple(others), rows, tuple(filled)
    )


def _own(engine: Engine, change: RefillColumns, announcer: StatementAnnouncer) -> RefillStatements:
    """The statements of this run, which no other run shares the branch of."""
    asking = change.refill_sql(engine.catalog_name)
    return replace(asking, branch=announcer.refill_branch or asking.branch)


def _drop_left_branches(engine: Engine, change: RefillColumns, own: str) -> None:
    """Drop the branches of earlier, interrupted refills: this run writes to its own."""
    for name, ref in require_table(engine, change.table).refs.items():
        if name != own and ref.kind == "branch" and is_refill_branch_of(name, change.project):
            engine.sql(drop_branch_sql(engine.catalog_name, change.table, name))


def _known(engine: Engine, change: RefillColumns, asking: RefillStatements) -> RefillStatements:
    """The statements, with the absence of fields with a default from the table's snapshots."""
    if not asking.defaulted:
        return asking
    metadata = engine.metadata_json(change.table) or {}
    found = {at: find_field_absence(metadata, i, change.version) for at, i in asking.defaulted.items()}
    return replace(asking, absences=found)


def _audit(engine: Engine, change: RefillColumns, asking: RefillStatements, counted: _RefillCounts) -> None:
    """Check the rows on the branch.

    :raises EngineError: they are not as expected; nothing was published.
    """
    ((rows, *filled),) = engine.ask(asking.filled())
    expected = [a + b for a, b in zip(counted.filled, counted.lacking, strict=True)]
    for at in asking.defaulted:
        filled[at] = expected[at] = counted.rows  # each row reads a value, whatever was written
    if [rows, *filled] != [counted.rows, *expected]:
        raise _wrong(
            change, f"{_counts_text(rows, filled)} instead of {_counts_text(counted.rows, expected)}"
        )
    if asking.defaulted:
        ((_, _, *counts),) = engine.ask(asking.matched())
        lacking, others = counts[: len(filled)], counts[len(filled) :]
        if any(lacking) or others != [*counted.left(asking).values()]:
            raise _wrong(change, f"{sum(others)} rows read another value than in {change.version}")


def _wrong(change: RefillColumns, why: str) -> EngineError:
    names = ", ".join(format_path(f.path) for f in change.fields)
    return EngineError(
        f"the restored values of {names} are wrong: {why}; they were not published",
        AS_THEY_ARE,
    )


def _counts_text(rows: int, filled: Sequence[int]) -> str:
    return f"{rows} rows with {' and '.join(map(str, filled))} values"


def _notes(change: RefillColumns, asking: RefillStatements, counted: _RefillCounts) -> list[str]:
    filled = [
        f"{lacking} {'value' if lacking == 1 else 'values'} of {format_path(field.path)}"
        for field, lacking in zip(change.fields, counted.lacking, strict=True)
    ]
    written = [
        f"{format_count(left, 'row')} {'reads' if left == 1 else 'read'} another value of "
        f"{format_path(change.fields[at].path)} than in {change.version} and "
        f"{'keeps' if left == 1 else 'keep'} it: {_why_it_stays(asking, at)}"
        for at, left in counted.left(asking).items()
        if left
    ]
    gone = counted.kept - counted.matched
    return [
        f"brought back from {change.version}: {', '.join(filled)}",
        *written,
        *([f"gone since: {gone} of {counted.kept} rows with a value in {change.version}"] if gone else []),
    ]


def _why_it_stays(asking: RefillStatements, at: int) -> str:
    assert asking.absences is not None, "they were looked up before anything was counted"
    why = "it was written while the column existed"
    if asking.absences[at].is_exact:
        return why
    return f"{why}, or may have been: the snapshots that would show it have expired"
